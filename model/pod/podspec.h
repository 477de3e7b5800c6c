/* podspec - what a pod runs: its containers, their environment, resources
 * and files, read from the Pod's JSON.  What an xPU card cannot give (a
 * hostPath, a CSI volume, …) is refused by name here, before anything is
 * started.  Pure. */
#ifndef BIGA_MODEL_POD_PODSPEC_H
#define BIGA_MODEL_POD_PODSPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/device_set.h"
#include "model/topo/hugepages.h"

enum {
    PODSPEC_SIZE_MAX = 1 << 20,  /* bytes of the JSON */
    PODSPEC_CONTAINERS_MAX = 16, /* also of init containers */
    PODSPEC_ARGS_MAX = 256,      /* of command, and of args */
    PODSPEC_ENV_MAX = 512,       /* per container */
    PODSPEC_VOLUMES_MAX = 32,
    PODSPEC_REFS_MAX = 1024, /* ConfigMaps and Secrets that a pod names */
    PODSPEC_FILES_MAX = 64,  /* over all volumes */
    PODSPEC_FILES_SIZE_MAX = 1 << 20, /* bytes of all files together */
    PODSPEC_GRACE_S_MAX = 86400,
};

struct podspec_env {
    char *name, *value;
};

struct podspec_mount {
    size_t volume;  /* index */
    char *path;     /* in the container, absolute */
    char *sub_path; /* "" for none; a file or directory of the volume */
    bool read_only;
};

struct podspec_container {
    char *name, *image;
    enum podspec_pull {
        PODSPEC_PULL_IF_NOT_PRESENT,
        PODSPEC_PULL_ALWAYS,
        PODSPEC_PULL_NEVER,
    } pull;
    char **command, **args; /* NULL-terminated */
    size_t n_command, n_args;
    struct podspec_env *env;
    size_t n_env;
    char *working_dir; /* "" the image's */
    struct podspec_mount *mounts;
    size_t n_mounts;
    /* of the card (or the host, for a host pod); 0: not limited */
    uint32_t cpu_request_milli, cpu_limit_milli;
    uint64_t memory_limit;      /* bytes */
    struct hugepages hugepages; /* of the card; a host pod has none */
    /* security context; -1: the image's user, or group */
    int64_t run_as_user, run_as_group;
    bool run_as_non_root, read_only_root, no_new_privileges, privileged;
    char **cap_add, **cap_drop; /* NULL-terminated, "NET_ADMIN" */
};

struct podspec_file {
    char *path; /* in its volume, relative, without ".." */
    uint32_t mode;
    char *data;
    size_t size;
};

struct podspec_volume {
    char *name;
    enum podspec_volume_kind {
        PODSPEC_FILES, /* a configMap, secret, projected or downwardAPI volume
                        * whose contents are known */
        PODSPEC_EMPTY, /* an emptyDir */
    } kind;
    enum podspec_medium { /* of an emptyDir */
                          PODSPEC_DISK,
                          PODSPEC_MEMORY,
                          PODSPEC_HUGEPAGES,
    } medium;
    uint64_t page; /* of HUGEPAGES: the size of each */
    struct podspec_file *files;
    size_t n_files;
};

/* A ConfigMap or Secret that it names, whether it is there or not. */
struct podspec_ref {
    bool secret;
    char *name;
};
void podspec_refs_free(struct podspec_ref *refs, size_t n);

struct podspec {
    char *namespace, *name, *uid;
    enum podspec_restart {
        PODSPEC_RESTART_ALWAYS,
        PODSPEC_RESTART_ON_FAILURE,
        PODSPEC_RESTART_NEVER,
    } restart;
    uint32_t grace_s; /* terminationGracePeriodSeconds, default 30 */
    bool host_pid, host_ipc;
    struct device_sets devices; /* of the card; a host pod has none of them */
    bool exclusive;             /* nobody else has its cards */
    struct podspec_container *init, *containers;
    size_t n_init, n_containers;
    struct podspec_volume *volumes;
    size_t n_volumes;
    struct podspec_ref *refs; /* each once */
    size_t n_refs;
    struct podspec_raw *raw; /* private: texts before "$(NAME)" is replaced */
};

void podspec_destroy(struct podspec *p); /* NULL allowed */
DEFINE_CLEANUP(podspec, struct podspec *, podspec_destroy)

/* Where contents of ConfigMaps and Secrets come from.  Either function may be
 * NULL. */
struct podspec_source {
    /* Call `visit` for each key of the ConfigMap (or Secret, `secret`) of the
     * pod's namespace; 0, or -ENOENT when there is none of that name. */
    int (*each)(void *ctx, bool secret, const char *namespace, const char *name,
                void (*visit)(void *arg, const char *key, const char *data,
                              size_t size),
                void *arg);
    void *ctx;
    /* Called for each key of those that the pod takes something from. */
    void (*taken)(void *ctx, bool secret, const char *name, const char *key);
};

/* Strict about everything that would run; members that only matter to
 * Kubernetes are skipped (schema/pod.md has the list).  -EINVAL names the path
 * and the value: "spec.volumes[1].hostPath: is {"path":"/data"}: cards have no
 * host paths: …"; -ENOENT a ConfigMap, Secret or key that is not there;
 * -EFBIG files of more than PODSPEC_FILES_SIZE_MAX bytes, or more references
 * than PODSPEC_REFS_MAX.
 * Without a source, what comes from there is left empty: for checking only.
 * The pod has the network of its place in any case.  Variables of the
 * form valueFrom.configMapKeyRef, secretKeyRef and fieldRef (metadata.name,
 * namespace, uid, labels['…'], annotations['…'], spec.nodeName) are resolved;
 * "$(NAME)" in values, command and args as Kubernetes does. `node` may be "".
 */
int podspec_parse(const char *json, size_t size, const char *node,
                  const struct podspec_source *source,
                  struct podspec **ret_spec, struct error *err);

/* What its containers use of huge pages at one time. */
void podspec_hugepages(const struct podspec *p, struct hugepages *ret_all);

/* Set a variable of every container (also init); one that the pod sets itself
 * stays as it is.  "$(NAME)" of it in the pod's texts is replaced, too. */
void podspec_set_env(struct podspec *p, const char *name, const char *value);

#endif
