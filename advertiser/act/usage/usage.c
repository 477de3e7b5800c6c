#include "advertiser/act/usage/usage.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

/* A place that was there once; its connection and its due time are the
 * thread's. */
struct used_place {
    char name[ACT_NAME_MAX + 1]; /* never changes */
    struct connection c;
    int64_t due_ms, answered_ms;
    bool complained;
    struct usage_book book; /* under the lock */
};

struct usage {
    struct usage_config config;
    struct actuator *a;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
    uint64_t version;
    struct used_place *places[ACT_PLACES_MAX];
    size_t n_places;
};

/* --- a look ---------------------------------------------------------------- */

static struct used_place *find_place(struct usage *u, const char *name)
{
    for (size_t i = 0; i < u->n_places; i++)
        if (strcmp(u->places[i]->name, name) == 0)
            return u->places[i];
    return NULL;
}

/* NULL: there is no room for one more. */
static struct used_place *place_for(struct usage *u, const char *name)
{
    struct used_place *p = find_place(u, name);
    if (p || u->n_places == ARRAY_LEN(u->places))
        return p;
    p = xcalloc(1, sizeof *p);
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    hold_lock(&u->lock);
    u->places[u->n_places++] = p;
    return p;
}

static void place_free(struct used_place *p)
{
    connection_close(&p->c);
    usage_book_fini(&p->book);
    free(p);
}

/* The connection is to what the place is now. */
static int connect_to(struct usage *u, struct used_place *p, struct error *err)
{
    struct act_place now;
    int e = actuator_describe(u->a, p->name, &now, err);
    if (e < 0)
        return e;
    if (memcmp(&now, &p->c.place, sizeof now) != 0) {
        connection_close(&p->c);
        p->c.place = now;
    }
    return connection_open(&p->c, err);
}

static void complain(struct used_place *p, const struct error *err)
{
    if (!p->complained)
        log_event(LOG_WARN, "usage-unknown", "place", p->name, "error",
                  err->text, NULL);
    p->complained = true;
}

static struct usage_time time_now(void)
{
    return (struct usage_time){.ms = clock_ms(), .wall_s = clock_wall_s()};
}

/* A moment without an answer is none. */
static bool lose(struct usage *u, struct used_place *p)
{
    if (clock_ms() - p->answered_ms < u->config.old_ms)
        return false;
    hold_lock(&u->lock);
    bool changed = usage_book_lose(&p->book, time_now(), u->version);
    u->version += changed;
    return changed;
}

static bool look_at(struct usage *u, struct used_place *p)
{
    struct cri_usages now = {0};
    struct error err = {0};
    int e = connect_to(u, p, &err);
    if (e == 0)
        e = cri_list_usage(p->c.cri, USAGE_CALL_MS, &now, &err);
    if (e < 0) {
        connection_close(&p->c);
        p->due_ms = clock_ms() + u->config.after_ms;
        complain(p, &err);
        return false;
    }
    p->complained = false;
    p->answered_ms = clock_ms();
    pthread_mutex_lock(&u->lock);
    bool changed = usage_book_take(&p->book, &now, time_now(), u->version);
    u->version += changed;
    pthread_mutex_unlock(&u->lock);
    cri_usages_fini(&now);
    return changed;
}

static bool is_stopping(struct usage *u)
{
    hold_lock(&u->lock);
    return u->stopping;
}

/* One after the other: a place that hangs is soon known not to answer. */
static bool look(struct usage *u)
{
    struct act_place_status list[ACT_PLACES_MAX];
    size_t n = actuator_places(u->a, list);
    bool changed = false;
    for (size_t i = 0; i < n && !is_stopping(u); i++) {
        bool asked = list[i].endpoint[0] && (list[i].health == ACT_READY ||
                                             list[i].health == ACT_DRAINED);
        struct used_place *p = asked ? place_for(u, list[i].name)
                                     : find_place(u, list[i].name);
        if (p && asked && clock_ms() >= p->due_ms)
            changed |= look_at(u, p);
        if (p)
            changed |= lose(u, p);
    }
    return changed;
}

static void *looker(void *usage)
{
    struct usage *u = usage;
    thread_name("usage", NULL);
    for (;;) {
        int64_t due = clock_ms() + u->config.look_ms;
        if (look(u))
            u->config.changed(u->config.ctx);
        pthread_mutex_lock(&u->lock);
        while (!u->stopping && clock_wait(&u->wake, &u->lock, due))
            ;
        bool ends = u->stopping;
        pthread_mutex_unlock(&u->lock);
        if (ends)
            return NULL;
    }
}

/* --- from start to end ----------------------------------------------------- */

static void usage_free(struct usage *u)
{
    for (size_t i = 0; i < u->n_places; i++)
        place_free(u->places[i]);
    (void)pthread_cond_destroy(&u->wake);
    (void)pthread_mutex_destroy(&u->lock);
    free(u);
}

int usage_start(struct actuator *a, const struct usage_config *config,
                struct usage **ret_usage, struct error *err)
{
    struct usage *u = xcalloc(1, sizeof *u);
    u->config = *config;
    u->config.look_ms = config->look_ms ? config->look_ms : USAGE_MS;
    u->config.after_ms = config->after_ms ? config->after_ms : USAGE_AFTER_MS;
    u->config.old_ms = config->old_ms ? config->old_ms : USAGE_OLD_MS;
    u->a = a;
    (void)pthread_mutex_init(&u->lock, NULL);
    clock_wait_init(&u->wake);
    int r = pthread_create(&u->thread, NULL, looker, u);
    if (r) {
        usage_free(u);
        return error_errno(err, r, "cannot start a thread");
    }
    *ret_usage = u;
    return 0;
}

void usage_stop(struct usage *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->lock);
    u->stopping = true;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    (void)pthread_join(u->thread, NULL); /* a thread of ours: joinable */
    usage_free(u);
}

/* --- what is shown --------------------------------------------------------- */

bool usage_find(struct usage *u, const char *place, const char *uid,
                struct usage_now *ret_now)
{
    *ret_now = (struct usage_now){.known = false};
    if (!u)
        return false;
    hold_lock(&u->lock);
    for (size_t i = 0; i < u->n_places; i++) {
        const struct usage_book *b = &u->places[i]->book;
        if (strcmp(u->places[i]->name, place) != 0)
            continue;
        const struct usage_now *now = uid ? usage_book_find(b, uid)
                                          : &b->all.shown;
        if (now)
            *ret_now = *now;
        return ret_now->known;
    }
    return false;
}

uint64_t usage_version(struct usage *u)
{
    if (!u)
        return 0;
    hold_lock(&u->lock);
    return u->version;
}
