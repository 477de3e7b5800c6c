/* Any bytes as a Pod: no crash; a refusal says why and leaves the result
 * alone; each claim of an answer is found by its name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/claim/pod_claims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_pod_claims struct pod_claims claims = {0};
    struct error err = {0};
    int rc = pod_claims_read((const char *)data, size, &claims, &err);
    if (rc < 0)
        require(rc == -EINVAL && err.code == EINVAL && err.text[0] &&
                claims.n == 0);
    else
        require(claims.n <= POD_CLAIMS_MAX && claims.extended);
    for (size_t i = 0; i < claims.n; i++) {
        const struct pod_claim *c = &claims.items[i];
        require(c->name[0] && c->claim && c->template && c->made &&
                pod_claims_find(&claims, c->name) != NULL);
    }
    return 0;
}
