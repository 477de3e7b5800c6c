#include <stdlib.h>
#include <string.h>

#include "cli/base/listing_private.h"
#include "cli/base/output.h"
#include "cli/base/say.h"
#include "lib/base/mem.h"
#include "lib/base/strmap.h"
#include "lib/base/text.h"

/* One thing as it was seen last. */
struct thing {
    char *name; /* its key */
    char *text; /* what would be different */
    unsigned round;
};

struct listing_seen {
    struct strmap things;
    unsigned round;
    struct table widths; /* an empty table as wide as what was written */
};

static void thing_free(void *thing)
{
    struct thing *t = thing;
    free(t->name);
    free(t->text);
    free(t);
}

struct listing_seen *listing_seen_create(void)
{
    return xcalloc(1, sizeof(struct listing_seen));
}

void listing_seen_destroy(struct listing_seen *s)
{
    strmap_fini_with(&s->things, thing_free);
    table_fini(&s->widths);
    free(s);
}

bool listing_seen_any(const struct listing_seen *s)
{
    return s->round > 0;
}

/* --- what is different ------------------------------------------------------ */

/* The cells that are shown, but for ages; or all of it. */
static char *text_of(const struct cli *c, const cJSON *each,
                     const struct listing *l)
{
    cleanup_table struct table t = {0};
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    if (c->set.json) {
        char *json = cJSON_PrintUnformatted(each);
        return json ? json : xstrdup("");
    }
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    l->add(&t, each);
    cleanup_free const char **cells = table_texts(&t);
    for (size_t i = 0; i < l->n_columns; i++)
        if (!t.hidden[i] && !(l->columns[i].flags & LISTING_AGES))
            str_addf(&text, "%s\n", cells[i]);
    return str_steal(&text);
}

/* NULL when it is as it was, else what has become of it. */
static const char *note(struct cli *c, const cJSON *each,
                        const struct listing *l)
{
    struct listing_seen *s = c->seen;
    cleanup_str struct str name = STR_INIT(STR_MAX_DEFAULT);
    cleanup_free char *text = text_of(c, each, l);
    (void)output_name(each, &name);
    struct thing *t = strmap_get(&s->things, str_text(&name));
    bool known = t, same = t && strcmp(t->text, text) == 0;
    if (!t) {
        t = xcalloc(1, sizeof *t);
        t->name = str_steal(&name);
        (void)strmap_put(&s->things, t->name, t);
    }
    t->round = s->round;
    if (same)
        return NULL;
    free(t->text);
    t->text = steal(&text);
    return known ? "MODIFIED" : "ADDED";
}

/* --- shown ------------------------------------------------------------------ */

static void add_event(struct cli *c, const char *type, const char *object)
{
    if (c->form == OUTPUT_NAME)
        str_addf(&c->out, "%s\n", object);
    else
        str_addf(&c->out, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
}

static void write_rows(struct cli *c, const struct listing *l, struct table *t,
                       struct table *widths)
{
    bool first = widths->n_columns == 0;
    if (first)
        listing_begin(widths, l, c->form == OUTPUT_WIDE);
    table_widen(t, widths);
    table_widen(widths, t);
    if (first)
        table_write(t, c->colours, &c->out);
    else
        table_write_rows(t, c->colours, &c->out);
}

void listing_more(struct cli *c, const cJSON *list, const struct listing *l,
                  struct table *widths)
{
    cleanup_table struct table t;
    const cJSON *each;
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    cJSON_ArrayForEach(each, list)
    {
        l->add(&t, each);
    }
    if (t.n_cells)
        write_rows(c, l, &t, widths);
}

static int by_name(const void *a, const void *b)
{
    const struct thing *x = *(struct thing *const *)a;
    const struct thing *y = *(struct thing *const *)b;
    return text_order(x->name, y->name);
}

/* What is not there any more. */
static void drop_gone(struct cli *c)
{
    struct listing_seen *s = c->seen;
    cleanup_free struct thing **gone = xcalloc(s->things.n + 1, sizeof *gone);
    struct thing *t;
    size_t n = 0;
    for (size_t at = 0; (t = strmap_next(&s->things, &at));)
        if (t->round != s->round)
            gone[n++] = t;
    qsort(gone, n, sizeof(struct thing *), by_name);
    for (size_t i = 0; i < n; i++) {
        if (!c->set.json)
            cli_line(c, "%s is gone", gone[i]->name);
        else if (c->form != OUTPUT_NAME)
            add_event(c, "DELETED", gone[i]->text);
        (void)strmap_remove(&s->things, gone[i]->name);
        thing_free(gone[i]);
    }
}

void listing_changes(struct cli *c, const cJSON *list, const struct listing *l)
{
    struct listing_seen *s = c->seen;
    cleanup_table struct table t;
    const cJSON *each;
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    s->round++;
    cJSON_ArrayForEach(each, list)
    {
        const char *type = note(c, each, l);
        if (type && !c->set.json)
            l->add(&t, each);
        if (!type || !c->set.json)
            continue;
        cleanup_free char *json = cJSON_PrintUnformatted(each);
        add_event(c, type, json ? json : "null");
    }
    if (t.n_cells)
        write_rows(c, l, &t, &s->widths);
    drop_gone(c);
}
