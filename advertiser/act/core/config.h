/* config - a pod as the CRI has it. */
#ifndef BIGA_ADVERTISER_ACT_CORE_CONFIG_H
#define BIGA_ADVERTISER_ACT_CORE_CONFIG_H

#include "advertiser/act/core/state.h"

struct config_sandbox {
    struct arena arena;
    struct cri_sandbox_config cri;
};
/* Without the lock: what is read of a pod does not change. */
void config_sandbox(const struct actuator *a, const struct pod_entry *p,
                    uint32_t attempt, struct config_sandbox *ret_config);
void config_sandbox_fini(struct config_sandbox *c);
void config_container(const struct actuator *a, const struct pod_entry *p,
                      size_t unit, uint32_t attempt,
                      struct config_sandbox *within,
                      struct cri_container_config *ret_config);
/* Init containers come first. */
const struct podspec_container *config_unit(const struct podspec *spec,
                                            size_t unit);
bool config_wants_peer(const struct cri_container_config *config);
/* On a card its pair's other side is where we are, unless somebody knows
 * better: `address` is ours, "" not known. */
void config_set_peer(struct cri_container_config *config, const char *address,
                     struct config_sandbox *within);
/* Files and logs of a pod, there: on the host in our own folder, which alone
 * we are sure to be allowed to write to. */
char *config_pod_dir(const struct actuator *a, const struct pod_entry *p);
/* Objects are found by these; `list` has room for two. */
struct cri_pairs config_ours(const struct actuator *a, struct cri_pair list[2]);

#endif
