#include "extender/history/history_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { CACHED = 8192 }; /* a power of two */

/* One that was used: pods come with several events in a row, nodes and messages
 * all the time. */
struct name {
    char *text; /* NULL: none */
    int64_t id, day;
};

struct history_names {
    struct history_db *db;
    int64_t newest;
    struct name cache[CACHED];
};

int history_names_open(struct history_db *db, struct history_names **ret_names,
                       struct error *err)
{
    bool ignored;
    int64_t newest;
    int e = sqldb_query(&db->d,
                        "SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE "
                        "name = 'names'), 0)",
                        &newest, &ignored, err);
    if (e < 0)
        return e;
    *ret_names = xcalloc(1, sizeof **ret_names);
    (*ret_names)->db = db;
    (*ret_names)->newest = newest;
    return 0;
}

static void forget(struct history_names *n)
{
    for (size_t i = 0; i < CACHED; i++) {
        free(n->cache[i].text);
        n->cache[i] = (struct name){0};
    }
}

void history_names_close(struct history_names *n)
{
    if (!n)
        return;
    forget(n);
    free(n);
}

/* What a row of names says; `text` is the caller's. */
struct found {
    const char *wanted; /* NULL: whatever comes */
    char *text;
    int64_t id, day;
};

static int on_name(sqlite3_stmt *q, void *ctx, struct error *err)
{
    struct found *f = ctx;
    const char *text = (const char *)sqlite3_column_text(q, 2);
    (void)err;
    if (f->wanted && strcmp(text, f->wanted) != 0)
        return 0; /* of the same hash */
    f->text = xstrdup(text);
    f->id = sqlite3_column_int64(q, 0);
    f->day = sqlite3_column_int64(q, 3);
    return 1;
}

static int look_up(struct history_db *db, enum history_sql which, int64_t key,
                   struct found *f, struct error *err)
{
    struct history_row r = history_row(db, which);
    history_row_bare(&r, key);
    return sqldb_each(&db->d, db->sql[which], on_name, f, err);
}

static int store(struct history_names *n, enum history_sql which,
                 const struct name *name, struct error *err)
{
    struct history_row r = history_row(n->db, which);
    history_row_int(&r, name->id);
    history_row_int(&r, history_name_hash(name->text));
    history_row_text(&r, name->text);
    history_row_int(&r, name->day);
    history_row_sum(&r);
    return history_row_run(n->db, &r, err);
}

/* Into the cache: it was just read; or is not there yet (id 0). */
static int put_uncached(struct history_names *n, struct name *slot,
                        const char *text, int64_t day, struct error *err)
{
    struct found f = {.wanted = text};
    int e = look_up(n->db, HISTORY_FIND_NAME, history_name_hash(text), &f, err);
    free(f.text);
    if (e < 0)
        return e;
    struct name name = {(char *)text, f.id ? f.id : n->newest + 1, day};
    if (f.id == 0)
        e = store(n, HISTORY_PUT_NAME, &name, err);
    else if (f.day < day)
        e = store(n, HISTORY_TOUCH_NAME, &name, err);
    if (e < 0)
        return e;
    if (f.id == 0)
        n->newest++;
    free(slot->text);
    *slot = (struct name){xstrdup(text), name.id, day};
    return 0;
}

int history_names_put(struct history_names *n, const char *text, int64_t day,
                      int64_t *ret_id, struct error *err)
{
    int e = 0;
    if (!*text) {
        *ret_id = 0;
        return 0;
    }
    struct name *slot = &n->cache[history_name_hash(text) & (CACHED - 1)];
    if (!slot->text || strcmp(slot->text, text) != 0) {
        e = put_uncached(n, slot, text, day, err);
    } else if (slot->day < day) {
        slot->day = day;
        e = store(n, HISTORY_TOUCH_NAME, slot, err);
    }
    if (e == 0)
        *ret_id = slot->id;
    return e;
}

int history_names_touch(struct history_names *n, int64_t id, int64_t day,
                        struct error *err)
{
    struct found f = {0};
    int e = id ? look_up(n->db, HISTORY_GET_NAME, id, &f, err) : 0;
    if (e == 0 && f.text && f.day < day) {
        const struct name name = {f.text, f.id, day};
        e = store(n, HISTORY_TOUCH_NAME, &name, err);
    }
    free(f.text);
    return e;
}

int history_names_get(struct history_db *db, int64_t id, char **ret_text,
                      struct error *err)
{
    struct found f = {0};
    int e = id ? look_up(db, HISTORY_GET_NAME, id, &f, err) : 0;
    if (e == 0 && id && !f.text)
        e = error_set(err, EBADMSG, "history: text %lld is missing",
                      (long long)id);
    if (e < 0)
        return e;
    *ret_text = f.text ? f.text : xstrdup("");
    return 0;
}

int history_names_find(struct history_db *db, const char *text, int64_t *ret_id,
                       struct error *err)
{
    struct found f = {.wanted = text};
    int e = look_up(db, HISTORY_FIND_NAME, history_name_hash(text), &f, err);
    free(f.text);
    if (e == 0)
        *ret_id = f.id;
    return e;
}

int history_names_drop(struct history_names *n, int64_t day, struct error *err)
{
    struct history_row r = history_row(n->db, HISTORY_DROP_NAMES);
    history_row_bare(&r, day);
    forget(n);
    return history_row_run(n->db, &r, err);
}
