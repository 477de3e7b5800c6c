/* Any bytes as a ResourceClaim, a template and a DeviceClass: no crash; a
 * refusal says why and makes nothing; an answer has its names, and a spec or
 * why there is none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_status.h"
#include "model/claim/claim_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_status(const struct claim_status *s)
{
    require(s->namespace[0] && s->name[0] && s->uid[0]);
    require(s->owner.name && s->owner.uid && s->node && s->version);
    require((s->spec == NULL) == (s->bad.code != 0));
    require(s->spec || s->bad.text[0]);
    require(s->n_results <= CLAIM_RESULTS_MAX &&
            s->n_reserved <= CLAIM_RESERVED_MAX);
    for (size_t i = 0; i < s->n_results; i++)
        require(s->results[i].driver[0] && s->results[i].pool[0] &&
                s->results[i].device[0] && s->results[i].request);
    for (size_t i = 0; i < s->n_reserved; i++)
        require(s->reserved[i].name && s->reserved[i].uid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(claim_status) struct claim_status *status = NULL;
    cleanup_with(claim_template) struct claim_template *template = NULL;
    cleanup_with(claim_class) struct claim_class *class = NULL;
    const char *json = (const char *)data;
    struct error err = {0};
    if (claim_status_read(json, size, &status, &err) == 0)
        check_status(status);
    else
        require(err.code == EINVAL && err.text[0] && !status);
    err = (struct error){0};
    if (claim_template_read(json, size, &template, &err) == 0)
        require(template->name[0] &&
                (template->spec == NULL) == (template->bad.code != 0));
    else
        require(err.code == EINVAL && err.text[0] && !template);
    err = (struct error){0};
    if (claim_class_read(json, size, &class, &err) == 0)
        require(class->name[0] && class->n_selectors <= CLAIM_SELECTORS_MAX);
    else
        require(err.code == EINVAL && err.text[0] && !class);
    return 0;
}
