/* Any bytes as a claim's spec: no crash; a refusal says why and makes nothing.
 * What is read comes out as it was, and pinned it is read again with one
 * selector more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_pin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIN "device.driver == \"a\\\"b\""

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_pinned(const struct claim_spec *spec)
{
    struct claim_pin pins[CLAIM_REQUESTS_MAX];
    cleanup_with(claim_spec) struct claim_spec *made = NULL;
    cleanup_str struct str out = STR_INIT(2 * CLAIM_SPEC_MAX);
    struct error err = {0};
    size_t n = 0;
    for (size_t i = 0; i < spec->n_requests; i++)
        if (spec->requests[i].n_selectors < CLAIM_SELECTORS_MAX)
            pins[n++] = (struct claim_pin){spec->requests[i].name, PIN};
    require(claim_pin(spec, pins, n, &out, &err) == 0);
    if (out.size > CLAIM_SPEC_MAX)
        return;
    require(claim_spec_read(out.data, out.size, &made, &err) == 0);
    require(made->n_requests == spec->n_requests);
    for (size_t i = 0; i < made->n_requests; i++) {
        const struct claim_request *was = &spec->requests[i],
                                   *is = &made->requests[i];
        size_t more = was->n_selectors < CLAIM_SELECTORS_MAX;
        require(is->n_selectors == was->n_selectors + more);
        require(!more ||
                strcmp(claim_cel_text(is->selectors[is->n_selectors - 1]),
                       PIN) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(claim_spec) struct claim_spec *spec = NULL;
    cleanup_str struct str out = STR_INIT(2 * CLAIM_SPEC_MAX);
    struct error err = {0};
    int rc = claim_spec_read((const char *)data, size, &spec, &err);
    if (rc < 0) {
        require((rc == -EINVAL || rc == -EDOM) && err.code == -rc &&
                err.text[0] && !spec);
        return 0;
    }
    require(claim_pin(spec, NULL, 0, &out, &err) == 0 && out.size == size &&
            memcmp(out.data, data, size) == 0);
    check_pinned(spec);
    return 0;
}
