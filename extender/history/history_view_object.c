/* One object, and the events around a moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history_view_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"

/* --- events --------------------------------------------------------------- */

static void write_event(void *ctx, const struct history_event *e)
{
    struct str *out = ctx;
    jwrite_key(out, NULL);
    history_event_write(e, out);
}

/* In front of those that came before. */
static void write_in_front(void *ctx, const struct history_event *e)
{
    struct str *out = ctx;
    cleanup_str struct str later = *out;
    *out = STR_INIT(STR_MAX_DEFAULT);
    history_event_write(e, out);
    if (later.size)
        str_add_c(out, ',');
    str_add_n(out, str_text(&later), later.size);
}

/* Those before and after, in the order of time. */
static int write_events(struct history_reader *r, struct history_filter f,
                        int64_t ms, struct str *out, struct error *err)
{
    cleanup_str struct str before = STR_INIT(STR_MAX_DEFAULT);
    uint64_t next;
    f.reason = HISTORY_REASONS;
    f.limit = HISTORY_VIEW_EVENTS;
    f.newest_first = true;
    f.until_ms = ms;
    int e = history_read_events(r, &f, write_in_front, &before, &next, err);
    if (e < 0)
        return e;
    jwrite_array(out, "events");
    str_add_n(out, str_text(&before), before.size);
    f.newest_first = false;
    f.until_ms = 0;
    f.since_ms = ms + 1;
    e = history_read_events(r, &f, write_event, out, &next, err);
    jwrite_end_array(out);
    return e;
}

/* --- objects -------------------------------------------------------------- */

static int view_node(struct history_reader *r, const char *name, int64_t ms,
                     struct str *out, struct error *err)
{
    struct history_node n = {.node = name};
    bool found = false;
    jwrite_text(out, "node", name);
    int e = history_read_node(r, name, ms, &n, &found, err);
    if (e == 0 && found)
        e = view_node_write(r, &n, ms, out, err);
    else if (e == 0)
        jwrite_text(out, "status", "unknown");
    return e == 0 ? write_events(r,
                                 (struct history_filter){.kind = HISTORY_KINDS,
                                                         .node = name},
                                 ms, out, err)
                  : e;
}

static int view_card(struct history_reader *r, const char *object, int64_t ms,
                     struct str *out, struct error *err)
{
    const char *slash = strchr(object, '/');
    cleanup_free char *node = xstrndup(object, (size_t)(slash - object));
    struct history_node n = {.cards = ""};
    struct view_places all = {0};
    bool found = false;
    view_names(out, "node", "card", object);
    int e = history_read_node(r, node, ms, &n, &found, err);
    const char *line = e == 0 ? view_card_find(n.cards, slash + 1) : NULL;
    if (e == 0)
        jwrite_text(out, "status",
                    found ? view_status_word(n.status) : "unknown");
    if (line) {
        e = history_read_places_of_node(r, node, ms, view_places_add, &all,
                                        err);
        view_places_keep(&all, line);
        view_places_sort(&all, view_compare_pods);
        /* the members behind its name */
        line = strchr(line, ',');
        str_add_n(out, line, strcspn(line, "\n") - 1);
    } else if (e == 0) {
        jwrite_text(out, "state", "absent");
    }
    if (e == 0)
        view_places_write(&all, out);
    free(all.items);
    return e == 0 ? write_events(r,
                                 (struct history_filter){.kind = HISTORY_CARD,
                                                         .object = object},
                                 ms, out, err)
                  : e;
}

static int compare_places(const void *a, const void *b)
{
    const struct history_place *x = a, *y = b;
    if (x->pair != y->pair)
        return x->pair < y->pair ? -1 : 1;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    return strcmp(x->pod, y->pod);
}

static int view_job(struct history_reader *r, const char *object, int64_t ms,
                    struct str *out, struct error *err)
{
    struct view_places all = {0};
    view_names(out, "namespace", "name", object);
    int e = history_read_places_of_job(r, object, ms, view_places_add, &all,
                                       err);
    if (e == 0) {
        view_places_sort(&all, compare_places);
        view_places_write(&all, out);
    }
    free(all.items);
    return e == 0 ? write_events(r,
                                 (struct history_filter){.kind = HISTORY_KINDS,
                                                         .job = object},
                                 ms, out, err)
                  : e;
}

static void write_place_found(void *ctx, const struct history_place *p)
{
    view_place_write(p, "place", ctx);
}

/* The newest event is what it waits for, if it is a refusal. */
static void write_refusal(void *ctx, const struct history_event *e)
{
    struct str *out = ctx;
    if (e->reason != HISTORY_REFUSED)
        return;
    jwrite_key(out, "refused");
    history_event_write(e, out);
}

static int view_pod(struct history_reader *r, const char *object, int64_t ms,
                    struct str *out, struct error *err)
{
    struct history_filter f = {.kind = HISTORY_POD, .object = object};
    uint64_t next;
    view_names(out, "namespace", "name", object);
    size_t size = out->size;
    int e = history_read_place_of_pod(r, object, ms, write_place_found, out,
                                      err);
    bool placed = out->size > size;
    if (e == 0 && !placed)
        jwrite_null(out, "place");
    size = out->size;
    f.reason = HISTORY_REASONS;
    f.newest_first = true;
    f.until_ms = ms;
    f.limit = 1;
    if (e == 0 && !placed)
        e = history_read_events(r, &f, write_refusal, out, &next, err);
    if (e == 0 && out->size == size)
        jwrite_null(out, "refused");
    return e == 0 ? write_events(r,
                                 (struct history_filter){.kind = HISTORY_POD,
                                                         .object = object},
                                 ms, out, err)
                  : e;
}

/* --- whole answers -------------------------------------------------------- */

static int complain_unknown(struct history_reader *r, enum history_kind kind,
                            const char *object, struct error *err)
{
    const char *guess = NULL;
    int e = history_read_guess(r, kind, object, &guess, err);
    if (e < 0)
        return e;
    return error_set(err, ENOENT, "nothing is remembered of %s %s%s%s%s",
                     history_kind_name(kind), object,
                     guess ? ": did you mean " : "", guess ? guess : "",
                     guess ? "?" : "");
}

/* A card has no event as long as it is well. */
static int is_known(struct history_reader *r, enum history_kind kind,
                    const char *object, int64_t ms, bool *ret_known,
                    struct error *err)
{
    int e = history_read_knows(r, kind, object, ret_known, err);
    if (e < 0 || *ret_known || kind != HISTORY_CARD)
        return e;
    const char *slash = strchr(object, '/');
    cleanup_free char *node = xstrndup(object, (size_t)(slash - object));
    struct history_node n = {.cards = ""};
    bool found = false;
    e = history_read_node(r, node, ms, &n, &found, err);
    *ret_known = e == 0 && view_card_find(n.cards, slash + 1);
    return e;
}

int history_view_object(struct history_reader *r, enum history_kind kind,
                        const char *object, int64_t ms, struct str *out,
                        struct error *err)
{
    static int (*const views[HISTORY_KINDS])(
        struct history_reader * r, const char *object, int64_t ms,
        struct str *out,
        struct error *err) = {view_pod, view_job, view_node, view_card};
    bool known = false;
    int e = is_known(r, kind, object, ms, &known, err);
    if (e == 0 && !known)
        return complain_unknown(r, kind, object, err);
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", history_kind_name(kind));
    if (e == 0)
        e = view_head(r, ms, out, err);
    if (e == 0)
        e = views[kind](r, object, ms, out, err);
    str_add(out, "}\n");
    return e;
}
