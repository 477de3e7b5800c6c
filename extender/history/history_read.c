#include "extender/history/history_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extender/history/history_names.h"
#include "extender/history/history_read_private.h"
#include "extender/state/scope.h"
#include "lib/base/nearest_word.h"

enum {
    TEXTS_MAX = 65536, /* that are remembered from question to question */
    TEXTS_SIZE_MAX = 64 << 20, /* bytes of them; all cards of a node are one */
    GUESS_MAX = 20000,         /* events that are looked at for a name */
};

/* --- texts ---------------------------------------------------------------- */

static void forget_texts(struct history_reader *r)
{
    for (size_t i = 0; i < r->texts.cap; i++)
        if (r->texts.slots[i].id[1])
            free((void *)(uintptr_t)r->texts.slots[i].data[0]);
    idmap_fini(&r->texts);
    r->texts = (struct idmap){0};
    r->texts_size = 0;
}

int reader_text(struct history_reader *r, int64_t number, const char **ret_text,
                struct error *err)
{
    const uint64_t id[2] = {(uint64_t)number, 1};
    const struct idmap_slot *known = number ? idmap_get(&r->texts, id) : NULL;
    char *text;
    *ret_text = "";
    if (known)
        *ret_text = (const char *)(uintptr_t)known->data[0];
    if (known || number == 0)
        return 0;
    int e = history_names_get(&r->db, number, &text, err);
    if (e < 0)
        return e;
    idmap_put(&r->texts, id)->data[0] = (uint64_t)(uintptr_t)text;
    r->texts_size += strlen(text) + 1;
    *ret_text = text;
    return 0;
}

/* --- opening -------------------------------------------------------------- */

int history_reader_open(const char *dir, struct history_reader **ret_reader,
                        struct error *err)
{
    cleanup_free char *path = xasprintf("%s/" HISTORY_FILE, dir);
    if (access(path, F_OK) < 0) /* and whoever writes is to make it */
        return error_set(err, EIO, "history: %s could not be made yet", path);
    struct history_reader *r = xcalloc(1, sizeof *r);
    int e = history_db_open_reader(&r->db, path, err);
    if (e < 0) {
        free(r);
        return e;
    }
    *ret_reader = r;
    return 0;
}

void history_reader_close(struct history_reader *r)
{
    if (!r)
        return;
    forget_texts(r);
    history_db_close(&r->db);
    free(r);
}

static int run(struct history_reader *r, enum history_sql which,
               struct error *err)
{
    struct history_row row = history_row(&r->db, which);
    return history_row_run(&r->db, &row, err);
}

int history_read_begin(struct history_reader *r, struct error *err)
{
    if (r->texts.n > TEXTS_MAX || r->texts_size > TEXTS_SIZE_MAX)
        forget_texts(r);
    r->damaged = false;
    return run(r, HISTORY_BEGIN_READ, err);
}

void history_reader_see(struct history_reader *r, const struct scope *scope)
{
    r->scope = scope;
}

bool history_read_was_damaged(const struct history_reader *r)
{
    return r->damaged;
}

int reader_each(struct history_reader *r, sqlite3_stmt *q, sqldb_row_f *visit,
                void *ctx, struct error *err)
{
    int e = sqldb_each(&r->db.d, q, visit, ctx, err);
    r->damaged |= e == -EBADMSG;
    return e;
}

void history_read_end(struct history_reader *r)
{
    struct error ignored;
    (void)run(r, HISTORY_COMMIT, &ignored); /* nothing was written */
}

/* --- events --------------------------------------------------------------- */

static bool is_of_namespace(const struct history_event *e,
                            const char *namespace)
{
    size_t size = strlen(namespace);
    return (e->kind == HISTORY_POD || e->kind == HISTORY_JOB) &&
           strncmp(e->object, namespace, size) == 0 && e->object[size] == '/';
}

bool history_filter_passes(const struct history_filter *f,
                           const struct history_event *e)
{
    return (f->kind == HISTORY_KINDS || e->kind == f->kind) &&
           (f->reason == HISTORY_REASONS || e->reason == f->reason) &&
           (!f->object || strcmp(e->object, f->object) == 0) &&
           (!f->namespace || is_of_namespace(e, f->namespace)) &&
           (!f->node || strcmp(e->node, f->node) == 0) &&
           (!f->job || strcmp(e->job, f->job) == 0) &&
           (!f->since_ms || e->time_ms >= f->since_ms) &&
           (!f->until_ms || e->time_ms <= f->until_ms);
}

/* What happened to a node or card is seen, unless it is told of a job. */
static bool sees_event(const struct scope *scope, const struct history_event *e)
{
    bool of_pod = e->kind == HISTORY_POD || e->kind == HISTORY_JOB;
    return (!of_pod || scope_sees_object(scope, e->object)) &&
           (!*e->job || scope_sees_object(scope, e->job));
}

/* One question, while rows are visited. */
struct scan {
    struct history_reader *r;
    const struct history_filter *filter;
    history_event_f *visit;
    void *ctx;
    size_t n_seen, n_given;
    uint64_t last; /* event that was looked at */
};

static int read_texts(struct scan *s, sqlite3_stmt *q, struct history_event *e,
                      struct error *err)
{
    const struct {
        int column;
        const char **text;
    } texts[] = {
        {4, &e->object}, {5, &e->node}, {6, &e->job}, {8, &e->message}};
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts) && r == 0; i++)
        r = reader_text(s->r, sqlite3_column_int64(q, texts[i].column),
                        texts[i].text, err);
    return r;
}

static int on_event(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct scan *s = ctx;
    struct history_event e = {
        .seq = (uint64_t)sqlite3_column_int64(q, 0),
        .time_ms = sqlite3_column_int64(q, 1),
        .kind = (enum history_kind)sqlite3_column_int64(q, 2),
        .reason = (enum history_reason)sqlite3_column_int64(q, 3),
        .pair = (int32_t)sqlite3_column_int64(q, 7),
        .count = (uint32_t)sqlite3_column_int64(q, 9),
        .last_ms = sqlite3_column_int64(q, 10),
    };
    s->n_seen++;
    s->last = e.seq;
    int r = read_texts(s, q, &e, err);
    if (r < 0 || !history_filter_passes(s->filter, &e) ||
        !sees_event(s->r->scope, &e))
        return r;
    s->visit(s->ctx, &e);
    return ++s->n_given == s->filter->limit;
}

/* The index that finds least, and the number of what it is to find; a number
 * of -1: nothing can be found. */
static int choose_index(struct history_reader *r,
                        const struct history_filter *f,
                        enum history_sql *ret_which, int64_t *ret_key,
                        struct error *err)
{
    const char *text = f->object ? f->object : f->job ? f->job : f->node;
    enum history_sql up = f->object ? HISTORY_EVENTS_OF_OBJECT_UP
                          : f->job  ? HISTORY_EVENTS_OF_JOB_UP
                          : f->node ? HISTORY_EVENTS_OF_NODE_UP
                                    : HISTORY_EVENTS_UP;
    int e = text ? history_names_find(&r->db, text, ret_key, err) : 0;
    if (e == 0 && text && *ret_key == 0)
        *ret_key = -1;
    *ret_which = f->newest_first ? up + 1 : up; /* …_DOWN comes next */
    return e;
}

/* Where to begin; the order of numbers is that of time. */
static int first_seq(struct history_reader *r, const struct history_filter *f,
                     int64_t *ret_seq, struct error *err)
{
    int e = 0;
    if (f->newest_first) {
        *ret_seq = f->after ? (int64_t)f->after - 1 : INT64_MAX;
        if (!f->after && f->until_ms)
            e = history_seq_from(&r->db, HISTORY_EVENT_AT, f->until_ms + 1,
                                 ret_seq, err);
        return e;
    }
    *ret_seq = (int64_t)f->after + 1;
    if (!f->after && f->since_ms)
        e = history_seq_from(&r->db, HISTORY_EVENT_AT, f->since_ms, ret_seq,
                             err);
    return e;
}

int history_read_events(struct history_reader *r,
                        const struct history_filter *f, history_event_f *visit,
                        void *ctx, uint64_t *ret_next, struct error *err)
{
    struct scan s = {.r = r, .filter = f, .visit = visit, .ctx = ctx};
    enum history_sql which = HISTORY_EVENTS_UP;
    int64_t key = 0, seq = 0;
    int e = choose_index(r, f, &which, &key, err);
    if (e == 0)
        e = first_seq(r, f, &seq, err);
    *ret_next = 0;
    if (e < 0 || key < 0)
        return e;
    struct history_row row = history_row(&r->db, which);
    history_row_bare(&row, seq);
    history_row_bare(&row, key);
    history_row_bare(&row, HISTORY_SCAN_MAX);
    e = reader_each(r, row.q, on_event, &s, err);
    if (s.n_given == f->limit || s.n_seen == HISTORY_SCAN_MAX)
        *ret_next = s.last;
    return e;
}

/* --- names ---------------------------------------------------------------- */

static void note_known(void *ctx, const struct history_event *e)
{
    (void)e;
    *(bool *)ctx = true;
}

int history_read_knows(struct history_reader *r, enum history_kind kind,
                       const char *object, bool *ret_known, struct error *err)
{
    struct history_filter f = {.kind = kind,
                               .reason = HISTORY_REASONS,
                               .object = object,
                               .newest_first = true,
                               .limit = 1};
    bool known = false;
    uint64_t next = 0;
    struct history_node node;
    int e = history_read_events(r, &f, note_known, &known, &next, err);
    if (e == 0 && !known && kind == HISTORY_NODE)
        e = history_read_node(r, object, INT64_MAX, &node, &known, err);
    if (e == 0)
        *ret_known = known;
    return e;
}

struct guess {
    const char *wanted, *best;
    size_t least;
};

static void consider(void *ctx, const struct history_event *e)
{
    struct guess *g = ctx;
    size_t d = nearest_word_guess(g->wanted, e->object);
    if (d >= g->least)
        return;
    g->least = d;
    g->best = e->object;
}

int history_read_guess(struct history_reader *r, enum history_kind kind,
                       const char *object, const char **ret_guess,
                       struct error *err)
{
    struct guess g = {.wanted = object, .least = NEAREST_WORD_NOT};
    const struct history_filter f = {.kind = kind,
                                     .reason = HISTORY_REASONS,
                                     .newest_first = true,
                                     .limit = GUESS_MAX};
    cleanup_free const char **nodes = NULL;
    size_t n = 0;
    uint64_t next;
    int e = kind == HISTORY_NODE
                ? history_read_nodes(r, &nodes, &n, err)
                : history_read_events(r, &f, consider, &g, &next, err);
    for (size_t i = 0; i < n; i++)
        consider(&g, &(struct history_event){.object = nodes[i]});
    if (e == 0)
        *ret_guess = g.best;
    return e;
}

static void note_time(void *ctx, const struct history_event *e)
{
    *(int64_t *)ctx = e->time_ms;
}

int history_read_oldest(struct history_reader *r, int64_t *ret_ms,
                        struct error *err)
{
    const struct history_filter f = {
        .kind = HISTORY_KINDS, .reason = HISTORY_REASONS, .limit = 1};
    const struct scope *scope = r->scope;
    uint64_t next;
    *ret_ms = 0;
    r->scope = NULL; /* a time names nobody */
    int e = history_read_events(r, &f, note_time, ret_ms, &next, err);
    r->scope = scope;
    return e;
}
