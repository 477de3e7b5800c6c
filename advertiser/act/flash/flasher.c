#include "advertiser/act/flash/flasher.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "model/topo/topo.h"

enum { CARDS_MAX = 64 }; /* also of those that are not there any more */

struct card {
    struct flasher *f;
    char name[TOPO_ID_MAX + 1];
    struct flasher_view view;
    bool out;                   /* of service */
    bool drained;               /* by the operator, besides */
    struct flash_record before; /* why it was out when this flash began */
    /* Of the flash that runs. */
    struct flash_ask ask;
    char *texts[5]; /* which it points to */
    pthread_t thread;
    bool joins; /* the thread is to be waited for */
};

struct flasher {
    struct flasher_config config;
    pthread_mutex_t lock; /* of all below */
    bool stopping;
    struct card *cards[CARDS_MAX];
    size_t n;
};

const char *flasher_state_name(enum flasher_state state)
{
    static const char *const names[] = {
        [FLASHER_NONE] = "",         [FLASHER_RUNNING] = "running",
        [FLASHER_FAILED] = "failed", [FLASHER_REFUSED] = "refused",
        [FLASHER_DONE] = "done",
    };
    return names[state];
}

static struct card *find_locked(struct flasher *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->cards[i]->name, name) == 0)
            return f->cards[i];
    return NULL;
}

static struct card *add_locked(struct flasher *f, const char *name)
{
    struct card *c = find_locked(f, name);
    if (c || f->n == CARDS_MAX)
        return c;
    c = xcalloc(1, sizeof *c);
    c->f = f;
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    f->cards[f->n++] = c;
    return c;
}

static void end_locked(struct card *c, enum flasher_state state,
                       const char *reason, const char *message)
{
    c->view = (struct flasher_view){.state = state};
    c->out = state == FLASHER_FAILED;
    (void)snprintf(c->view.reason, sizeof c->view.reason, "%s", reason);
    (void)snprintf(c->view.message, sizeof c->view.message, "%s", message);
}

/* --- its thread ----------------------------------------------------------- */

static bool keep(void *ctx)
{
    struct card *c = ctx;
    hold_lock(&c->f->lock);
    return !c->f->stopping;
}

static void told(void *ctx, const struct flash_said *said)
{
    struct card *c = ctx;
    struct flasher *f = c->f;
    (void)pthread_mutex_lock(&f->lock);
    c->view.percent = said->percent;
    memcpy(c->view.phase, said->phase, sizeof c->view.phase);
    (void)pthread_mutex_unlock(&f->lock);
    f->config.changed(f->config.ctx, c->name);
}

static void end(struct card *c, const struct flash_outcome *o)
{
    struct flasher *f = c->f;
    char again[FLASH_MESSAGE_MAX];
    bool serves = !o->reason[0] || (!o->touched && !c->before.reason[0]);
    log_event(o->reason[0] ? LOG_WARN : LOG_INFO, "card-flash-ended", "card",
              c->name, "reason", o->reason, "message", o->message, NULL);
    f->config.ended(f->config.ctx, c->name, serves);
    (void)pthread_mutex_lock(&f->lock);
    if (!o->reason[0]) {
        end_locked(c, FLASHER_DONE, "", o->message);
    } else if (serves) {
        end_locked(c, FLASHER_REFUSED, o->reason, o->message);
    } else if (o->touched) {
        end_locked(c, FLASHER_FAILED, o->reason, o->message);
    } else { /* as it was: out, and what is written down says why */
        (void)snprintf(again, sizeof again,
                       "%.200s; and flashing it again: %.40s: %.240s",
                       c->before.message, o->reason, o->message);
        end_locked(c, FLASHER_FAILED, c->before.reason, again);
    }
    (void)pthread_mutex_unlock(&f->lock);
    f->config.changed(f->config.ctx, c->name);
}

static void *run(void *arg)
{
    struct card *c = arg;
    const struct prep_config config = {.hooks_dir = c->f->config.hooks_dir,
                                       .dir = c->f->config.dir};
    struct flash_outcome o = {0};
    struct error err = {0};
    thread_name("flash", c->name);
    int e = flash_run(&config, &c->ask, &o, &err);
    if (e == -ECANCELED)
        return NULL; /* this process ends */
    if (e < 0) {
        o = (struct flash_outcome){.reason = "StateNotWritten",
                                   .touched = true};
        (void)snprintf(o.message, sizeof o.message, "%s", err.text);
    }
    end(c, &o);
    return NULL;
}

/* --- beginning ------------------------------------------------------------ */

static void texts_free(struct card *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->texts); i++)
        free(steal(&c->texts[i]));
}

static void texts_take(struct card *c, const struct flash_ask *ask)
{
    texts_free(c);
    c->ask = *ask;
    c->ask.card = c->name;
    c->ask.pci = c->texts[0] = xstrdup(ask->pci);
    c->ask.address = c->texts[1] = xstrdup(ask->address);
    c->ask.bfb = c->texts[2] = xstrdup(ask->bfb);
    c->ask.sha256 = c->texts[3] = xstrdup(ask->sha256);
    c->ask.version = c->texts[4] = xstrdup(ask->version);
    c->ask.told = told;
    c->ask.keep = keep;
    c->ask.ctx = c;
}

static int begin_locked(struct card *c, const struct flash_ask *ask,
                        struct error *err)
{
    const struct flasher_view was = c->view;
    c->before = (struct flash_record){0};
    if (c->out) {
        memcpy(c->before.reason, was.reason, sizeof c->before.reason);
        memcpy(c->before.message, was.message, sizeof c->before.message);
    } else {
        c->drained = ask->drained;
    }
    texts_take(c, ask);
    c->ask.drained = c->drained;
    c->view = (struct flasher_view){.state = FLASHER_RUNNING};
    int code = pthread_create(&c->thread, NULL, run, c);
    c->joins = code == 0;
    if (code != 0) {
        c->view = was;
        return error_errno(err, code, "%s: no thread", c->name);
    }
    c->out = true;
    return 0;
}

/* The thread of the flash before; not with the lock: its last call is one of
 * the caller's, who may be looking at us. */
static void join_ended(struct flasher *f, const char *name)
{
    (void)pthread_mutex_lock(&f->lock);
    struct card *c = find_locked(f, name);
    bool joins = c && c->joins && c->view.state != FLASHER_RUNNING;
    pthread_t thread = joins ? c->thread : pthread_self();
    if (joins)
        c->joins = false;
    (void)pthread_mutex_unlock(&f->lock);
    if (joins)
        (void)pthread_join(thread, NULL);
}

int flasher_begin(struct flasher *f, const struct flash_ask *ask,
                  struct error *err)
{
    int e = flash_ask_check(ask, err);
    if (e < 0)
        return e;
    join_ended(f, ask->card);
    hold_lock(&f->lock);
    if (f->stopping)
        return error_set(err, EBUSY, "%s: this process ends", ask->card);
    struct card *c = strlen(ask->card) <= TOPO_ID_MAX ? add_locked(f, ask->card)
                                                      : NULL;
    if (!c)
        return error_set(err, E2BIG, "%s: more than %d cards since the start",
                         ask->card, CARDS_MAX);
    if (c->view.state == FLASHER_RUNNING || c->joins)
        return error_set(err, EBUSY, "%s: is being flashed already", c->name);
    return begin_locked(c, ask, err);
}

/* --- what is known -------------------------------------------------------- */

void flasher_each_out(struct flasher *f,
                      void (*visit)(void *ctx, const char *card), void *ctx)
{
    hold_lock(&f->lock);
    for (size_t i = 0; i < f->n; i++)
        if (f->cards[i]->out)
            visit(ctx, f->cards[i]->name);
}

void flasher_look(struct flasher *f, const char *card,
                  struct flasher_view *ret_view)
{
    hold_lock(&f->lock);
    const struct card *c = find_locked(f, card);
    *ret_view = c ? c->view : (struct flasher_view){.state = FLASHER_NONE};
}

void flasher_drained(struct flasher *f, const char *card)
{
    hold_lock(&f->lock);
    struct card *c = find_locked(f, card);
    if (c)
        c->drained = true;
}

bool flasher_is_drained(struct flasher *f, const char *card)
{
    hold_lock(&f->lock);
    const struct card *c = find_locked(f, card);
    return c && c->drained;
}

static int check_clear(struct flasher *f, const char *card, bool *ret_out,
                       struct error *err)
{
    hold_lock(&f->lock);
    const struct card *c = find_locked(f, card);
    *ret_out = c && c->out;
    if (c && c->view.state == FLASHER_RUNNING)
        return error_set(err, EBUSY,
                         "%s: is being flashed (%s, %d %%): wait for its end",
                         card, c->view.phase, c->view.percent);
    return 0;
}

int flasher_clear(struct flasher *f, const char *card, struct error *err)
{
    bool out = false;
    int e = check_clear(f, card, &out, err);
    if (e == 0 && out) /* without the lock: who looks does not wait for it */
        e = flash_record_remove(f->config.dir, card, err);
    if (e < 0)
        return e;
    hold_lock(&f->lock);
    struct card *c = find_locked(f, card);
    if (c && c->view.state != FLASHER_RUNNING) {
        end_locked(c, FLASHER_NONE, "", "");
        c->drained = false;
    }
    return 0;
}

/* --- from start to end ---------------------------------------------------- */

static void take_record(void *ctx, const char *name,
                        const struct flash_record *record)
{
    struct flasher *f = ctx;
    struct card *c = add_locked(f, name);
    if (!c)
        return;
    end_locked(c, FLASHER_FAILED, record->reason, record->message);
    c->drained = record->drained;
}

int flasher_create(const struct flasher_config *config,
                   struct flasher **ret_flasher, struct error *err)
{
    cleanup_with(flasher) struct flasher *f = xcalloc(1, sizeof *f);
    f->config = *config;
    (void)pthread_mutex_init(&f->lock, NULL); /* cannot fail on Linux */
    int e = flash_record_each(config->dir, take_record, f, err);
    if (e < 0)
        return e;
    *ret_flasher = steal(&f);
    return 0;
}

/* The thread of a card that is still to be waited for, no more then. */
static bool take_thread(struct flasher *f, size_t i, pthread_t *ret_thread)
{
    hold_lock(&f->lock);
    f->stopping = true;
    bool joins = i < f->n && f->cards[i]->joins;
    if (joins) {
        *ret_thread = f->cards[i]->thread;
        f->cards[i]->joins = false;
    }
    return joins;
}

void flasher_stop(struct flasher *f)
{
    for (size_t i = 0; i < CARDS_MAX; i++) {
        pthread_t thread;
        if (take_thread(f, i, &thread))
            (void)pthread_join(thread, NULL);
    }
}

void flasher_destroy(struct flasher *f)
{
    if (!f)
        return;
    flasher_stop(f);
    for (size_t i = 0; i < f->n; i++) {
        texts_free(f->cards[i]);
        free(f->cards[i]);
    }
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}
