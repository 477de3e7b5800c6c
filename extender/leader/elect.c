#include "extender/leader/elect.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"
#include "lib/kube/election.h"

enum {
    AGAIN_MS = 50,     /* between two calls of `lead` */
    LEASE_TEXT = 4096, /* bytes of our Lease as JSON */
};

struct elect {
    struct elect_config config;
    struct election_config rules;
    struct kube_client *client; /* the thread's; NULL when alone */
    char *collection, *path;    /* of the Leases, and of ours */
    pthread_t thread;

    /* the thread's */
    bool begun; /* `lead` was called, `follow` not since */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct election election; /* written by the thread alone */
    struct error trouble;     /* of the last call; code 0: none */
    bool led;                 /* `lead` has returned 0 */
    bool stopping;
    bool kept; /* elect_keep() */
};

/* --- asking ------------------------------------------------------------- */

bool elect_holds(struct elect *e, int64_t call_ms)
{
    hold_lock(&e->lock);
    return e->led && (e->config.alone ||
                      election_holds(&e->election, clock_ms(), call_ms));
}

void elect_leader(struct elect *e, char ret_identity[254])
{
    const char *who = e->config.identity;
    hold_lock(&e->lock);
    if (!e->config.alone)
        who = e->election.exists ? e->election.seen.holder : "";
    size_t size = strnlen(who, 253);
    memcpy(ret_identity, who, size);
    ret_identity[size] = '\0';
}

bool elect_trouble(struct elect *e, struct error *ret_trouble)
{
    hold_lock(&e->lock);
    bool any = e->trouble.code != 0;
    if (any)
        *ret_trouble = e->trouble;
    return any;
}

/* --- calls -------------------------------------------------------------- */

static void observe(struct elect *e, const struct kube_lease *lease)
{
    hold_lock(&e->lock);
    election_observe(&e->election, lease, clock_ms());
}

/* What a person can do about it; "": not known. */
static const char *hint_of(const struct error *err)
{
    switch (err->code) {
    case EACCES:
        return "are its credentials right, and has it the rights in "
               "deploy/kustomize/base/rbac-extender.yaml?";
    case ENOENT:
        return "create the namespace, as deploy/kustomize/base/"
               "namespaces.yaml does, or name another with --namespace";
    default:
        return "";
    }
}

/* Logged only when it is not the same as before. */
static void fail(struct elect *e, const char *what, const struct error *err)
{
    struct error now = {0};
    const char *hint = hint_of(err);
    (void)error_set(&now, err->code, "%s: %s%s%s", what, err->text,
                    *hint ? ": " : "", hint);
    pthread_mutex_lock(&e->lock);
    bool known = e->trouble.code == now.code &&
                 strcmp(e->trouble.text, now.text) == 0;
    e->trouble = now;
    pthread_mutex_unlock(&e->lock);
    if (!known)
        log_event(LOG_WARN, "election", "text", what, "error", err->text,
                  *hint ? "hint" : NULL, hint, NULL);
}

static void succeed(struct elect *e)
{
    hold_lock(&e->lock);
    e->trouble.code = 0;
}

static int look(struct elect *e, struct error *err)
{
    struct http_answer answer = {.body = STR_INIT(KUBE_ANSWER_MAX)};
    struct kube_request request = {.method = "GET", .path = e->path};
    struct kube_lease lease;
    int r = kube_call(e->client, &request, &answer, err);
    if (r == -ENOENT) {
        observe(e, NULL);
        str_fini(&answer.body);
        return 0;
    }
    if (r == 0)
        r = kube_lease_read(answer.body.data, answer.body.size, &lease, err);
    if (r == 0)
        observe(e, &lease);
    str_fini(&answer.body);
    return r;
}

static int64_t wall_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail on Linux */
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int write_lease(struct elect *e, enum election_move move,
                       struct error *err)
{
    struct http_answer answer = {.body = STR_INIT(KUBE_ANSWER_MAX)};
    cleanup_str struct str body = STR_INIT(LEASE_TEXT);
    struct kube_lease lease, written;
    char time[40];
    kube_lease_time(wall_us(), time);
    election_lease(&e->election, move, time, &lease);
    if (move == ELECTION_CREATE) {
        (void)snprintf(lease.namespace, sizeof lease.namespace, "%s",
                       e->config.namespace);
        (void)snprintf(lease.name, sizeof lease.name, "%s", e->config.name);
    }
    kube_lease_write(&lease, NULL, NULL, &body);
    struct kube_request request = {
        .method = move == ELECTION_CREATE ? "POST" : "PUT",
        .path = move == ELECTION_CREATE ? e->collection : e->path,
        .body = str_text(&body),
        .body_size = body.size,
    };
    int64_t begun = clock_ms();
    int r = kube_call(e->client, &request, &answer, err);
    if (r == 0)
        r = kube_lease_read(answer.body.data, answer.body.size, &written, err);
    str_fini(&answer.body);
    if (r < 0)
        return r;
    hold_lock(&e->lock);
    election_written(&e->election, &written, begun);
    return 0;
}

/* Read the Lease, if need be; then do what the rules of the election say. */
static void take_part(struct elect *e)
{
    struct error err = {0};
    int r = 0;
    if (election_looks(&e->election, clock_ms())) {
        r = look(e, &err);
        if (r < 0) {
            fail(e, "cannot read the Lease", &err);
            return;
        }
    }
    enum election_move move = election_next(&e->election, clock_ms());
    if (move != ELECTION_WAIT)
        r = write_lease(e, move, &err);
    /* somebody else was faster, or deleted it; but a Lease that cannot be
     * created because something is not found has no namespace */
    if (r == -EBUSY || r == -EEXIST ||
        (r == -ENOENT && move != ELECTION_CREATE))
        r = look(e, &err);
    if (r < 0)
        fail(e, "cannot write the Lease", &err);
    else
        succeed(e);
}

/* --- the thread --------------------------------------------------------- */

static void set_led(struct elect *e, bool led)
{
    hold_lock(&e->lock);
    e->led = led;
}

static bool is_ours(const struct elect *e)
{
    return e->config.alone || election_holds(&e->election, clock_ms(), 0);
}

/* Call `lead` or `follow` as the Lease's holder requires; true when `lead` has
 * to be called again soon. */
static bool follow_up(struct elect *e)
{
    if (!is_ours(e)) {
        if (!e->begun)
            return false;
        set_led(e, false);
        log_event(LOG_WARN, "not-leading", "identity", e->config.identity,
                  "leader", e->election.seen.holder, NULL);
        e->config.follow(e->config.ctx);
        e->begun = false;
        return false;
    }
    if (e->led)
        return false;
    e->begun = true;
    if (e->config.lead(e->config.ctx) < 0)
        return true;
    set_led(e, true);
    log_event(LOG_INFO, "leading", "identity", e->config.identity, NULL);
    return false;
}

/* False when the thread has to end. */
static bool wait_ms(struct elect *e, int64_t ms)
{
    int64_t due_ms = clock_ms() + ms;
    hold_lock(&e->lock);
    while (!e->stopping && clock_wait(&e->wake, &e->lock, due_ms))
        ;
    return !e->stopping;
}

static void *elect_thread(void *ctx)
{
    struct elect *e = ctx;
    int64_t due = 0, wait;
    thread_name("elect", NULL);
    do {
        int64_t now = clock_ms();
        if (!e->config.alone && now >= due) {
            take_part(e);
            now = clock_ms();
            due = now + election_wait_ms(&e->election, now);
        } else if (e->config.alone) {
            due = now + ELECTION_RENEW_MS;
        }
        bool again = follow_up(e);
        wait = due - clock_ms();
        if (again && wait > AGAIN_MS)
            wait = AGAIN_MS;
        if (wait < 1)
            wait = 1;
    } while (wait_ms(e, wait));
    return NULL;
}

/* --- start and stop ----------------------------------------------------- */

static struct elect *elect_create(const struct elect_config *config)
{
    struct elect *e = xcalloc(1, sizeof *e);
    cleanup_str struct str path = STR_INIT(LEASE_TEXT);
    e->config = *config;
    e->rules = (struct election_config){
        .identity = config->identity,
        .duration_ms = config->duration_ms ? config->duration_ms
                                           : ELECTION_DURATION_MS,
        .renew_ms = config->renew_ms ? config->renew_ms : ELECTION_RENEW_MS,
        .deadline_ms = config->deadline_ms ? config->deadline_ms
                                           : ELECTION_DEADLINE_MS,
    };
    election_init(&e->election, &e->rules);
    (void)pthread_mutex_init(&e->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&e->wake);
    kube_path_object(&path, KUBE_LEASE_GROUP, config->namespace, "leases",
                     NULL);
    e->collection = xstrdup(str_text(&path));
    str_reset(&path);
    kube_path_object(&path, KUBE_LEASE_GROUP, config->namespace, "leases",
                     config->name);
    e->path = xstrdup(str_text(&path));
    return e;
}

static void elect_free(struct elect *e)
{
    kube_client_destroy(e->client);
    (void)pthread_cond_destroy(&e->wake);
    (void)pthread_mutex_destroy(&e->lock);
    free(e->collection);
    free(e->path);
    free(e);
}

int elect_start(const struct elect_config *config, struct elect **ret_elect,
                struct error *err)
{
    struct elect *e = elect_create(config);
    int r = 0;
    if (!config->alone)
        r = kube_client_create(config->kube, ELECTION_CALL_MS, &e->client, err);
    if (r == 0) {
        int rc = pthread_create(&e->thread, NULL, elect_thread, e);
        if (rc)
            r = error_errno(err, rc, "starting the election's thread");
    }
    if (r < 0) {
        elect_free(e);
        return r;
    }
    *ret_elect = e;
    return 0;
}

void elect_keep(struct elect *e)
{
    hold_lock(&e->lock);
    e->kept = true;
}

void elect_stop(struct elect *e)
{
    struct error err = {0};
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    e->led = false;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    (void)pthread_join(e->thread, NULL); /* it was started, once */
    if (e->begun)
        e->config.follow(e->config.ctx);
    election_resign(&e->election, clock_ms());
    if (!e->config.alone && !e->kept &&
        election_next(&e->election, clock_ms()) == ELECTION_RELEASE &&
        write_lease(e, ELECTION_RELEASE, &err) < 0)
        log_event(LOG_WARN, "election", "text", "the Lease was not given back",
                  "error", err.text, NULL);
    elect_free(e);
}
