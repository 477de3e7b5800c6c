/* actuator - makes the pods of this node true: on its cards, and on the host
 * where the operator gave it the host's own runtime.
 *
 * Each place (a card, or the host) has a thread with a connection of its own,
 * a breaker and a health of its own, so that nothing waits for a place that
 * is lost but the pods that are on it.  What is wanted is written down
 * (intents.h) before the first call; what is found on a place and is ours but
 * not written down is removed after a grace; what is not ours is never
 * touched. */
#ifndef BIGA_ADVERTISER_ACT_CORE_ACTUATOR_H
#define BIGA_ADVERTISER_ACT_CORE_ACTUATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/card/card.h"
#include "advertiser/act/core/status.h"
#include "advertiser/act/pod/pod.h"
#include "advertiser/cri/cri.h"
#include "advertiser/hostside/host_side.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum {
    ACT_PLACES_MAX = 17, /* 16 cards and the host */
    ACT_ORPHAN_GRACE_MS = 30000,
    ACT_SWEEP_MS = 600000,
};

/* --- the actuator ------------------------------------------------------- */

struct actuator_config {
    const char *dir;     /* its database, and files and logs of the host's
                          * pods; absolute, mode 0700; NULL: in memory (tests) */
    const char *cluster; /* label biga.dev/cluster of all it starts */
    const char *node;
    const char *boot_id;  /* records of another boot of this host are void for
                          * places that are the host */
    const char *card_dir; /* on cards: files and logs of pods are below it;
                           * NULL: "/var/lib/biga" */
    const char *helper_image; /* with /biga-card in it, on each card */
    const char *sysfs;        /* root of a card's functions; NULL: "/sys" */
    const char *dev;          /* of its devices; NULL: "/dev" */
    const char *devlink;      /* the command; NULL: "devlink" */
    const char *hooks_dir;    /* the operator's executables; NULL: none */
    const char *allow;        /* what pods may ask for, as in rights.h */
    bool fed; /* nothing is removed as nobody's before actuator_told() */
    int64_t orphan_grace_ms;   /* 0: ACT_ORPHAN_GRACE_MS (tests) */
    int64_t sweep_ms;          /* between tries of folders that were left; 0:
                       * ACT_SWEEP_MS (tests) */
    int64_t probe_ms, lost_ms; /* 0: health.h's */
    int64_t destroy_ms;        /* the end waits for calls; 0: 3000 (tests) */
    /* Called on any thread when a pod, or a place's health, has changed.  It
     * must not block, nor call back. */
    void (*changed)(void *ctx);
    void *ctx;
};

struct actuator;
int actuator_create(const struct actuator_config *config,
                    struct actuator **ret_actuator, struct error *err);
/* Threads end, pods go on. NULL allowed. */
void actuator_destroy(struct actuator *a);
DEFINE_CLEANUP(actuator, struct actuator *, actuator_destroy)

/* Which places there are now; those that are gone are lost for their pods,
 * and pods there that are to end are gone with them (CardGone).
 * Called again after each look at the host. */
int actuator_set_places(struct actuator *a, const struct act_place *places,
                        size_t n, struct error *err);

/* What host pods get of the devices of this host, from then on; it becomes the
 * actuator's.  Before that they get none. */
void actuator_set_host(struct actuator *a, struct host_side *host);

/* Durable when it returns 0.  The same pod (uid) again is a success, and
 * changes nothing but what may change while it runs.  -EINVAL with the field
 * and value when it cannot run there, -EPERM when it asks for what pods may not
 * have, -ENODATA a ConfigMap or Secret is not there, -ENOENT no such place, or
 * its runtime is not known, -EBUSY the place is drained, -EEXIST another pod of
 * that name is not gone yet. */
int actuator_want(struct actuator *a, const struct act_pod *pod,
                  struct error *err);
/* Is it wanted here, or was it and is not forgotten? */
bool actuator_knows(struct actuator *a, const char *uid);
/* A pod that was held is to begin; once more is a success.  -ENOENT when it is
 * not known. */
int actuator_begin(struct actuator *a, const char *uid, struct error *err);
/* It is to end; `grace_s` < 0: its own. -ENOENT when it is not known. */
int actuator_unwant(struct actuator *a, const char *uid, int64_t grace_s,
                    struct error *err);
/* The same of one that is over, but still to be seen: what its containers wrote
 * last, as files that biga-card or we could read, is kept when it is gone, until
 * actuator_drop_logs(); actuator_logs() has it. */
int actuator_end(struct actuator *a, const char *uid, int64_t grace_s,
                 struct error *err);
/* Pods of which such is kept, by UID; the caller frees the list. */
size_t actuator_saved_logs(struct actuator *a, const char *owner,
                           char (**ret_uids)[ACT_UID_MAX + 1]);
int actuator_drop_logs(struct actuator *a, const char *uid, struct error *err);
/* Unwant all but these; `uids` sorted (the feed is the truth about its pods;
 * pods wanted through the socket stay: `owner` says whose). */
int actuator_keep(struct actuator *a, const char *owner,
                  const char *const *uids, size_t n, struct error *err);
/* A pod that is gone may be forgotten, once everybody knows. */
int actuator_forget(struct actuator *a, const char *uid, struct error *err);

/* Whoever says what is wanted has said all of it: what is on the places and
 * neither written down nor among these (wanted, but it could not be written
 * down yet; any order) is nobody's. */
void actuator_told(struct actuator *a, const char *const *uids, size_t n);
/* Of a pod that is not known: 0 when nothing of it is on its place (NULL: on
 * any), or that is not in this node any more; -EBUSY with what is waited for
 * while it may be. */
int actuator_left(struct actuator *a, const char *place, const char *uid,
                  struct error *err);

/* As last known, without a call to any place.  The caller frees the list. */
size_t actuator_list(struct actuator *a, struct act_pod_status **ret_pods);
/* -ENOENT when it is not known. */
int actuator_find(struct actuator *a, const char *namespace, const char *name,
                  struct act_pod_status *ret_pod);
/* But cards of no use: no runtime is known, nothing of ours is there. */
size_t actuator_places(struct actuator *a,
                       struct act_place_status ret_places[ACT_PLACES_MAX]);
/* How the calls to each place have ended since the start; the caller frees the
 * list. */
size_t actuator_calls(struct actuator *a, struct act_place_calls **ret_places);
/* Pods by state, but helpers. */
void actuator_count_pods(struct actuator *a, size_t ret_states[ACT_STATES]);
/* Of that name or PCI address, also a card of no use; -ENOENT. */
int actuator_find_place(struct actuator *a, const char *name,
                        struct act_place_status *ret_place);
/* How its runtime is reached, for who asks it something by himself; -ENOENT,
 * -EHOSTUNREACH it does not answer now. */
int actuator_describe(struct actuator *a, const char *place,
                      struct act_place *ret_place, struct error *err);
uint64_t actuator_version(struct actuator *a);
/* Until the version is above `version` or the time is over; the version. */
uint64_t actuator_wait(struct actuator *a, uint64_t version, int64_t ms);

/* Durable.  A card that was to be flashed and is out of service since is in
 * service again with `drained` false; -EBUSY while it is being flashed. */
int actuator_drain(struct actuator *a, const char *place, bool drained,
                   struct error *err);

/* What a card is now.  Of a place as actuator_find_place() finds it; -ENOENT,
 * -EINVAL it is the host.  On the caller's thread, for a few commands. */
int actuator_hardware(struct actuator *a, const char *place,
                      struct hardware *ret_hardware, struct error *err);

/* How a card is to be flashed (advertiser/act/flash/flash.h): it is taken out
 * of service, durably, and comes back when it has booted what it was to boot,
 * unless it was drained before; act_place_status has how far it is.  -EINVAL as
 * flash_ask_check(), or the place is the host; -ENOENT; -EBUSY it is being
 * flashed already, or pods run there, or may run there, and not `force`. */
struct act_flash {
    const char *bfb, *sha256, *version; /* "" as there */
    int64_t timeout_ms;
    bool force;
};
int actuator_flash(struct actuator *a, const char *place,
                   const struct act_flash *flash, struct error *err);

/* On the caller's thread, over a connection of its own (short-lived). */
int actuator_exec(struct actuator *a, const char *namespace, const char *name,
                  const char *container, const char *const *argv, size_t n_argv,
                  uint32_t timeout_s, struct cri_exec *ret_exec,
                  struct error *err);
/* Where a runtime streams what is asked (cri_stream.h): for who dials it, with
 * what the place's endpoint has. */
enum act_stream_kind { ACT_EXEC, ACT_ATTACH, ACT_FORWARD };
struct act_stream_ask {
    enum act_stream_kind kind;
    const char *namespace, *name;
    const char *uid;        /* of that pod alone; NULL: any of this name */
    const char *container;  /* "": the first */
    struct cri_command cmd; /* of exec; of attach its streams */
    struct cri_ports ports; /* of port-forward */
    bool host_only;         /* -ENOTSUP for a pod on a card */
};
struct act_stream {
    char url[CRI_TEXT_MAX];
    struct act_place place;
};
/* As actuator_exec(). */
int actuator_stream(struct actuator *a, const struct act_stream_ask *ask,
                    struct act_stream *ret_stream, struct error *err);
/* Each time that a container is begun it has a log of its own. */
struct act_log_ask {
    const char *namespace, *name, *container; /* container "": the first */
    const char *uid;                          /* as of a stream */
    uint32_t attempt; /* the how manieth time; 0: the last */
    uint64_t offset;  /* in that log */
    size_t max;       /* bytes; 0 and more than there may be: ACT_LOG_MAX */
    bool lines, tail; /* as struct pod_log has them; what is kept of a pod that
                       * is gone is text all the same */
    bool previous;    /* with attempt 0: the one before the last; -ENOENT */
};
struct act_log {
    struct str text;  /* as the container wrote it; str_fini() */
    uint32_t attempt; /* where to go on: next time's, at 0, once the end of an
                       * earlier one was reached; 0: not known any more */
    uint64_t next;
};
enum { ACT_LOG_MAX = 8 << 20 };
int actuator_logs(struct actuator *a, const struct act_log_ask *ask,
                  struct act_log *ret_log, struct error *err);

/* One sandbox or container that is on a place, whoever made it. */
struct act_object {
    bool sandbox;
    bool ours;  /* of this cluster and node, by its labels */
    bool known; /* ours, and written down */
    char id[CRI_ID_MAX + 1], sandbox_id[CRI_ID_MAX + 1];
    char namespace[64], pod[ACT_NAME_MAX + 1], uid[64]; /* "" not known */
    char container[64];                                 /* "" a sandbox */
    uint32_t attempt;
    char state[16]; /* "ready", "notready"; "created", "running", "exited",
                     * "unknown" */
};
/* What is there now, sandboxes first; the caller frees the list. As
 * actuator_exec(), on the caller's thread. */
int actuator_objects(struct actuator *a, const char *place,
                     struct act_object **ret_objects, size_t *ret_n,
                     struct error *err);

#endif
