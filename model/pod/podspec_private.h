/* podspec_private - shared by podspec*.c, which read what a pod runs. */
#ifndef BIGA_MODEL_POD_PODSPEC_PRIVATE_H
#define BIGA_MODEL_POD_PODSPEC_PRIVATE_H

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "model/pod/podspec.h"

/* An environment variable whose "$(NAME)" is not replaced yet. */
struct raw_env {
    char *name, *value;
    bool expand; /* literal in the pod: replace "$(NAME)" in it */
    bool shown;  /* later variables may refer to it */
};

/* A container before "$(NAME)" is replaced: variables may still be added. */
struct podspec_raw {
    struct raw_env *env;
    size_t n_env, env_cap;
    char **command, **args; /* NULL-terminated */
};

/* A pod being read. */
struct reading {
    struct podspec *pod;
    const cJSON *metadata;
    const char *node;
    const struct podspec_source *source;
    bool is_host; /* its role: resources are the host's */
    /* in thousandths, by annotations biga.dev/card-…; 0 none, or there are
     * several containers that could be meant */
    int64_t own_cores, own_mib;
    size_t n_files, files_size;        /* over all volumes */
    size_t refs_cap;                   /* of pod->refs */
    int64_t run_as_user, run_as_group; /* of the pod, -1 none */
    bool run_as_non_root;
    struct error *err;
};

/* --- members ------------------------------------------------------------ */

/* How to treat a member of an object; one without a rule is refused. */
struct member_rule {
    const char *name;
    enum {
        MEMBER_READ,   /* looked at elsewhere */
        MEMBER_SKIP,   /* makes no difference on a card */
        MEMBER_REFUSE, /* unless it is null, false or empty */
    } action;
    const char *why; /* MEMBER_REFUSE: what to do instead */
};
struct member_rules {
    const struct member_rule *list;
    size_t n;
};
extern const struct member_rules pod_rules, pod_spec_rules, pod_security_rules;
extern const struct member_rules container_rules, security_rules, port_rules;
extern const struct member_rules mount_rules, resource_rules, env_rules;
extern const struct member_rules volume_rules, projection_rules;

/* Begin on an object and judge its members: false when something is wrong. */
bool members_begin(struct reader *r, const cJSON *json, const char *path,
                   const struct member_rules *rules, struct error *err);
/* Fail with "PATH.NAME: is VALUE: WHY"; -EINVAL. */
int member_refuse(struct reader *r, const char *name, const char *why);
/* Index of an optional text in `list`, `otherwise` when it is absent; -1, and
 * the reader fails, when it is not in the list. */
int member_choice(struct reader *r, const char *name, const char *const *list,
                  size_t n, int otherwise);

/* --- names and paths ------------------------------------------------------ */

/* DNS labels: [a-z0-9-], a letter or digit at both ends. */
bool is_dns_label(const char *text, size_t max);
/* Labels with dots between. */
bool is_dns_name(const char *text, size_t max);
/* Not empty, relative, no part that is empty, "." or "..". */
bool is_inner_path(const char *path);
bool is_clean(const char *text); /* no control characters */

/* --- parts ---------------------------------------------------------------- */

int podspec_read_volumes(struct reading *x, const cJSON *list);
/* What annotations say of the pod's share of its card, for containers that say
 * nothing themselves. */
void podspec_read_own_amounts(struct reading *x);
int podspec_read_containers(struct reading *x, const cJSON *list,
                            const char *path, bool init);
/* hugepages-SIZE of a container's resources; fails the reader. */
void podspec_read_hugepages(const struct reading *x, struct reader *r,
                            const cJSON *limits, const cJSON *requests,
                            struct podspec_container *c);
/* An emptyDir's medium HugePages or HugePages-SIZE; false: it is another. */
bool podspec_hugepages_medium(const char *text, uint64_t *ret_page);
/* Give volumes without a size that of the containers; -EINVAL when there is
 * none, or several, or nobody asks for the size that a volume has. */
int podspec_settle_hugepages(struct reading *x);
/* A quantity in thousandths of `list`; 0 when it is absent. */
int64_t podspec_amount_of(struct reader *r, const cJSON *list, const char *what,
                          const char *name);
/* seccompProfile and appArmorProfile of a securityContext. */
int podspec_read_profiles(struct reader *r, struct error *err);
int podspec_read_env(struct reading *x, const cJSON *container,
                     const char *path, struct podspec_raw *raw);
/* Fill env, command and args of `c` from `raw`, with "$(NAME)" replaced. */
void podspec_expand(struct podspec_container *c, const struct podspec_raw *raw);
void podspec_raw_fini(struct podspec_raw *raw);
void podspec_texts_free(char **list); /* NULL allowed */

/* The value of a fieldRef ("metadata.labels['x']"); -EINVAL when it is known
 * only once the pod runs.  The caller frees `*ret_text`. */
int podspec_field(struct reading *x, struct reader *r, const char *name,
                  bool whole_maps, char **ret_text);

/* Visit all entries of a ConfigMap or Secret; -ENOENT with the path when it
 * does not exist, unless `optional`.  Without a source nothing is visited. */
struct lookup {
    bool secret, optional;
    const char *name;
    const char *path; /* of the reference, for errors */
    /* returns whether the pod uses the entry */
    bool (*visit)(void *arg, const char *key, const char *data, size_t size);
    void *arg;
};
int podspec_lookup(struct reading *x, const struct lookup *look);

#endif
