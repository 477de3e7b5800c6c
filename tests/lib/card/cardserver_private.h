/* cardserver_private - what the files of cardserver share: cardserver.c
 * answers, cardserver_look.c is for tests to look at it and to change it. */
#ifndef BIGA_TESTS_LIB_CARD_CARDSERVER_PRIVATE_H
#define BIGA_TESTS_LIB_CARD_CARDSERVER_PRIVATE_H

#include <pthread.h>

#include "advertiser/cri/cri.pb-c.h"
#include "tests/lib/card/cardserver.h"

/* What it keeps of either is the config that it was made with. */
struct sandbox {
    char id[65];
    bool ready;
    Cri__RunPodSandboxRequest *made; /* NULL: a free place */
};
struct container {
    char id[65];
    Cri__ContainerState state;
    Cri__CreateContainerRequest *made;
};

enum {
    METHODS = 23,
    IMAGES_KEPT = 8,
    EVENTS_KEPT = 1024,
    EVENTS_POLL_MS = 50, /* how soon an end of either side is noticed */
};

struct event {
    char id[65], sandbox_id[65], uid[65];
    Cri__ContainerEventType type;
};

#define EVENTS "GetContainerEvents"

/* A call that waits for its card to be thawed. */
struct held {
    struct held *next;
    size_t method;
    int64_t due_ms; /* its deadline */
};

struct cardserver {
    struct h2_server *h2;
    struct cardserver_times times;
    pthread_mutex_t lock;
    struct sandbox sandboxes[CARDSERVER_OBJECTS];
    struct container containers[CARDSERVER_OBJECTS];
    unsigned number; /* of servers in this process */
    unsigned next_id, n_calls;
    int64_t taken_ns;
    unsigned called[METHODS]; /* of each method */
    struct {
        int code;
        unsigned times;
    } faults[METHODS];
    pthread_cond_t thawed;
    pthread_cond_t told; /* of events */
    int end_code;        /* of containers */
    bool frozen, ending;
    bool stuck[METHODS]; /* as if it were frozen */
    struct held *held;
    enum cardserver_events has_events;
    struct event events[EVENTS_KEPT];
    uint64_t n_events;            /* ever; the last are kept */
    char images[IMAGES_KEPT][65]; /* that it lists; "" none */
    int exec_code;
    char *exec_out, *exec_err;
    struct str asked;            /* of the last ExecSync */
    const char *exec_refused;    /* a word; NULL none */
    struct cardserver_used used; /* by each container */
    char *logs_dir;              /* NULL: none */
    size_t logs_max;
};

/* With the lock held, all of them. */

static inline bool cardserver_holds(const struct cardserver *s, size_t method)
{
    return s->frozen || s->stuck[method];
}

/* Its place in `called` and `faults`. */
size_t cardserver_method(const char *name);
bool cardserver_has_labels(Cri__Pair **labels, size_t n, Cri__Pair **wanted,
                           size_t n_wanted);
/* What biga-card would write, of a log. */
void cardserver_log(struct cardserver *s, char **cmd, bool ended,
                    Cri__ExecSyncResponse *m);
/* ListContainerStats: the same of each container that runs. */
void cardserver_list_usage(struct cardserver *s, struct str *reply);
/* ListImages, RemoveImage. */
void cardserver_list_images(struct cardserver *s, struct str *reply);
void cardserver_remove_image(struct cardserver *s, const char *request,
                             size_t size);
/* By itself, or because it was told to. */
void cardserver_container_ends(struct cardserver *s, struct container *k);

#endif
