/* serve_private - what the files of serve share: serve.c starts and ends,
 * serve_route.c says where a call goes, serve_home.c asks the home,
 * serve_known.c, serve_list.c and serve_event.c tell what is known and what
 * happens, serve_far_list.c keeps what a list has of one remote, serve_exit.c
 * sees to containers that have ended, serve_files.c to helper, volumes and logs
 * of remotes; serve_job.h has what is done on one remote. */
#ifndef BIGA_ROUTER_SERVE_SERVE_PRIVATE_H
#define BIGA_ROUTER_SERVE_SERVE_PRIVATE_H

#include "advertiser/act/card/health_file.h"
#include "lib/base/str.h"
#include "lib/grpcd/grpcd_relay.h"
#include "router/keep/keep.h"
#include "router/log/log_caller.h"
#include "router/log/log_copier.h"
#include "router/log/log_state.h"
#include "router/remote/remote.h"
#include "router/serve/event_feed.h"
#include "router/serve/grant.h"
#include "router/serve/helper.h"
#include "router/serve/line.h"
#include "router/serve/serve.h"
#include "router/serve/serve_collect.h"
#include "router/serve/serve_exit.h"
#include "router/serve/serve_far_list.h"
#include "router/serve/serve_metrics.h"
#include "router/stream/stream_relay.h"
#include "router/volume/volume_sync.h"
#include "router/wire/container_event.h"
#include "router/wire/mount.h"
#include "router/wire/told.h"

enum {
    SERVE_FRESH_MS = 2000,  /* for a list after a change; then without it */
    SERVE_STATUS_MS = 2000, /* of one that is not known yet */
    SERVE_STATS_MS = 1000,  /* of one remote; then those of before */
    SERVE_EXEC_MS = 600000, /* of a command without a time of its own */
    SERVE_MARGIN_MS = 5000, /* for a runtime to say that it was too late */
    SERVE_HEAR_MS = 300,    /* at the start, for remotes to be listed */
    SERVE_EXIT_MS = 10000,  /* for a log's end; then it is told without */
    SERVE_REPLY_MAX = TOLD_MAX,
    SERVE_ADDRESS_MAX = 64,
};

/* One remote, and all that is had for it. */
struct far {
    struct serve *s;
    atomic_bool gone; /* it is no remote of ours any more */
    struct remote *remote;
    struct lines *lines; /* for typed calls */
    struct helper *helper;
    pthread_mutex_t preparing; /* of the card, for one pod at a time */
    /* under the lock `hearing`: */
    bool heard; /* it is ready, or lost */
    struct just_made *made;
    size_t n_made, cap_made;
    struct far_list *told[2]; /* the last lists of sandboxes, of containers */
    char address[SERVE_ADDRESS_MAX]; /* of pods with its network; "" unknown */
    char host[ACT_NAME_MAX + 1];     /* of its endpoint, as it is written */
};

struct serve {
    struct serve_config config; /* its texts are in the arena */
    struct arena arena;
    struct mount_rules rules; /* as in the settings */
    struct keep *keep;
    /* from the beginning on, and none is taken away */
    struct far fars[SERVE_FARS_MAX];
    atomic_size_t n_fars;
    struct remote_beat *beat;
    struct event_feed *events;
    struct volume_sync *volumes;
    struct log_caller *log_caller;
    struct log_copier *logs; /* NULL: in memory (tests) */
    struct stream_relay *streams;
    struct exits *exits;
    struct collector *collector;
    struct metrics *metrics;
    struct lines *home_lines;
    char *home_url; /* "unix:///PATH" */
    pthread_mutex_t hearing;
    pthread_cond_t heard;
    bool began_empty;        /* nothing was written down when it began */
    pthread_mutex_t telling; /* guards health and untold */
    struct health_file health;
    bool untold;       /* the file does not have it yet */
    char *health_path; /* NULL: in memory (tests) */
    struct grpcd *server;
    struct grpcd_relay *home;
};

/* The next that is there at or after `*i` (begin with 0); NULL: no more. */
struct far *serve_next(struct serve *s, size_t *i);
/* NULL: there is none of that name. */
struct far *serve_far(struct serve *s, const char *name);

/* --- serve_route.c -------------------------------------------------------- */

grpcd_route_f serve_route; /* ctx: struct serve *, as of these: */
grpcd_handler_f serve_list, serve_list_stream, serve_events, serve_tell_status;

/* --- serve_known.c --------------------------------------------------------- */

/* Of a remote, as of one moment; use from one thread. */
struct knowing {
    struct far *far;
    struct keep_view *view;
    struct arena arena;
    struct known known; /* to be handed over */
    int64_t now_ns;     /* the end of this second */
};
void knowing_init(struct knowing *k, struct far *far);
void knowing_fini(struct knowing *k);

/* --- serve_home.c ---------------------------------------------------------- */

/* As remote.h has it; ctx: struct far *. */
int serve_home_has(void *ctx, const char *id, struct error *err);

/* --- serve_health.c -------------------------------------------------------- */

int serve_health_open(struct serve *s, const struct serve_config *config,
                      struct error *err);
void serve_health_tell(struct far *far, struct remote *r,
                       enum act_health health);

/* --- serve_flow.c ---------------------------------------------------------- */

/* A stream of the home's for a call, which gives method and request. */
struct serve_flow {
    struct grpcd_call *call;
    grpc_message_f *visit; /* each message; nonzero ends it */
    /* Before each wait, and after begun()'s hub was woken; negative ends it.
     * NULL: nothing. */
    int (*turn)(void *ctx);
    void (*begun)(void *ctx, struct grpc_hub *hub); /* NULL: nothing */
    void (*over)(void *ctx); /* the hub is about to go; NULL: nothing */
    void *ctx;
    int code; /* how it ended, for the caller's own end */
    char text[GRPC_MESSAGE_MAX];
};
/* Blocks until it has ended or the call is cancelled; 0: it ended well. */
int serve_flow_run(struct serve *s, struct serve_flow *flow);

/* --- serve_event.c --------------------------------------------------------- */

void serve_event_changed(void *ctx, struct remote *r,
                         const struct remote_change *c); /* ctx: struct far * */
/* It is told as ended now. */
void serve_event_exited(struct far *far, const char *id);

/* --- serve_mounts.c -------------------------------------------------------- */

enum { SERVE_MOUNTS_MAX = MOUNT_MAX };
struct serve_mounts {
    struct mount *list;
    size_t n;
    struct arena arena;
};
void serve_mounts_read(const struct kept *k, const struct mount_rules *rules,
                       struct serve_mounts *ret_mounts);
void serve_mounts_fini(struct serve_mounts *m);

/* --- serve_files.c --------------------------------------------------------- */

int serve_files_open(struct serve *s, struct error *err);
void serve_files_stop(struct serve *s); /* nothing is written from then on */
void serve_files_close(struct serve *s);
/* What was there before this process goes on: logs, volumes. */
void serve_files_adopt(struct serve *s);
/* Where the pod's logs are on a remote, and what one is called for all time. */
char *serve_log_dir(const struct serve *s, const char *uid);
void serve_log_key(const char *uid, const char *container, uint32_t attempt,
                   char ret_key[LOG_KEY_MAX + 1]);
/* How much room there is on the disk of its images. */
int serve_files_disk(struct far *far, unsigned ms, struct image_disk *ret_disk);
/* The folder of logs there. */
int serve_files_log_dir(struct far *far, const char *path, int64_t due_ms,
                        struct error *err);

#endif
