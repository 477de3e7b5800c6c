/* Any bytes as a Job that is applied: no crash; a refusal says why; of what is
 * accepted come pods of different names, which are JSON again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/job_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

struct seen {
    unsigned n;
    char last[80];
};

static int check(void *arg, cJSON *pod)
{
    struct seen *s = arg;
    cleanup_with(json) cJSON *own = pod, *again = NULL;
    struct error err = {0};
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(own, "metadata");
    const char *name = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(metadata, "name"));
    require(name && strlen(name) <= 63 && strcmp(name, s->last) != 0);
    (void)snprintf(s->last, sizeof s->last, "%s", name);
    cleanup_free char *text = cJSON_PrintUnformatted(own);
    require(text && json_parse(text, strlen(text), &again, &err) == 0);
    return ++s->n > 20 ? -ECANCELED : 0; /* the others are like these */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    struct seen seen = {0};
    if (json_parse((const char *)data, size, &json, &err) < 0 ||
        !cJSON_IsObject(json))
        return 0;
    int r = job_object_each(json, check, &seen, &err);
    require(r == -ECANCELED || (r == 0) == (err.text[0] == '\0'));
    return 0;
}
