#include "router/keep/keep.h"

#include <stdlib.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/failpoint.h"
#include "router/keep/keep_private.h"

/* --- open and close ------------------------------------------------------- */

/* Of two with one id, as they may be saved from a damaged file, the first. */
static void take_record(void *ctx, const struct kept *kept)
{
    struct keep *k = ctx;
    if (!kept->id[0] || !strmap_get(&k->by_id, kept->id))
        (void)keep_entry_put(k, kept_copy(kept));
}

int keep_open(const struct keep_config *config, struct keep **ret_keep,
              struct error *err)
{
    cleanup_with(keep) struct keep *k = xcalloc(1, sizeof *k);
    (void)pthread_mutex_init(&k->writing, NULL); /* cannot fail on Linux */
    (void)pthread_mutex_init(&k->lock, NULL);
    k->mark = 1;
    k->pod_logs = xstrdup(config->pod_logs ? config->pod_logs : "");
    int e = keepdb_open(config->dir, &k->db, err);
    if (e == 0)
        e = keepdb_each(k->db, take_record, k, err);
    if (e < 0)
        return e;
    *ret_keep = steal(&k);
    return 0;
}

static void free_entry(void *value)
{
    struct keep_entry *e = value;
    kept_unref(e->kept);
    free(e);
}

void keep_close(struct keep *k)
{
    if (!k)
        return;
    keep_view_unref(k->view);
    strmap_fini(&k->by_id);
    strmap_fini_with(&k->by_key, free_entry);
    keepdb_close(k->db);
    free(k->pod_logs);
    (void)pthread_mutex_destroy(&k->writing);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

void keep_seal(const struct keep *k, const struct kept *what, struct str *out)
{
    kept_seal(what, keepdb_secret(k->db), out);
}

struct kept *keep_unseal(const struct keep *k, const char *text)
{
    cleanup_with(kept) struct kept *said = NULL;
    bool sealed = false;
    int e = kept_unseal(text, keepdb_secret(k->db), &said, &sealed, NULL);
    return e == 0 && sealed ? steal(&said) : NULL;
}

uint64_t keep_mark(struct keep *k)
{
    hold_lock(&k->lock);
    return k->mark;
}

/* --- a making call -------------------------------------------------------- */

/* Others read `busy` with `lock`. */
static void set_busy(struct keep *k, struct keep_entry *e, bool busy)
{
    hold_lock(&k->lock);
    e->busy = busy;
    e->unclear_ms = clock_ms();
    e->changed = ++k->mark;
}

static int check_room(const struct keep *k, const struct kept *what,
                      struct error *err)
{
    if (k->by_key.n >= KEEP_MAX)
        return error_set(err, ENOSPC,
                         "%s: %d sandboxes and containers are written down, "
                         "which is the limit",
                         what->remote, KEEP_MAX);
    if (keep_count_of(k, what->remote) >= KEEP_REMOTE_MAX)
        return error_set(err, ENOSPC,
                         "%s: has %d sandboxes and containers, which is the "
                         "limit",
                         what->remote, KEEP_REMOTE_MAX);
    return 0;
}

/* Written down anew, as announced, and the caller's. */
static int write_announced(struct keep *k, const struct kept *what,
                           struct error *err)
{
    cleanup_with(kept) struct kept *announced = kept_with_id(what, "");
    announced->made_s = clock_wall_s();
    int e = kept_check(announced, err);
    if (e == 0)
        e = keepdb_put(k->db, announced, err);
    if (e == 0)
        set_busy(k, keep_entry_put(k, steal(&announced)), true);
    return e;
}

/* One that has its key is there already. */
static int announce_again(struct keep *k, struct keep_entry *e,
                          const struct kept *what, enum keep_answer *ret_answer,
                          struct kept **ret_kept, struct error *err)
{
    if (e->busy)
        return error_set(err, EBUSY,
                         "%s: the call that makes %s is under way already",
                         what->remote, e->key + 2);
    if (strcmp(e->kept->remote, what->remote) != 0)
        return error_set(err, EEXIST, "%s: %s is on %s already", what->remote,
                         e->key + 2, e->kept->remote);
    if (e->kept->state == KEPT_MADE) {
        set_busy(k, e, true);
        *ret_answer = KEEP_THERE;
        *ret_kept = kept_ref(e->kept);
        return 0;
    }
    int r = write_announced(k, what, err);
    if (r == 0)
        *ret_answer = KEEP_LOOK;
    return r;
}

int keep_announce(struct keep *k, const struct kept *what,
                  enum keep_answer *ret_answer, struct kept **ret_kept,
                  struct error *err)
{
    hold_lock(&k->writing);
    struct keep_entry *e = keep_entry_of(k, what);
    if (e)
        return announce_again(k, e, what, ret_answer, ret_kept, err);
    int r = check_room(k, what, err);
    if (r == 0)
        r = write_announced(k, what, err);
    if (r == 0)
        *ret_answer = KEEP_SEND;
    return r;
}

static int check_made(const struct keep *k, const struct keep_entry *e,
                      const struct kept *what, const char *id,
                      struct error *err)
{
    if (!kept_id_valid(id))
        return error_set(err, EINVAL, "%s: \"%.64s\" is no id", what->remote,
                         id);
    if (!e || !e->busy)
        return error_set(err, ENOENT,
                         "%s: %.12s was forgotten while it was made",
                         what->remote, id);
    const struct keep_entry *other = strmap_get(&k->by_id, id);
    if (other && other != e)
        return error_set(err, EEXIST, "%s: says it made %.12s, which is on %s",
                         what->remote, id, other->kept->remote);
    return 0;
}

int keep_made(struct keep *k, const struct kept *what, const char *id,
              struct error *err)
{
    hold_lock(&k->writing);
    struct keep_entry *e = keep_entry_of(k, what);
    int r = check_made(k, e, what, id, err);
    if (r < 0)
        return r;
    if (strcmp(e->kept->id, id) != 0) {
        cleanup_with(kept) struct kept *made = kept_with_id(what, id);
        made->made_s = e->kept->made_s;
        r = kept_check(made, err);
        if (r == 0)
            r = keepdb_put(k->db, made, err);
        if (r == 0)
            e = keep_entry_put(k, steal(&made));
    }
    if (r == 0)
        set_busy(k, e, false);
    return r;
}

int keep_refused(struct keep *k, const struct kept *what, struct error *err)
{
    hold_lock(&k->writing);
    struct keep_entry *e = keep_entry_of(k, what);
    return e && e->busy && e->kept->state == KEPT_ANNOUNCED
               ? keep_drop(k, &e, 1, err)
               : 0;
}

void keep_unclear(struct keep *k, const struct kept *what)
{
    hold_lock(&k->writing);
    struct keep_entry *e = keep_entry_of(k, what);
    if (e && e->busy)
        set_busy(k, e, false);
}

/* --- the end -------------------------------------------------------------- */

int keep_ended(struct keep *k, const char *id, struct proto_bytes how,
               struct error *err)
{
    hold_lock(&k->writing);
    const struct keep_entry *e = strmap_get(&k->by_id, id);
    if (!e || e->kept->ended.size)
        return 0;
    cleanup_with(kept) struct kept *ended = kept_with_end(e->kept, how);
    int r = kept_check(ended, err);
    if (r == 0)
        r = keepdb_put(k->db, ended, err);
    if (r == 0)
        (void)keep_entry_put(k, steal(&ended));
    return r;
}

struct dropping {
    struct keep_entry **list;
    struct kept **records;
    size_t n;
};

static void drop_add(struct dropping *d, struct keep_entry *e)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i] == e)
            return;
    d->list[d->n] = e;
    d->records[d->n++] = e->kept;
}

static void drop_add_containers(struct dropping *d, const struct keep *k,
                                const char *sandbox_id)
{
    struct keep_entry *e;
    for (size_t at = 0; (e = strmap_next(&k->by_key, &at));)
        if (e->kept->kind == KEPT_CONTAINER &&
            strcmp(e->kept->sandbox_id, sandbox_id) == 0)
            drop_add(d, e);
}

int keep_drop(struct keep *k, struct keep_entry *const *list, size_t n,
              struct error *err)
{
    struct dropping d = {.list = xcalloc(k->by_key.n + 1, sizeof *d.list),
                         .records = xcalloc(k->by_key.n + 1, sizeof(void *))};
    for (size_t i = 0; i < n; i++) {
        drop_add(&d, list[i]);
        if (list[i]->kept->kind == KEPT_SANDBOX && list[i]->kept->id[0])
            drop_add_containers(&d, k, list[i]->kept->id);
    }
    int e = d.n ? keepdb_delete(k->db, d.records, d.n, err) : 0;
    for (size_t i = 0; i < d.n && e == 0; i++)
        keep_entry_drop(k, d.list[i]);
    free(d.list);
    free(d.records);
    return e;
}

int keep_forget(struct keep *k, const char *id, struct error *err)
{
    (void)failpoint("cri-before-forget");
    (void)pthread_mutex_lock(&k->writing);
    struct keep_entry *e = strmap_get(&k->by_id, id);
    int r = e ? keep_drop(k, &e, 1, err) : 0;
    (void)pthread_mutex_unlock(&k->writing);
    (void)failpoint("cri-after-forget");
    return r;
}
