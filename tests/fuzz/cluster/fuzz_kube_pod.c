/* Any bytes as a Pod of the API server: no crash; a refusal says why and
 * leaves the result alone; an answer has its names, and its amounts are
 * none that could wrap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/kube_pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

#define IS_TEXT(field) (strnlen(field, sizeof(field)) < sizeof(field))

static void check_answer(const struct kube_pod *pod, const char *data,
                         size_t size)
{
    require(IS_TEXT(pod->demand.name) && pod->demand.name[0]);
    require(IS_TEXT(pod->demand.namespace) && pod->demand.namespace[0]);
    require(IS_TEXT(pod->demand.uid) && pod->demand.uid[0]);
    require(IS_TEXT(pod->node) && IS_TEXT(pod->buddy));
    require(IS_TEXT(pod->owner_uid) && IS_TEXT(pod->owner_name));
    require(IS_TEXT(pod->scheduler));
    require(pod->cpu_milli >= 0 && pod->memory_kib >= 0);
    require(pod->phase <= POD_PHASE_UNKNOWN);
    if (pod->broken)
        require(pod->why.code && pod->why.text[0] &&
                pod->demand.role == ROLE_NONE);
    if (pod->allocation.data)
        require(pod->allocation.data > data &&
                pod->allocation.data + pod->allocation.size < data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct demand_config config;
    struct kube_pod pod, untouched;
    struct error err = {0};
    demand_config_default(&config);
    memset(&pod, 0x5a, sizeof pod);
    untouched = pod;
    int r = kube_pod_read((const char *)data, size, &config, &pod, &err);
    if (r == 0)
        check_answer(&pod, (const char *)data, size);
    else
        require(r == -EINVAL && err.code == EINVAL && err.text[0] &&
                memcmp(&pod, &untouched, sizeof pod) == 0);
    return 0;
}
