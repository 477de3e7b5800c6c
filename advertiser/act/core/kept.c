/* What containers wrote last, kept here when their pod is gone from its place:
 * somebody may want to know why it failed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/hostdir.h"
#include "advertiser/act/core/act_private.h"
#include "advertiser/act/pod/left.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"

enum {
    LOG_MISSING = 3,     /* how biga-card says that there is none */
    TAIL_MAX = 64 << 10, /* of the file: lines have a head there */
};

struct tail {
    struct str text;
    uint64_t next;
};

/* -ENOENT when there is none. */
static int tail_by_helper(struct place *at, struct cri *cri, const char *path,
                          struct tail *t, struct error *err)
{
    char id[CRI_ID_MAX + 1], max[16];
    const char *const argv[] = {"/biga-card", "tail", path, max};
    struct cri_exec exec = {0};
    (void)snprintf(max, sizeof max, "%d", TAIL_MAX);
    (void)pthread_mutex_lock(&at->a->lock);
    helper_id(at->a, at->what.name, id);
    (void)pthread_mutex_unlock(&at->a->lock);
    if (!id[0])
        return error_set(err, ESRCH, "Biga's helper does not run there");
    int e = helper_run(cri, id, argv, ARRAY_LEN(argv), &exec, err);
    if (e < 0)
        return e;
    if (exec.exit_code == 0)
        e = helper_next(&exec, &t->next, err);
    else
        e = error_set(err, exec.exit_code == LOG_MISSING ? ENOENT : EIO,
                      "biga-card tail ended with exit code %d: %.300s",
                      (int)exec.exit_code, str_text(&exec.err));
    if (e == 0)
        str_move(&t->text, &exec.out);
    cri_exec_fini(&exec);
    return e;
}

static int keep_one(struct place *at, const struct act_place *what,
                    struct cri *cri, const struct entry *e, size_t index,
                    struct error *err)
{
    const struct machine_unit *u = &e->m.units[index];
    struct tail t = {.text = STR_INIT(CRI_EXEC_OUTPUT_MAX)};
    cleanup_free char *file = config_log_name(u->name, u->noted->attempt);
    cleanup_free char *dir = config_pod_dir(at->a, e);
    cleanup_free char *path = xasprintf("%s/logs/%s", dir, file);
    int r = card_is_host(what)
                ? hostdir_log_tail(path, TAIL_MAX, &t.text, &t.next, err)
                : tail_by_helper(at, cri, path, &t, err);
    size_t cut = t.text.size > INTENT_LOG_MAX ? t.text.size - INTENT_LOG_MAX
                                              : 0;
    const struct intent_log log = {
        .uid = e->intent->uid,
        .container = u->name,
        .owner = e->intent->owner,
        .namespace = e->intent->namespace,
        .name = e->intent->name,
        .init = u->init,
        .next = t.next,
        .text = str_text(&t.text) + cut,
        .size = t.text.size - cut,
    };
    if (r == 0)
        r = intents_put_log(at->a->intents, &log, err);
    str_fini(&t.text);
    return r;
}

void kept_take(struct place *at, const struct act_place *what, struct cri *cri,
               const struct entry *e)
{
    struct error err = {0};
    (void)pthread_mutex_lock(&at->a->lock);
    bool keep = e->intent->keep;
    (void)pthread_mutex_unlock(&at->a->lock);
    if (!keep || (!card_is_host(what) && !at->a->helper_image))
        return;
    (void)failpoint("act-before-kept");
    for (size_t i = 0; i < e->m.n_units; i++) {
        if (e->m.units[i].noted->attempt == 0)
            continue; /* it was never made */
        int r = keep_one(at, what, cri, e, i, &err);
        if (r < 0 && r != -ENOENT) /* removed before: this was tried again */
            log_event(LOG_WARN, "act-log-not-kept", "place", what->name, "uid",
                      e->intent->uid, "container", e->m.units[i].name, "error",
                      err.text, NULL);
    }
    (void)failpoint("act-after-kept");
}

/* --- what others have of it ------------------------------------------------- */

/* Offsets go on from those of the file: whoever has read up to one of them
 * misses nothing, and may see some bytes again. */
int kept_read(struct actuator *a, const struct intent_log *names,
              uint64_t offset, size_t max, struct str *ret_text,
              uint64_t *ret_next, struct error *err)
{
    cleanup_str struct str text = STR_INIT(INTENT_LOG_MAX + 1);
    uint64_t next = 0;
    int e = intents_find_log(a->intents, names, &text, &next, err);
    if (e < 0)
        return e;
    uint64_t from = next > text.size ? next - text.size : 0;
    uint64_t at = offset < from ? 0 : offset - from;
    if (at > text.size)
        at = text.size;
    size_t n = text.size - (size_t)at;
    if (n > max)
        n = max;
    str_add_n(ret_text, str_text(&text) + at, n);
    *ret_next = from + at + n;
    return 0;
}

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

size_t actuator_kept(struct actuator *a, const char *owner,
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
