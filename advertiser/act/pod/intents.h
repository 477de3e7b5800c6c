/* intents - what is wanted on this node, and how far it is: written down,
 * durable, before the call that it announces, so that whoever comes after a
 * crash knows every name under which something may have been made.
 *
 * SQLite, one connection, in the state directory, with a mark beside it
 * (dbmark.h) of how many commits there were.  A damaged file, and one with
 * fewer commits than that, is moved aside and a new one begun with no more than
 * what was drained: the feed says again what is wanted, and what is found on a
 * card under a wanted pod's UID is adopted.  Calls may come from any thread. */
#ifndef BIGA_ADVERTISER_ACT_POD_INTENTS_H
#define BIGA_ADVERTISER_ACT_POD_INTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/pod/pod.h"

enum {
    INTENT_BOOT_MAX = 63,
    INTENT_CONTAINERS_MAX = 32,      /* init containers and others of one pod */
    INTENT_NAME_MAX = 63,            /* of a container */
    INTENT_FUNCTIONS_MAX = 287,      /* 16 PCI addresses */
    INTENT_LOG_MAX = 16 << 10,       /* bytes of what one container wrote */
    INTENT_LOGS_MAX = 1024,          /* of containers: the newest are kept */
    INTENT_LEFTOVER_DIRS_MAX = 1024, /* folders, too */
};

/* A container by its name.  An attempt counts up over all sandboxes of the
 * pod and is never used for two containers. */
struct intent_container {
    char name[INTENT_NAME_MAX + 1];
    uint32_t attempt;        /* the newest announced, from 1; 0 none yet */
    char id[CRI_ID_MAX + 1]; /* of that; "" not known to have been made */
    uint32_t restarts;       /* after it had ended */
    bool exited;             /* the newest attempt that is known ended with: */
    int32_t exit_code;
    char reason[ACT_REASON_MAX + 1];
};

struct intent_env {
    char *key, *value;
};

struct intent {
    /* What is wanted: as in struct act_pod, owned; texts are never NULL. */
    char *owner, *namespace, *name, *uid, *place, *pair_key, *hook;
    bool is_host, restarts;
    char *spec, *files;
    size_t spec_size, files_size;
    struct intent_env *env;
    size_t n_env;
    int sriov_vfs;

    bool held; /* waits for actuator_begin() */

    /* Not any more. */
    bool stop;
    int64_t grace_s; /* < 0: the pod's own */
    bool keep;       /* what it wrote last is kept when it is gone */

    /* How far it is. */
    enum act_state state;
    uint32_t attempt;             /* of the newest sandbox announced; 0 none */
    char sandbox[CRI_ID_MAX + 1]; /* of that; "" not known to have been made */
    char boot[INTENT_BOOT_MAX + 1]; /* of the place when it was made; "" */
    bool ran;                       /* it was up once */
    /* On the host: virtual functions of its cards that nobody else is given,
     * addresses with ',' between. */
    char functions[INTENT_FUNCTIONS_MAX + 1];
    char reason[ACT_REASON_MAX + 1];
    char message[ACT_MESSAGE_MAX];
    struct intent_container containers[INTENT_CONTAINERS_MAX];
    size_t n_containers;
};

/* Copies; NULL texts become "". */
struct intent *intent_create(const struct act_pod *pod);
void intent_destroy(struct intent *i); /* NULL allowed */
DEFINE_CLEANUP(intent, struct intent *, intent_destroy)
/* The container of that name; NULL when there is none. */
struct intent_container *intent_container_find(struct intent *i,
                                               const char *name);
/* The same; made when there is none; NULL when the pod has
 * INTENT_CONTAINERS_MAX others. */
struct intent_container *intent_container(struct intent *i, const char *name);

struct intents;
/* `dir` is made (0700) when it is missing, NULL is in memory. -EBUSY: another
 * process uses it. */
int intents_open(const char *dir, struct intents **ret_intents,
                 struct error *err);
void intents_close(struct intents *s); /* NULL allowed */
DEFINE_CLEANUP(intents, struct intents *, intents_close)

/* Each is durable when it returns 0. */
int intents_put(struct intents *s, const struct intent *i, struct error *err);
/* Only what changes after intents_put(): held, stop and grace, and how far it
 * is. -ENOENT: it was deleted, or never put. */
int intents_save(struct intents *s, const struct intent *i, struct error *err);
int intents_delete(struct intents *s, const char *uid, struct error *err);
int intents_drain(struct intents *s, const char *place, bool drained,
                  struct error *err);

/* What a container of a pod that has ended wrote last.  It outlives the
 * intent. */
struct intent_log {
    const char *uid, *container, *owner, *namespace, *name;
    bool init;
    uint64_t next; /* where its log went on */
    const char *text;
    size_t size; /* at most INTENT_LOG_MAX */
};
/* In place of that container's; the oldest beyond INTENT_LOGS_MAX go. */
int intents_put_log(struct intents *s, const struct intent_log *log,
                    struct error *err);
/* Of the pod of that uid, or (NULL) the newest of that name; container "": its
 * first.  -ENOENT: there is none. */
int intents_find_log(struct intents *s, const struct intent_log *names,
                     struct str *ret_text, uint64_t *ret_next,
                     struct error *err);
int intents_delete_logs(struct intents *s, const char *uid, struct error *err);
/* UIDs in order, each once. */
int intents_each_log(struct intents *s, const char *owner,
                     void (*visit)(void *ctx, const char *uid), void *ctx,
                     struct error *err);

/* The folder of a pod that is gone, which could not be removed there.  The
 * oldest beyond INTENT_LEFTOVER_DIRS_MAX are forgotten. */
int intents_put_leftover_dir(struct intents *s, const char *place,
                             const char *uid, struct error *err);
int intents_delete_leftover_dir(struct intents *s, const char *place,
                                const char *uid, struct error *err);
int intents_each_leftover_dir(struct intents *s,
                              void (*visit)(void *ctx, const char *place,
                                            const char *uid),
                              void *ctx, struct error *err);

/* By UID. `visit` owns the intent. */
typedef void intents_visit_f(void *ctx, struct intent *i);
int intents_each(struct intents *s, intents_visit_f *visit, void *ctx,
                 struct error *err);
/* By name. */
int intents_each_drained(struct intents *s,
                         void (*visit)(void *ctx, const char *place), void *ctx,
                         struct error *err);

#endif
