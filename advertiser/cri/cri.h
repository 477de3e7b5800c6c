/* cri - the calls of a container runtime (CRI v1) that Biga needs, typed; of
 * one endpoint, over grpc.  What comes back is checked here: ids are
 * [a-f0-9]{1,128} (CRI_ID_MAX), names, labels and texts are capped and
 * printable, counts have caps; what breaks that is -EPROTO and names it.
 * The wire form is advertiser/cri/cri.proto, a subset of upstream's with its
 * field numbers. */
#ifndef BIGA_ADVERTISER_CRI_CRI_H
#define BIGA_ADVERTISER_CRI_CRI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/grpc/grpc.h"

enum {
    CRI_ID_MAX = 128,
    CRI_TEXT_MAX = 512,     /* names, reasons, messages: cut off there */
    CRI_LABELS_MAX = 64,    /* of one object; more are left out */
    CRI_OBJECTS_MAX = 4096, /* of one list: more is -EPROTO */
    CRI_EXEC_OUTPUT_MAX = 1 << 20,
    CRI_UID_MAX = 64,
    CRI_EVENT_MAX = 1 << 20, /* bytes of one that is watched for */
};

struct cri_pair {
    const char *key, *value;
};
struct cri_pairs {
    const struct cri_pair *list;
    size_t n;
};

struct cri; /* use from one thread at a time */
/* What `config` points to must outlive it. */
int cri_create(const struct grpc_config *config, struct cri **ret_cri,
               struct error *err);
void cri_destroy(struct cri *c); /* NULL allowed */
DEFINE_CLEANUP(cri, struct cri *, cri_destroy)
void cri_reconnect(struct cri *c);

/* As grpc_local_address(). */
void cri_local_address(const struct cri *c, char ret_text[GRPC_ADDRESS_MAX]);

/* How the last call ended. */
const struct grpc_end *cri_end(const struct cri *c);

/* All calls: `ms` is the deadline; 0 or -errno as grpc_call() says it, with
 * the codes of the server that matter made plain: NOT_FOUND -ENOENT,
 * ALREADY_EXISTS (or "is reserved for") -EEXIST, UNIMPLEMENTED -ENOSYS,
 * PERMISSION_DENIED -EACCES, RESOURCE_EXHAUSTED (or "no space left")
 * -ENOSPC, UNAVAILABLE -EAGAIN, DEADLINE_EXCEEDED -ETIMEDOUT. */

struct cri_version {
    char runtime[CRI_TEXT_MAX], version[CRI_TEXT_MAX], api[CRI_TEXT_MAX];
};
int cri_version(struct cri *c, unsigned ms, struct cri_version *ret_version,
                struct error *err);

struct cri_status {
    bool runtime_ready, network_ready;
    char reason[CRI_TEXT_MAX]; /* why not, "" when both are */
};
int cri_status(struct cri *c, unsigned ms, struct cri_status *ret_status,
               struct error *err);

/* --- sandboxes ---------------------------------------------------------- */

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

/* --- containers --------------------------------------------------------- */

struct cri_mount {
    const char *container_path, *host_path; /* of the card */
    bool read_only;
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
    const char *log_path; /* relative to the sandbox's directory */
    /* linux resources; 0 or "": not limited */
    int64_t cpu_period, cpu_quota, cpu_shares, memory_limit, oom_score_adj;
    const char *cpuset_cpus, *cpuset_mems;
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

/* --- images ------------------------------------------------------------- */

struct cri_image {
    bool present;
    char id[CRI_TEXT_MAX];
    uint64_t size;
    /* Whose its processes are: a number, else a name, else nobody said so, and
     * they are root's. */
    int64_t uid; /* -1 none */
    char username[CRI_TEXT_MAX];
    char
        arch[16]; /* "arm64", as in its manifest; "" the runtime does not say */
};
int cri_image_status(struct cri *c, const char *image, unsigned ms,
                     struct cri_image *ret_image, struct error *err);
int cri_pull_image(struct cri *c, const char *image,
                   const struct cri_sandbox_config *sandbox, unsigned ms,
                   struct error *err);

/* --- events ------------------------------------------------------------- */

enum cri_event_kind {
    CRI_EVENT_CREATED = 0,
    CRI_EVENT_STARTED = 1,
    CRI_EVENT_STOPPED = 2,
    CRI_EVENT_DELETED = 3,
};
struct cri_event {
    enum cri_event_kind kind;
    char container_id[CRI_ID_MAX + 1], sandbox_id[CRI_ID_MAX + 1];
    char uid[CRI_UID_MAX]; /* of the pod; "" not said, or longer */
};
/* The events of many runtimes, on the thread of a hub. */
struct cri_watcher {
    /* NULL: of a kind that we do not know.  `size` is what it took on its way,
     * in bytes; nonzero ends it. */
    int (*visit)(void *ctx, const struct cri_event *event, size_t size);
    /* It has ended, and is freed after this: 0 by the runtime, -errno as calls
     * say it, -ENOSYS where the runtime has none: lists are to be polled then;
     * or what `visit` returned. */
    void (*ended)(void *ctx, int code, const struct error *err);
    void *ctx;
};
struct cri_watch;
/* What `config` points to must outlive it; its `reply_max` is not used. */
int cri_watch_open(struct grpc_hub *hub, const struct grpc_config *config,
                   const struct cri_watcher *who, struct cri_watch **ret_watch,
                   struct error *err);
/* Without a word to `ended`. */
void cri_watch_close(struct cri_watch *w);
/* As grpc_flow_stands(). */
bool cri_watch_stands(const struct cri_watch *w);

#endif
