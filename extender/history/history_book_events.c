/* Events, and refusals, of which there are many of one pod. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_book_private.h"
#include "lib/base/idmap.h"
#include "lib/io/failpoint.h"

enum {
    REFUSALS_MAX = 65536, /* pods whose last refusal is remembered */
    FLUSH_MS = 10000,     /* between two times that counts are written */
    AGAIN_MS = 3600000,   /* for one of before a start to be the same still */
};

static int write_event(struct history_book *b, enum history_sql which,
                       const struct event_row *e, struct error *err)
{
    const int64_t values[] = {e->seq,     e->at,    e->kind, e->reason,
                              e->object,  e->node,  e->job,  e->pair,
                              e->message, e->count, e->last};
    struct history_row r = history_row(&b->db, which);
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        history_row_int(&r, values[i]);
    history_row_sum(&r);
    int written = history_row_run(&b->db, &r, err);
    (void)failpoint("history-event");
    return written;
}

static int put_event(struct history_book *b, const struct history_event *e,
                     struct event_row *row, struct error *err)
{
    cleanup_free char *message = xstrndup(e->message ? e->message : "",
                                          HISTORY_MESSAGE_MAX);
    *row = (struct event_row){.seq = b->newest_event + 1,
                              .at = e->time_ms,
                              .kind = e->kind,
                              .reason = e->reason,
                              .pair = e->pair,
                              .count = e->count ? e->count : 1,
                              .last = e->last_ms};
    int r = book_name(b, e->object, &row->object, err);
    if (r == 0)
        r = book_name(b, e->node, &row->node, err);
    if (r == 0)
        r = book_name(b, e->job, &row->job, err);
    if (r == 0)
        r = book_name(b, message, &row->message, err);
    if (r == 0)
        r = write_event(b, HISTORY_PUT_EVENT, row, err);
    if (r == 0)
        b->newest_event++;
    return r;
}

/* --- refusals ------------------------------------------------------------- */

/* "3 of 40 nodes" and "4 of 41 nodes" are alike. */
static uint64_t likeness(const char *text)
{
    uint64_t hash = 0;
    for (const char *p = text; *p;) {
        size_t size = strcspn(p, "0123456789");
        hash = hash_mix(hash + 1, hash_bytes(p, size));
        p += size;
        p += strspn(p, "0123456789");
    }
    return hash;
}

static void refusal_free(void *value)
{
    struct refusal *r = value;
    free(r->pod);
    free(r);
}

void book_forget_refusals(struct history_book *b)
{
    strmap_fini_with(&b->refusals, refusal_free);
    b->refusals = (struct strmap){0};
}

int book_flush_refusals(struct history_book *b, struct error *err)
{
    size_t pos = 0;
    struct refusal *r;
    int e = 0;
    while (e == 0 && (r = strmap_next(&b->refusals, &pos))) {
        if (r->counted)
            e = write_event(b, HISTORY_COUNT_EVENT, &r->row, err);
        r->counted = false;
    }
    b->flush_ms = b->now_ms + FLUSH_MS;
    return e;
}

void book_forget_refusal(struct history_book *b, const char *pod)
{
    struct refusal *r = strmap_remove(&b->refusals, pod);
    if (r)
        refusal_free(r);
}

/* It ends what the pod was refused for; how often is written first. */
static int end_refusal(struct history_book *b, const char *pod,
                       struct error *err)
{
    struct refusal *r = strmap_get(&b->refusals, pod);
    int e = r && r->counted ? write_event(b, HISTORY_COUNT_EVENT, &r->row, err)
                            : 0;
    book_forget_refusal(b, pod);
    return e;
}

static bool count_up(struct refusal *r, const struct history_event *e,
                     uint64_t like)
{
    int64_t last = r->row.last ? r->row.last : r->row.at;
    if (r->likeness != like && e->time_ms >= last + HISTORY_REFUSALS_MS)
        return false;
    r->row.count++;
    r->row.last = e->time_ms > last ? e->time_ms : last;
    r->counted = true;
    return true;
}

static int on_last_event(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct event_row *row = ctx;
    int64_t *values[] = {&row->seq,     &row->at,    &row->kind, &row->reason,
                         &row->object,  &row->node,  &row->job,  &row->pair,
                         &row->message, &row->count, &row->last};
    (void)err;
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        *values[i] = sqlite3_column_int64(q, (int)i);
    return 1;
}

/* The last event of an object; row.seq 0: there is none. */
static int find_last(struct history_book *b, enum history_kind kind,
                     const char *object, uint32_t reasons,
                     struct event_row *ret_row, struct error *err)
{
    int64_t id = 0;
    int e = history_names_find(&b->db, object, &id, err);
    *ret_row = (struct event_row){0};
    if (e < 0 || id == 0)
        return e;
    struct history_row r = history_row(&b->db, HISTORY_LAST_OF_OBJECT);
    history_row_bare(&r, id);
    history_row_bare(&r, kind);
    history_row_bare(&r, reasons);
    return sqldb_each(&b->db.d, r.q, on_last_event, ret_row, err);
}

int history_book_last(struct history_book *b, enum history_kind kind,
                      const char *object, uint32_t reasons,
                      enum history_reason *ret_reason, struct error *err)
{
    struct event_row row;
    int e = find_last(b, kind, object, reasons, &row, err);
    if (e == 0)
        *ret_reason = row.seq ? (enum history_reason)row.reason
                              : HISTORY_REASONS;
    return e;
}

/* What the pod was refused for last, before a start; row.seq 0: nothing. */
static int find_refusal(struct history_book *b, const char *pod,
                        struct refusal *ret, struct error *err)
{
    cleanup_free char *message = NULL;
    int e = find_last(b, HISTORY_POD, pod, UINT32_MAX, &ret->row, err);
    int64_t last = ret->row.last ? ret->row.last : ret->row.at;
    if (e == 0 &&
        (ret->row.reason != HISTORY_REFUSED || b->now_ms - last > AGAIN_MS))
        ret->row.seq = 0;
    if (e == 0 && ret->row.seq)
        e = history_names_get(&b->db, ret->row.message, &message, err);
    ret->likeness = message ? likeness(message) : 0;
    return e;
}

static int refused(struct history_book *b, const struct history_event *e,
                   struct error *err)
{
    uint64_t like = likeness(e->message ? e->message : "");
    struct refusal *known = strmap_get(&b->refusals, e->object);
    struct refusal found = {0};
    int r = 0;
    if (known && count_up(known, e, like))
        return 0;
    if (!known)
        r = find_refusal(b, e->object, &found, err);
    if (r < 0)
        return r;
    if (b->refusals.n >= REFUSALS_MAX) {
        r = book_flush_refusals(b, err);
        book_forget_refusals(b);
    }
    if (r == 0)
        r = end_refusal(b, e->object, err);
    if (r == 0 && !(found.row.seq && count_up(&found, e, like))) {
        found.likeness = like;
        r = put_event(b, e, &found.row, err);
    }
    if (r < 0)
        return r;
    found.pod = xstrdup(e->object);
    (void)strmap_put(&b->refusals, found.pod, xmemdup(&found, sizeof found));
    return 0;
}

int history_book_event(struct history_book *b, const struct history_event *e,
                       struct error *err)
{
    struct event_row row;
    if (e->reason == HISTORY_REFUSED)
        return refused(b, e, err);
    int r = e->kind == HISTORY_POD ? end_refusal(b, e->object, err) : 0;
    return r == 0 ? put_event(b, e, &row, err) : r;
}

/* --- jobs ----------------------------------------------------------------- */

struct held_scan {
    struct idmap seen; /* jobs by the number of their text */
    int64_t *held;     /* of these */
    size_t n, cap;
};

/* Newest first: the first one of a job counts. */
static int on_job_event(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct held_scan *s = ctx;
    int64_t reason = sqlite3_column_int64(q, 3);
    const uint64_t id[2] = {(uint64_t)sqlite3_column_int64(q, 4), 1};
    (void)err;
    if (sqlite3_column_int64(q, 2) != HISTORY_JOB || idmap_get(&s->seen, id))
        return 0;
    (void)idmap_put(&s->seen, id);
    if (reason != HISTORY_PLANNED && reason != HISTORY_HELD)
        return 0;
    s->held = xgrow(s->held, s->n, &s->cap, sizeof *s->held);
    s->held[s->n++] = (int64_t)id[0];
    return 0;
}

int history_book_each_held(struct history_book *b,
                           void (*visit)(void *ctx, const char *job), void *ctx,
                           struct error *err)
{
    struct held_scan s = {0};
    struct history_row r = history_row(&b->db, HISTORY_EVENTS_DOWN);
    history_row_bare(&r, b->newest_event);
    history_row_bare(&r, 0); /* of no object */
    history_row_bare(&r, HISTORY_HELD_SCAN);
    int e = sqldb_each(&b->db.d, r.q, on_job_event, &s, err);
    for (size_t i = 0; i < s.n && e == 0; i++) {
        cleanup_free char *job = NULL;
        e = history_names_get(&b->db, s.held[i], &job, err);
        if (e == 0)
            visit(ctx, job);
    }
    idmap_fini(&s.seen);
    free(s.held);
    return e;
}
