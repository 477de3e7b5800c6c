/* The rows of the intents. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/pod/intents_private.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"

enum { TEXT_MAX = 64 << 10 }; /* of env, or how far a pod is */

const char *const intents_sql[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_PUT_POD] = "INSERT OR REPLACE INTO pods VALUES "
                    "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
    [SQL_PUT_PROGRESS] = "INSERT OR REPLACE INTO progress VALUES (?1,?2,?3)",
    [SQL_SAVE_PROGRESS] = "UPDATE progress SET json = ?2, sum = ?3 "
                          "WHERE uid = ?1",
    [SQL_DELETE_POD] = "DELETE FROM pods WHERE uid = ?1",
    [SQL_DELETE_PROGRESS] = "DELETE FROM progress WHERE uid = ?1",
    [SQL_EACH] = "SELECT * FROM pods ORDER BY uid",
    [SQL_EACH_PROGRESS] = "SELECT * FROM progress ORDER BY uid",
    [SQL_DRAIN] = "INSERT OR REPLACE INTO drained VALUES (?1,?2)",
    [SQL_UNDRAIN] = "DELETE FROM drained WHERE place = ?1",
    [SQL_EACH_DRAINED] = "SELECT * FROM drained ORDER BY place",
    [SQL_PUT_LOG] = "INSERT OR REPLACE INTO logs VALUES "
                    "(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQL_TRIM_LOGS] = "DELETE FROM logs WHERE rowid <= "
                      "(SELECT max(rowid) FROM logs) - ?1",
    [SQL_DELETE_LOGS] = "DELETE FROM logs WHERE uid = ?1",
    [SQL_EACH_LOG] = "SELECT * FROM logs ORDER BY uid",
    [SQL_FIND_LOG] = "SELECT * FROM logs WHERE namespace = ?1 AND name = ?2 "
                     "AND (container = ?3 OR (?3 = '' AND init = 0)) "
                     "AND (?4 = '' OR uid = ?4) ORDER BY rowid",
    [SQL_PUT_LEFTOVER_DIR] =
        "INSERT OR REPLACE INTO leftovers VALUES (?1,?2,?3)",
    [SQL_TRIM_LEFTOVER_DIRS] =
        "DELETE FROM leftovers WHERE rowid NOT IN (SELECT rowid "
        "FROM leftovers ORDER BY rowid DESC LIMIT ?1)",
    [SQL_DELETE_LEFTOVER_DIR] =
        "DELETE FROM leftovers WHERE place = ?1 AND uid = ?2",
    [SQL_EACH_LEFTOVER_DIR] = "SELECT * FROM leftovers ORDER BY rowid",
    [SQL_PUT_COMMIT] = "INSERT OR REPLACE INTO commits VALUES (1,?1,?2)",
    [SQL_EACH_COMMIT] = "SELECT number, sum FROM commits",
};

/* --- statements ---------------------------------------------------------- */

static const char *column(sqlite3_stmt *q, int i)
{
    const char *text = (const char *)sqlite3_column_text(q, i);
    return text ? text : "";
}

static size_t column_size(sqlite3_stmt *q, int i)
{
    return (size_t)sqlite3_column_bytes(q, i);
}

/* Binds columns in their order, and their sum after them. */
struct binder {
    sqlite3_stmt *q;
    int at;
    int64_t sum;
};

static void bind_text(struct binder *b, const char *text, size_t size)
{
    (void)sqlite3_bind_text64(b->q, ++b->at, text, size, SQLITE_STATIC,
                              SQLITE_UTF8);
    b->sum = sum_add(b->sum, text, size);
}

static void bind_texts(struct binder *b, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bind_text(b, texts[i], strlen(texts[i]));
}

static void bind_int(struct binder *b, int64_t value)
{
    (void)sqlite3_bind_int64(b->q, ++b->at, value);
    b->sum = sum_u64(b->sum, (uint64_t)value);
}

static void bind_sum(struct binder *b)
{
    (void)sqlite3_bind_int64(b->q, ++b->at, b->sum);
}

static int run(struct intents *s, enum sql which, struct error *err)
{
    return sqldb_run(&s->d, s->sql[which], intents_sql[which], err);
}

/* --- writing ------------------------------------------------------------ */

static int put_pod(struct intents *s, const struct intent *i, struct error *err)
{
    cleanup_str struct str env = STR_INIT(TEXT_MAX);
    struct binder b = {.q = s->sql[SQL_PUT_POD]};
    const char *const texts[] = {i->uid,   i->owner,    i->namespace, i->name,
                                 i->place, i->pair_key, i->hook};
    intent_env_encode(i, &env);
    if (env.overflow)
        return error_set(err, E2BIG, "env: more than %d bytes", TEXT_MAX);
    bind_texts(&b, texts, ARRAY_LEN(texts));
    bind_text(&b, env.data, env.size);
    bind_text(&b, i->spec, i->spec_size);
    bind_text(&b, i->files, i->files_size);
    bind_int(&b, i->is_host);
    bind_int(&b, i->restarts);
    bind_int(&b, i->sriov_vfs);
    bind_sum(&b);
    return run(s, SQL_PUT_POD, err);
}

static int put_progress(struct intents *s, enum sql which,
                        const struct intent *i, struct error *err)
{
    cleanup_str struct str json = STR_INIT(TEXT_MAX);
    struct binder b = {.q = s->sql[which]};
    intent_progress_encode(i, &json);
    bind_text(&b, i->uid, strlen(i->uid));
    bind_text(&b, json.data, json.size);
    bind_sum(&b);
    return run(s, which, err);
}

/* Everything ends with this: 0 when it is durable. */
static int finish(struct intents *s, int e, struct error *err)
{
    struct binder b = {.q = s->sql[SQL_PUT_COMMIT]};
    if (e == 0) {
        bind_int(&b, (int64_t)s->commits + 1);
        bind_sum(&b);
        e = run(s, SQL_PUT_COMMIT, err);
    }
    if (e == 0 && failpoint("act-commit"))
        e = error_set(err, ENOSPC, "intents: committing: a failpoint");
    if (e == 0)
        e = run(s, SQL_COMMIT, err);
    if (e < 0 && !sqlite3_get_autocommit(s->d.db))
        (void)run(s, SQL_ROLLBACK, NULL); /* nothing else is left to do */
    if (e == 0 && s->mark)
        dbmark_set(s->mark, ++s->commits);
    return e;
}

int intents_touch(struct intents *s, struct error *err)
{
    hold_lock(&s->lock);
    return finish(s, run(s, SQL_BEGIN, err), err);
}

int intents_put(struct intents *s, const struct intent *i, struct error *err)
{
    hold_lock(&s->lock);
    int e = run(s, SQL_BEGIN, err);
    if (e == 0)
        e = put_pod(s, i, err);
    if (e == 0)
        e = put_progress(s, SQL_PUT_PROGRESS, i, err);
    return finish(s, e, err);
}

int intents_save(struct intents *s, const struct intent *i, struct error *err)
{
    hold_lock(&s->lock);
    int e = run(s, SQL_BEGIN, err);
    if (e == 0)
        e = put_progress(s, SQL_SAVE_PROGRESS, i, err);
    if (e == 0 && sqlite3_changes(s->d.db) == 0)
        e = error_set(err, ENOENT, "intents: pod %s is not there any more",
                      i->uid);
    return finish(s, e, err);
}

int intents_delete(struct intents *s, const char *uid, struct error *err)
{
    hold_lock(&s->lock);
    int e = run(s, SQL_BEGIN, err);
    for (enum sql w = SQL_DELETE_POD; e == 0 && w <= SQL_DELETE_PROGRESS; w++) {
        struct binder b = {.q = s->sql[w]};
        bind_text(&b, uid, strlen(uid));
        e = run(s, w, err);
    }
    return finish(s, e, err);
}

/* On its own: a statement of these texts, and of their sum where it puts a
 * row. */
static int change(struct intents *s, enum sql which, const char *const *texts,
                  size_t n, bool sums, struct error *err)
{
    struct binder b = {.q = s->sql[which]};
    hold_lock(&s->lock);
    int e = run(s, SQL_BEGIN, err);
    if (e == 0) {
        bind_texts(&b, texts, n);
        if (sums)
            bind_sum(&b);
        e = run(s, which, err);
    }
    return finish(s, e, err);
}

/* A row that is bound already, of which no more than `max` stay. */
static int put_trimmed(struct intents *s, enum sql put, enum sql trim,
                       int64_t max, struct error *err)
{
    struct binder b = {.q = s->sql[trim]};
    int e = run(s, SQL_BEGIN, err);
    if (e == 0)
        e = run(s, put, err);
    bind_int(&b, max);
    if (e == 0)
        e = run(s, trim, err);
    return finish(s, e, err);
}

int intents_drain(struct intents *s, const char *place, bool drained,
                  struct error *err)
{
    return change(s, drained ? SQL_DRAIN : SQL_UNDRAIN, &place, 1, drained,
                  err);
}

/* --- reading ------------------------------------------------------------ */

struct reading {
    struct intent **list;
    size_t n, cap, at;
};

static int read_pod(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct reading *r = ctx;
    struct act_pod pod = {
        .uid = column(q, 0),
        .owner = column(q, 1),
        .namespace = column(q, 2),
        .name = column(q, 3),
        .place = column(q, 4),
        .pair_key = column(q, 5),
        .hook = column(q, 6),
        .spec = column(q, 8),
        .spec_size = column_size(q, 8),
        .files = column(q, 9),
        .files_size = column_size(q, 9),
        .is_host = sqlite3_column_int64(q, 10),
        .restarts = sqlite3_column_int64(q, 11),
        .sriov_vfs = sqlite3_column_int(q, 12),
    };
    struct intent *i = intent_create(&pod);
    r->list = xgrow(r->list, r->n, &r->cap, sizeof *r->list);
    r->list[r->n++] = i;
    free(steal(&i->env));
    return intent_env_decode(i, column(q, 7), column_size(q, 7), err);
}

/* Both tables are read in the order of their UIDs. */
static int read_progress(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct reading *r = ctx;
    while (r->at < r->n && strcmp(r->list[r->at]->uid, column(q, 0)) < 0)
        r->at++;
    if (r->at == r->n || strcmp(r->list[r->at]->uid, column(q, 0)) != 0)
        return 0;
    return intent_progress_decode(r->list[r->at], column(q, 1),
                                  column_size(q, 1), err);
}

int intents_each(struct intents *s, intents_visit_f *visit, void *ctx,
                 struct error *err)
{
    struct reading r = {0};
    (void)pthread_mutex_lock(&s->lock);
    int e = sqldb_each(&s->d, s->sql[SQL_EACH], read_pod, &r, err);
    if (e == 0)
        e = sqldb_each(&s->d, s->sql[SQL_EACH_PROGRESS], read_progress, &r,
                       err);
    (void)pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < r.n; i++) {
        if (e == 0)
            visit(ctx, r.list[i]);
        else
            intent_destroy(r.list[i]);
    }
    free(r.list);
    return e;
}

struct drained_visit {
    void (*visit)(void *ctx, const char *place);
    void *ctx;
};

static int read_drained(sqlite3_stmt *q, void *ctx, struct error *err)
{
    const struct drained_visit *v = ctx;
    (void)err;
    v->visit(v->ctx, column(q, 0));
    return 0;
}

int intents_each_drained(struct intents *s,
                         void (*visit)(void *ctx, const char *place), void *ctx,
                         struct error *err)
{
    struct drained_visit v = {visit, ctx};
    hold_lock(&s->lock);
    return sqldb_each(&s->d, s->sql[SQL_EACH_DRAINED], read_drained, &v, err);
}

/* --- logs ---------------------------------------------------------------- */

static void bind_blob(struct binder *b, const char *data, size_t size)
{
    (void)sqlite3_bind_blob64(b->q, ++b->at, size ? data : "", size,
                              SQLITE_STATIC);
    b->sum = sum_add(b->sum, data, size);
}

int intents_put_log(struct intents *s, const struct intent_log *log,
                    struct error *err)
{
    const char *const texts[] = {log->uid, log->container, log->owner,
                                 log->namespace, log->name};
    struct binder put = {.q = s->sql[SQL_PUT_LOG]};
    hold_lock(&s->lock);
    bind_texts(&put, texts, ARRAY_LEN(texts));
    bind_int(&put, log->init);
    bind_int(&put, (int64_t)log->next);
    bind_blob(&put, log->text, log->size);
    bind_sum(&put);
    return put_trimmed(s, SQL_PUT_LOG, SQL_TRIM_LOGS, INTENT_LOGS_MAX, err);
}

int intents_delete_logs(struct intents *s, const char *uid, struct error *err)
{
    return change(s, SQL_DELETE_LOGS, &uid, 1, false, err);
}

struct log_found {
    char uid[64]; /* "" none */
    struct str *text;
    uint64_t next;
};

/* Rows come in the order of being written: another pod is a newer one, and
 * its first container comes first. */
static int read_log(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct log_found *f = ctx;
    (void)err;
    if (strcmp(f->uid, column(q, 0)) == 0)
        return 0;
    (void)snprintf(f->uid, sizeof f->uid, "%s", column(q, 0));
    f->next = (uint64_t)sqlite3_column_int64(q, 6);
    str_reset(f->text);
    str_add_n(f->text, sqlite3_column_blob(q, 7), column_size(q, 7));
    return 0;
}

int intents_find_log(struct intents *s, const struct intent_log *names,
                     struct str *ret_text, uint64_t *ret_next,
                     struct error *err)
{
    const char *const texts[] = {names->namespace, names->name,
                                 names->container,
                                 names->uid ? names->uid : ""};
    struct binder b = {.q = s->sql[SQL_FIND_LOG]};
    struct log_found f = {.text = ret_text};
    (void)pthread_mutex_lock(&s->lock);
    bind_texts(&b, texts, ARRAY_LEN(texts));
    int e = sqldb_each(&s->d, b.q, read_log, &f, err);
    (void)pthread_mutex_unlock(&s->lock);
    if (e == 0 && !f.uid[0])
        e = error_set(err, ENOENT, "pod %s/%s: no log is kept",
                      names->namespace, names->name);
    if (e == 0)
        *ret_next = f.next;
    return e;
}

struct log_visit {
    const char *owner;
    void (*visit)(void *ctx, const char *uid);
    void *ctx;
    char last[64];
};

static int read_log_uid(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct log_visit *v = ctx;
    (void)err;
    if (strcmp(column(q, 2), v->owner) != 0 ||
        strcmp(column(q, 0), v->last) == 0)
        return 0;
    (void)snprintf(v->last, sizeof v->last, "%s", column(q, 0));
    v->visit(v->ctx, v->last);
    return 0;
}

int intents_each_log(struct intents *s, const char *owner,
                     void (*visit)(void *ctx, const char *uid), void *ctx,
                     struct error *err)
{
    struct log_visit v = {.owner = owner, .visit = visit, .ctx = ctx};
    hold_lock(&s->lock);
    return sqldb_each(&s->d, s->sql[SQL_EACH_LOG], read_log_uid, &v, err);
}

/* --- folders that were left ---------------------------------------------- */

int intents_put_leftover_dir(struct intents *s, const char *place,
                             const char *uid, struct error *err)
{
    struct binder put = {.q = s->sql[SQL_PUT_LEFTOVER_DIR]};
    hold_lock(&s->lock);
    bind_text(&put, place, strlen(place));
    bind_text(&put, uid, strlen(uid));
    bind_sum(&put);
    return put_trimmed(s, SQL_PUT_LEFTOVER_DIR, SQL_TRIM_LEFTOVER_DIRS,
                       INTENT_LEFTOVER_DIRS_MAX, err);
}

int intents_delete_leftover_dir(struct intents *s, const char *place,
                                const char *uid, struct error *err)
{
    const char *const texts[] = {place, uid};
    return change(s, SQL_DELETE_LEFTOVER_DIR, texts, ARRAY_LEN(texts), false,
                  err);
}

struct left_visit {
    void (*visit)(void *ctx, const char *place, const char *uid);
    void *ctx;
};

static int read_left(sqlite3_stmt *q, void *ctx, struct error *err)
{
    const struct left_visit *v = ctx;
    (void)err;
    v->visit(v->ctx, column(q, 0), column(q, 1));
    return 0;
}

int intents_each_leftover_dir(struct intents *s,
                              void (*visit)(void *ctx, const char *place,
                                            const char *uid),
                              void *ctx, struct error *err)
{
    struct left_visit v = {visit, ctx};
    hold_lock(&s->lock);
    return sqldb_each(&s->d, s->sql[SQL_EACH_LEFTOVER_DIR], read_left, &v, err);
}
