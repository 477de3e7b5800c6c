#include "extender/history/history_view.h"

#include <stdlib.h>
#include <string.h>

#include "extender/history/history_db.h"
#include "extender/history/history_view_private.h"
#include "extender/state/snapshot.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"

/* --- places --------------------------------------------------------------- */

void view_places_add(void *ctx, const struct history_place *p)
{
    struct view_places *all = ctx;
    all->items = xgrow(all->items, all->n, &all->cap, sizeof *all->items);
    all->items[all->n++] = *p;
}

int view_compare_pods(const void *a, const void *b)
{
    const struct history_place *x = a, *y = b;
    return strcmp(x->pod, y->pod);
}

void view_places_sort(struct view_places *all,
                      int (*compare)(const void *a, const void *b))
{
    if (all->n)
        qsort(all->items, all->n, sizeof *all->items, compare);
}

static void view_time(struct str *out, const char *key, int64_t ms)
{
    char text[RFC3339_SIZE];
    rfc3339_format(ms, text);
    jwrite_text(out, key, text);
}

/* The two parts of "NS/NAME". */
void view_names(struct str *out, const char *key_a, const char *key_b,
                const char *object)
{
    const char *slash = strchr(object, '/');
    cleanup_free char *a = xstrndup(object, (size_t)(slash - object));
    jwrite_text(out, key_a, a);
    jwrite_text(out, key_b, slash + 1);
}

void view_place_write(const struct history_place *p, const char *key,
                      struct str *out)
{
    const char *slash = strchr(p->job, '/');
    jwrite_object(out, key);
    view_names(out, "namespace", "name", p->pod);
    jwrite_text(out, "role", pod_role_name((enum pod_role)p->role));
    if (slash)
        jwrite_text(out, "job", slash + 1);
    if (p->pair >= 0)
        jwrite_int(out, "pair", p->pair);
    jwrite_text(out, "node", p->node);
    str_addf(out, ",%s", p->devices); /* members, as they are stored */
    view_time(out, "since", p->since_ms);
    if (p->until_ms)
        view_time(out, "until", p->until_ms);
    jwrite_end_object(out);
}

void view_places_write(const struct view_places *all, struct str *out)
{
    jwrite_array(out, "pods");
    for (size_t i = 0; i < all->n; i++)
        view_place_write(&all->items[i], NULL, out);
    jwrite_end_array(out);
}

/* --- cards ---------------------------------------------------------------- */

/* Is a name, with its quotes, among the cards of a place? */
static bool has_card(const struct history_place *p, const char *name,
                     size_t size)
{
    static const char head[] = "\"cards\":[";
    const char *list = strstr(p->devices, head);
    const char *end = list ? strchr(list, ']') : NULL;
    const char *at = list ? memmem(list + sizeof head - 1,
                                   (size_t)(end - list) - (sizeof head - 1),
                                   name, size)
                          : NULL;
    return at;
}

/* Of a line `{"id":"NAME",…}` the name with its quotes. */
static const char *card_name(const char *line, size_t *ret_size)
{
    static const char head[] = "{\"id\":";
    const char *name = line + sizeof head - 1;
    *ret_size = strcspn(name, ",");
    return name;
}

static void write_card(const char *line, const struct view_places *all,
                       struct str *out)
{
    size_t size;
    const char *name = card_name(line, &size);
    jwrite_key(out, NULL);
    str_add_n(out, line, strcspn(line, "\n") - 1); /* without its brace */
    jwrite_array(out, "pods");
    for (size_t i = 0; i < all->n; i++)
        if (has_card(&all->items[i], name, size))
            jwrite_text(out, NULL, all->items[i].pod);
    jwrite_end_array(out);
    jwrite_end_object(out);
}

static void write_cards(const char *lines, const struct view_places *all,
                        struct str *out)
{
    jwrite_array(out, "cards");
    for (const char *at = lines; *at; at += strcspn(at, "\n") + 1)
        write_card(at, all, out);
    jwrite_end_array(out);
}

/* The line of a card of that node; NULL: it has none of that name. */
const char *view_card_find(const char *lines, const char *card)
{
    cleanup_str struct str name = STR_INIT(HISTORY_OBJECT_MAX * 6 + 16);
    size_t size;
    str_add_json(&name, card);
    for (const char *at = lines; *at; at += strcspn(at, "\n") + 1) {
        const char *own = card_name(at, &size);
        if (size == name.size && memcmp(own, name.data, size) == 0)
            return at;
    }
    return NULL;
}

void view_places_keep(struct view_places *all, const char *line)
{
    size_t size, n = 0;
    const char *name = card_name(line, &size);
    for (size_t i = 0; i < all->n; i++)
        if (has_card(&all->items[i], name, size))
            all->items[n++] = all->items[i];
    all->n = n;
}

/* --- nodes ---------------------------------------------------------------- */

const char *view_status_word(int status)
{
    return status == HISTORY_NODE_GONE_STATUS
               ? "gone"
               : node_status_name((enum node_status)status);
}

/* Its members but its name. */
int view_node_write(struct history_reader *r, const struct history_node *n,
                    int64_t ms, struct str *out, struct error *err)
{
    struct view_places all = {0};
    int e = history_read_places_of_node(r, n->node, ms, view_places_add, &all,
                                        err);
    if (e == 0) {
        view_places_sort(&all, view_compare_pods);
        jwrite_text(out, "status", view_status_word(n->status));
        view_time(out, "since", n->since_ms);
        write_cards(n->cards, &all, out);
        view_places_write(&all, out);
    }
    free(all.items);
    return e;
}

/* --- all nodes ------------------------------------------------------------ */

int view_head(struct history_reader *r, int64_t ms, struct str *out,
              struct error *err)
{
    int64_t oldest_ms;
    int e = history_read_oldest(r, &oldest_ms, err);
    view_time(out, "at", ms);
    if (e == 0 && oldest_ms)
        view_time(out, "oldest", oldest_ms);
    return e;
}

/* One node; nothing when it was not there. */
static int write_item(struct history_reader *r, const char *name, int64_t ms,
                      size_t *n, struct str *out, struct error *err)
{
    struct history_node node;
    bool found;
    int e = history_read_node(r, name, ms, &node, &found, err);
    if (e < 0 || !found || node.status == HISTORY_NODE_GONE_STATUS)
        return e;
    str_add(out, *n ? ",\n" : "");
    ++*n;
    jwrite_object(out, NULL);
    jwrite_text(out, "node", name);
    e = view_node_write(r, &node, ms, out, err);
    jwrite_end_object(out);
    return e;
}

int history_view_topology(struct history_reader *r, int64_t ms,
                          const char *after, size_t limit, struct str *out,
                          struct error *err)
{
    cleanup_free const char **names = NULL;
    size_t n = 0, n_names = 0, i = 0;
    int e = history_read_nodes(r, &names, &n_names, err);
    jwrite_object(out, NULL);
    if (e == 0)
        e = view_head(r, ms, out, err);
    jwrite_array(out, "items");
    while (i < n_names && after && strcmp(names[i], after) <= 0)
        i++;
    for (; e == 0 && i < n_names && n < limit; i++)
        e = write_item(r, names[i], ms, &n, out, err);
    jwrite_end_array(out);
    if (e == 0 && i < n_names)
        jwrite_text(out, "continue", names[i - 1]);
    str_add(out, "}\n");
    return e;
}
