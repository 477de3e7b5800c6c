/* cri_sandbox - the calls about sandboxes. */
#ifndef BIGA_ADVERTISER_CRI_CRI_SANDBOX_H
#define BIGA_ADVERTISER_CRI_CRI_SANDBOX_H

#include "advertiser/cri/cri_endpoint.h"

struct cri_sandbox_config {
    const char *namespace, *name, *uid;
    uint32_t attempt;
    const char *hostname;      /* "" with the network of the node (or card) */
    const char *log_directory; /* on the card */
    struct cri_pairs labels, annotations;
    const char *runtime_handler; /* "" the default */
    const char *cgroup_parent;   /* "" none */
    bool host_network, host_pid, host_ipc;
    bool privileged;
    int64_t run_as_user; /* -1: not said */
};
int cri_run_sandbox(struct cri *c, const struct cri_sandbox_config *config,
                    unsigned ms, char ret_id[CRI_ID_MAX + 1],
                    struct error *err);
int cri_stop_sandbox(struct cri *c, const char *id, unsigned ms,
                     struct error *err);
int cri_remove_sandbox(struct cri *c, const char *id, unsigned ms,
                       struct error *err);

struct cri_sandbox {
    char id[CRI_ID_MAX + 1];
    char *namespace, *name, *uid;
    uint32_t attempt;
    bool ready;
    int64_t created_ns; /* by the card's clock: for people only */
    struct cri_pair *labels;
    size_t n_labels;
};
struct cri_sandboxes {
    struct cri_sandbox *list;
    size_t n;
};
void cri_sandboxes_fini(struct cri_sandboxes *s);
/* Only those with all of these labels. */
int cri_list_sandboxes(struct cri *c, struct cri_pairs labels, unsigned ms,
                       struct cri_sandboxes *ret_list, struct error *err);

#endif
