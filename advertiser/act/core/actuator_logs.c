/* Logs, also of pods that are gone. */
#include "advertiser/act/core/actuator_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/pod_logs.h"
#include "advertiser/act/core/saved_logs.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"

/* --- reading --------------------------------------------------------------- */

/* Some of the log that `log` names, which goes on from there. */
static int log_of_attempt(struct actuator *a, const struct act_log_ask *how,
                          struct call_target *t, struct act_log *log,
                          struct error *err)
{
    const struct pod_log ask = {.container = t->container,
                                .attempt = log->attempt,
                                .offset = log->next,
                                .max = how->max,
                                .lines = how->lines,
                                .tail = how->tail,
                                .ended = t->exited ||
                                         log->attempt < t->attempt};
    int e = t->helper[0] ? connection_open(&t->c, err) : 0;
    const struct pod_access pod = {.place = &t->c.place,
                                   .dirs = &a->dirs,
                                   .uid = t->uid,
                                   .cri = t->c.cri,
                                   .helper = t->helper};
    if (e == 0)
        e = pod_logs_read(&pod, &ask, &log->text, &log->next, err);
    connection_close(&t->c);
    if (e == 0 && !ask.tail && log->attempt < t->attempt &&
        log->next == ask.offset) {
        log->attempt++; /* nothing more comes in this one */
        log->next = 0;
    }
    return e;
}

/* Which log is meant, and from where on: a pod that was made again under its
 * name begins with the first. */
static int log_choose(const struct act_log_ask *ask,
                      const struct call_target *t, struct act_log *log,
                      struct error *err)
{
    log->attempt = t->attempt;
    log->next = ask->offset;
    if (ask->previous && !ask->attempt) {
        if (t->attempt < 2)
            return error_set(err, ENOENT,
                             "pod %s/%s: container %s was not begun before",
                             ask->namespace, ask->name, t->container);
        if (t->ended)
            return error_set(err, ENOENT,
                             "pod %s/%s is gone, and of each container only "
                             "the last log is kept",
                             ask->namespace, ask->name);
        log->attempt--;
        return 0;
    }
    if (ask->attempt && ask->attempt < t->attempt)
        log->attempt = ask->attempt;
    else if (t->attempt && ask->attempt > t->attempt)
        log->next = 0;
    return 0;
}

static int log_of_kept(struct actuator *a, const struct act_log_ask *ask,
                       const struct call_target *t, struct act_log *log)
{
    struct error ignored; /* how it is without */
    const struct intent_log names = {.uid = ask->uid,
                                     .namespace = ask->namespace,
                                     .name = ask->name,
                                     .container = ask->container};
    uint64_t offset = log->attempt < t->attempt ? 0 : log->next;
    int e = saved_logs_read(a, &names, ask->tail ? 0 : offset, ask->max,
                            &log->text, &log->next, &ignored);
    if (e == 0)
        log->attempt = t->attempt;
    return e;
}

/* While it is there; it may go while it is read. */
static int log_of_rest(struct actuator *a, const struct act_log_ask *ask,
                       struct call_target *t, struct act_log *log,
                       struct error *err)
{
    struct call_target now;
    struct error ignored; /* how it is without */
    int e = log_of_attempt(a, ask, t, log, err);
    if (e < 0 || log->text.size > 0)
        return e;
    e = call_find(a, ask->namespace, ask->name, ask->container, &now, &ignored);
    if (e == -ENOENT || (now.ended && strcmp(now.uid, t->uid) == 0))
        (void)log_of_kept(a, ask, &now, log); /* none: nothing came */
    return 0;
}

int actuator_logs(struct actuator *a, const struct act_log_ask *asked,
                  struct act_log *ret_log, struct error *err)
{
    struct call_target t;
    struct act_log log = {.text = STR_INIT(ACT_LOG_MAX)};
    struct act_log_ask all = *asked, *ask = &all;
    if (ask->max == 0 || ask->max > ACT_LOG_MAX)
        ask->max = ACT_LOG_MAX;
    int e = call_find(a, ask->namespace, ask->name, ask->container, &t, err);
    if (call_is_other(&t, ask->uid)) {
        t = (struct call_target){0};
        e = error_set(err, ENOENT, CALL_OTHER, ask->namespace, ask->name,
                      ask->uid);
    }
    int r = log_choose(ask, &t, &log, e == 0 ? err : NULL);
    if (e == 0 && r < 0)
        e = r; /* what is kept is of the last one, too */
    else if ((e == -ENOENT || t.ended) && log_of_kept(a, ask, &t, &log) == 0)
        e = 0;
    else if (e == 0 && t.attempt > 0) /* else nothing was begun yet */
        e = log_of_rest(a, ask, &t, &log, err);
    if (e < 0) {
        str_fini(&log.text);
        return e;
    }
    *ret_log = log;
    return 0;
}

/* --- saved logs ------------------------------------------------------------ */

struct uids {
    char (*list)[ACT_UID_MAX + 1];
    size_t n, cap;
};

static void take_uid(void *ctx, const char *uid)
{
    struct uids *u = ctx;
    u->list = xgrow(u->list, u->n, &u->cap, sizeof *u->list);
    (void)snprintf(u->list[u->n++], sizeof *u->list, "%s", uid);
}

size_t actuator_saved_logs(struct actuator *a, const char *owner,
                           char (**ret_uids)[ACT_UID_MAX + 1])
{
    struct uids u = {0};
    struct error err = {0};
    if (intents_each_log(a->intents, owner, take_uid, &u, &err) < 0)
        log_event(LOG_ERROR, "act-kept", "error", err.text, NULL);
    *ret_uids = u.list;
    return u.n;
}

int actuator_drop_logs(struct actuator *a, const char *uid, struct error *err)
{
    return intents_delete_logs(a->intents, uid, err);
}
