/* reflector_private - the parts of a reflector, for reflector*.c and tests. */
#ifndef BIGA_LIB_KUBE_REFLECTOR_PRIVATE_H
#define BIGA_LIB_KUBE_REFLECTOR_PRIVATE_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/backoff.h"
#include "lib/base/jscan.h"
#include "lib/base/str.h"
#include "lib/http/http_curl.h"
#include "lib/kube/access.h"
#include "lib/kube/jsplit.h"
#include "lib/kube/list.h"
#include "lib/kube/reflector.h"

enum {
    REFUSAL_MAX = 65536,  /* bytes kept of the body of an error */
    REFUSED_MAX = 3,      /* invalid answers in a row until it lists again */
    RETRY_MAX_MS = 60000, /* longer values of Retry-After are cut to this */
};

struct reflector_tuning {
    unsigned page;                             /* objects per page of a list */
    size_t object_max;                         /* bytes of one object */
    int64_t list_silence_ms, watch_silence_ms; /* end a silent call */
    int64_t wait_min_ms, wait_max_ms;          /* back-off after failures */
    int64_t forbidden_max_ms; /* the same, for 403 on optional collections */
    int64_t absent_ms;        /* until one that is absent is asked for again */
    int64_t short_ms; /* a watch that ends sooner, without an event, failed */
    int64_t good_ms;  /* a watch that lasts this long resets the back-off */
};
extern const struct reflector_tuning reflector_tuning_default;
int reflector_start_tuned(const struct kube_config *config,
                          const struct reflector_kind *kinds, size_t n,
                          const struct reflector_tuning *tuning,
                          struct reflector **ret_reflector, struct error *err);

/* --- reading answers (reflector_read.c) ----------------------------------- */
/* EVENT_PUT: ADDED or MODIFIED. */
enum event_type { EVENT_PUT, EVENT_GONE, EVENT_BOOKMARK, EVENT_ERROR };
struct event {
    enum event_type type;
    struct jtext object;
    char version[KUBE_VERSION_MAX + 1]; /* "" of an EVENT_ERROR */
};
int event_read(const char *json, size_t size, struct event *ret_event,
               struct error *err);
struct status {
    int64_t code; /* 0: none */
    char message[300];
};
/* Read a Status object; of any other text, its beginning as the message. */
void status_read(const char *json, size_t size, struct status *ret_status);

/* --- one collection (reflector_follow.c) ---------------------------------- */
struct follow {
    struct reflector_kind kind;
    struct reflector *owner;
    struct reflector_state state; /* guarded by the reflector's lock */
    CURL *easy;
    struct curl_slist *headers;
    char reason[CURL_ERROR_SIZE];
    bool active;    /* a call is under way */
    bool answered;  /* it was answered with 200 */
    bool splitting; /* `split` is in use */
    bool fresh;     /* the next call uses a new connection */
    unsigned files; /* reflector.files when the last call began */
    bool told;      /* handler.list was called for the current list */
    bool progress;  /* the call has brought a whole object */
    bool away;      /* the last call got no answer at all */
    bool proven;    /* a watch has worked since the last list, if any */
    char version[KUBE_VERSION_MAX + 1]; /* to watch from; "": list */
    char listed[KUBE_VERSION_MAX + 1]; /* of the list under way; "": page one */
    struct str next;                   /* its continue */
    atomic_bool relist;                /* somebody asks for it */
    bool whole; /* a page came too late: list without pages once */
    struct jsplit split;
    struct str refusal; /* the body of an answer that is not 200 */
    size_t n_listed;
    int64_t begun_ms, heard_ms;
    int64_t due_ms; /* when not active: begin the next call */
    unsigned refused;
    uint64_t random;
    struct backoff backoff;
    struct error err; /* why the current call has failed; code 0: it has not */
};

struct reflector {
    CURLM *multi;
    pthread_t thread;
    atomic_bool stopping;
    struct http_config http;
    struct http_target target;
    struct kube_access *access;
    unsigned files; /* how often files of certificates have changed */
    struct reflector_tuning tuning;
    pthread_mutex_t *lock; /* guards the states */
    struct follow follows[REFLECTOR_KINDS_MAX];
    size_t n;
};

int follow_init(struct follow *f, struct reflector *owner,
                const struct reflector_kind *kind, struct error *err);
void follow_fini(struct follow *f);
/* Begin a call that is due, end one that takes too long.  Returns when to call
 * this again. */
int64_t follow_step(struct follow *f, int64_t now);
/* Its call has ended. */
void follow_done(struct follow *f, CURLcode code, int64_t now);

#endif
