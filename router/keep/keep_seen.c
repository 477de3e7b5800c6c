/* The map is made to agree with what a remote lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/keep/keep_private.h"
#include "router/keep/reconcile.h"

/* `writing` is held. */
struct seeing {
    struct keep *k;
    const char *remote;
    uint64_t mark; /* when the list was begun */
    int64_t now_ms;
    struct reconcile_have have; /* the last that was asked for */
};

static const struct reconcile_have *fill(struct seeing *s,
                                         const struct keep_entry *e)
{
    if (!e)
        return NULL;
    s->have = (struct reconcile_have){
        .kept = e->kept,
        .busy = e->busy,
        .late = s->now_ms - e->unclear_ms > KEEP_LATE_MS,
        .fresh = e->changed > s->mark,
    };
    return &s->have;
}

static const struct reconcile_have *by_key(void *ctx, enum kept_kind kind,
                                           const char *key)
{
    struct seeing *s = ctx;
    char with_kind[KEPT_KEY_SIZE + 2];
    keep_entry_key(kind, key, with_kind);
    return fill(s, strmap_get(&s->k->by_key, with_kind));
}

static const struct reconcile_have *by_id(void *ctx, const char *id)
{
    struct seeing *s = ctx;
    return fill(s, strmap_get(&s->k->by_id, id));
}

/* More were forgotten than are remembered: any may have been. */
static bool forgotten(void *ctx, const char *id)
{
    const struct seeing *s = ctx;
    const struct keep *k = s->k;
    size_t n = k->n_forgotten < KEEP_FORGOTTEN ? k->n_forgotten
                                               : KEEP_FORGOTTEN;
    if (n == KEEP_FORGOTTEN &&
        k->forgotten[k->n_forgotten % KEEP_FORGOTTEN].mark > s->mark)
        return true;
    for (size_t i = 0; i < n; i++)
        if (k->forgotten[i].mark > s->mark &&
            strcmp(k->forgotten[i].id, id) == 0)
            return true;
    return false;
}

static int put(struct seeing *s, struct kept *kept, struct error *err)
{
    cleanup_with(kept) struct kept *mine = kept;
    if (!keep_entry_of(s->k, mine) &&
        (s->k->by_key.n >= KEEP_MAX ||
         keep_count_of(s->k, s->remote) >= KEEP_REMOTE_MAX))
        return error_set(err, ENOSPC, "%s: lists more than %d", s->remote,
                         KEEP_REMOTE_MAX);
    int e = keepdb_put(s->k->db, mine, err);
    if (e == 0)
        (void)keep_entry_put(s->k, steal(&mine));
    return e;
}

static int see_items(struct seeing *s, const struct reconcile *r,
                     struct seen *seen, bool sandboxes,
                     struct keep_found *found, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < seen->n; i++) {
        struct seen_item *item = &seen->list[i];
        struct kept *kept = NULL;
        if (item->sandbox != sandboxes)
            continue;
        enum reconcile_verdict v = reconcile_item(r, seen, item, &kept);
        item->stray = v == RECONCILE_STRAY;
        item->asked = kept && !item->ours && found->n_asked < KEEP_ASKED_MAX;
        found->n_strays += item->stray;
        found->n_asked += item->asked;
        if (!kept || !item->ours) {
            kept_unref(kept);
            continue;
        }
        int e = put(s, kept, err);
        found->n_adopted += e == 0 && v == RECONCILE_ADOPT;
        found->n_rebuilt += e == 0 && v == RECONCILE_REBUILD;
        result = e < 0 ? e : result;
    }
    return result;
}

static int see_missing(struct seeing *s, const struct seen *seen,
                       struct keep_found *found, struct error *err)
{
    cleanup_free struct keep_entry **gone = xcalloc(s->k->by_key.n + 1,
                                                    sizeof(void *));
    struct keep_entry *e;
    size_t n = 0;
    for (size_t at = 0; (e = strmap_next(&s->k->by_key, &at));)
        if (strcmp(e->kept->remote, s->remote) == 0 &&
            reconcile_is_gone(seen, fill(s, e)))
            gone[n++] = e;
    int r = n ? keep_drop(s->k, gone, n, err) : 0;
    found->n_gone = r == 0 ? n : 0;
    return r;
}

static void say(const char *remote, const struct keep_found *f)
{
    char adopted[24], rebuilt[24], gone[24];
    if (f->n_adopted + f->n_rebuilt + f->n_gone == 0)
        return;
    (void)snprintf(adopted, sizeof adopted, "%zu", f->n_adopted);
    (void)snprintf(rebuilt, sizeof rebuilt, "%zu", f->n_rebuilt);
    (void)snprintf(gone, sizeof gone, "%zu", f->n_gone);
    log_event(LOG_INFO, "keep-reconciled", "remote", remote, "adopted", adopted,
              "rebuilt", rebuilt, "gone", gone, NULL);
}

int keep_seen(struct keep *k, const char *remote, uint64_t mark,
              struct seen *seen, struct keep_found *ret_found,
              struct error *err)
{
    struct seeing s = {
        .k = k, .remote = remote, .mark = mark, .now_ms = clock_ms()};
    const struct reconcile r = {.remote = remote,
                                .secret = keepdb_secret(k->db),
                                .trust = keepdb_is_new(k->db),
                                .pod_logs = k->pod_logs,
                                .by_key = by_key,
                                .by_id = by_id,
                                .forgotten = forgotten,
                                .ctx = &s};
    struct keep_found found = {0};
    (void)pthread_mutex_lock(&k->writing);
    /* first what is gone: its name may have been taken by another since */
    int e = see_missing(&s, seen, &found, err);
    int sandboxes = see_items(&s, &r, seen, true, &found, err);
    int containers = see_items(&s, &r, seen, false, &found, err);
    (void)pthread_mutex_unlock(&k->writing);
    say(remote, &found);
    *ret_found = found;
    return e < 0 ? e : sandboxes < 0 ? sandboxes : containers;
}
