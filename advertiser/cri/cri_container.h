/* cri_container - the calls about containers, and commands in them. */
#ifndef BIGA_ADVERTISER_CRI_CRI_CONTAINER_H
#define BIGA_ADVERTISER_CRI_CRI_CONTAINER_H

#include "advertiser/cri/cri_sandbox.h"

struct cri_mount {
    const char *container_path, *host_path; /* of the card */
    bool read_only;
    bool shared; /* what is mounted below it there is seen on the card, and the
                  * other way round; its mount has to be shared there */
};

struct cri_hugepages {
    const char *page_size; /* "2MB" */
    uint64_t limit;        /* bytes */
};

struct cri_container_config {
    const char *name, *image;
    uint32_t attempt;
    const char *const *command, *const *args;
    size_t n_command, n_args;
    const char *working_dir;
    struct cri_pairs env, labels, annotations;
    const struct cri_mount *mounts;
    size_t n_mounts;
    const char *const *devices; /* nodes of the card, which it may read and
                                 * write at the same paths */
    size_t n_devices;
    const char *log_path; /* relative to the sandbox's directory */
    /* linux resources; 0 or "": not limited */
    int64_t cpu_period, cpu_quota, cpu_shares, memory_limit, oom_score_adj;
    const char *cpuset_cpus, *cpuset_mems;
    const struct cri_hugepages *hugepages; /* other sizes are not limited */
    size_t n_hugepages;
    /* security context */
    int64_t run_as_user, run_as_group; /* -1 the image's */
    bool read_only_root, no_new_privileges, privileged;
    const char *const *cap_add, *const *cap_drop;
    size_t n_cap_add, n_cap_drop;
};
/* `sandbox` is what the sandbox was made with. */
int cri_create_container(struct cri *c, const char *sandbox_id,
                         const struct cri_container_config *config,
                         const struct cri_sandbox_config *sandbox, unsigned ms,
                         char ret_id[CRI_ID_MAX + 1], struct error *err);
int cri_start_container(struct cri *c, const char *id, unsigned ms,
                        struct error *err);
/* Ends within `grace_s`, then it is killed; `ms` is longer than that. */
int cri_stop_container(struct cri *c, const char *id, uint32_t grace_s,
                       unsigned ms, struct error *err);
int cri_remove_container(struct cri *c, const char *id, unsigned ms,
                         struct error *err);

enum cri_container_state {
    CRI_CREATED = 0,
    CRI_RUNNING = 1,
    CRI_EXITED = 2,
    CRI_UNKNOWN = 3,
};
struct cri_container {
    char id[CRI_ID_MAX + 1], sandbox_id[CRI_ID_MAX + 1];
    char *name, *image;
    uint32_t attempt;
    enum cri_container_state state;
    struct cri_pair *labels;
    size_t n_labels;
    /* of a status alone: */
    int32_t exit_code;
    int64_t started_ns, finished_ns; /* by the card's clock */
    char *reason, *message, *log_path;
};
struct cri_containers {
    struct cri_container *list;
    size_t n;
};
void cri_containers_fini(struct cri_containers *s);
int cri_list_containers(struct cri *c, struct cri_pairs labels, unsigned ms,
                        struct cri_containers *ret_list, struct error *err);
int cri_container_status(struct cri *c, const char *id, unsigned ms,
                         struct cri_container *ret_container,
                         struct error *err);
void cri_container_fini(struct cri_container *s);

/* `timeout_s` is the runtime's own; what the command writes beyond `max` is an
 * error, to either of `out` and `err`. */
struct cri_exec {
    size_t max; /* set by the caller; 0: CRI_EXEC_OUTPUT_MAX */
    int32_t exit_code;
    struct str out, err;
};
void cri_exec_fini(struct cri_exec *e);
int cri_exec_sync(struct cri *c, const char *id, const char *const *argv,
                  size_t n_argv, uint32_t timeout_s, unsigned ms,
                  struct cri_exec *ret_exec, struct error *err);

#endif
