#include "cli/base/listing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/base/json_path.h"
#include "cli/base/label_selector.h"
#include "cli/base/listing_private.h"
#include "cli/base/say.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { NONE = -1 };

/* --- which ------------------------------------------------------------------ */

const char *listing_value(const cJSON *each, const char *key, struct str *room)
{
    cleanup_free char *path = xasprintf(".%s", key);
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(each, "labels");
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(each, "pod");
    const cJSON *tries[] = {
        cJSON_GetObjectItemCaseSensitive(labels, key),
        cJSON_GetObjectItemCaseSensitive(each, key),
        json_path_find(each, path),
        json_path_find(pod, path),
    };
    str_reset(room);
    for (size_t i = 0; i < ARRAY_LEN(tries); i++)
        if (json_scalar(tries[i], room))
            return str_text(room);
    return NULL;
}

struct asked {
    const cJSON *each;
    struct str room;
};

static const char *value_of(void *ctx, const char *key)
{
    struct asked *a = ctx;
    return listing_value(a->each, key, &a->room);
}

static const char *given(const char *option)
{
    return option ? option : "";
}

/* What was not chosen goes. */
int listing_choose(struct cli *c, cJSON *list)
{
    cleanup_with(label_selector) struct label_selector *s = NULL;
    struct asked a = {.room = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    if (label_selector_parse(given(c->set.selector), &s, &err))
        return cli_usage("--selector: %s", err.text);
    for (cJSON *x = list->child, *next; x; x = next) {
        next = x->next;
        a.each = x;
        if (!label_selector_matches(s, value_of, &a))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, x));
    }
    str_fini(&a.room);
    return 0;
}

int listing_choose_items(struct cli *c, cJSON *answer)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "items");
    return cJSON_IsArray(list)
               ? listing_choose(c, list)
               : cli_fail("the server's answer has no list \"items\"");
}

/* --- in which order --------------------------------------------------------- */

struct row {
    cJSON *each;
    const cJSON *value; /* by path; NULL: it has none */
    char *text;         /* or by cell; NULL: "-" */
    size_t number;
};

static int by_number(double a, double b)
{
    return (a > b) - (a < b);
}

/* What has no value stands last. */
static int row_order(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;
    const cJSON *x = a->value, *y = b->value;
    int order = 0;
    if (a->text || b->text)
        order = a->text && b->text ? text_order(a->text, b->text)
                                   : !a->text - !b->text;
    else if (x && y && cJSON_IsNumber(x) && cJSON_IsNumber(y))
        order = by_number(x->valuedouble, y->valuedouble);
    else if (x && y && cJSON_IsString(x) && cJSON_IsString(y))
        order = text_order(x->valuestring, y->valuestring);
    else
        order = !x != !y ? !x - !y : x && y ? x->type - y->type : 0;
    return order ? order : by_number((double)a->number, (double)b->number);
}

void listing_begin(struct table *t, const struct listing *l, bool wide)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < l->n_columns; i++)
        columns[i] = (struct table_column){l->columns[i].title,
                                           l->columns[i].flags & LISTING_RIGHT};
    table_init_columns(t, columns, l->n_columns);
    for (size_t i = 0; i < l->n_columns; i++)
        t->hidden[i] = !wide && l->columns[i].flags & LISTING_WIDE;
}

static void keys_of_cells(struct row *rows, size_t n, const struct listing *l,
                          size_t column)
{
    cleanup_table struct table t;
    listing_begin(&t, l, true);
    for (size_t i = 0; i < n; i++)
        l->add(&t, rows[i].each);
    cleanup_free const char **texts = table_texts(&t);
    for (size_t i = 0; i < n; i++) {
        const char *text = texts[i * l->n_columns + column];
        rows[i].text = strcmp(text, "-") == 0 ? NULL : xstrdup(text);
    }
}

static bool keys_of_path(struct row *rows, size_t n, const char *path)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        rows[i].value = json_path_find(rows[i].each, path);
        any = any || rows[i].value;
        if (cJSON_IsNull(rows[i].value))
            rows[i].value = NULL; /* as what is not there */
    }
    return any || n == 0; /* of none all is had */
}

/* "CARDS(FREE/TOTAL)" is meant by "cards", too. */
static int find_column(const struct listing *l, const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < l->n_columns; i++) {
        const char *title = l->columns[i].title;
        if (strncasecmp(title, name, size) == 0 && size > 0 &&
            (title[size] == '\0' || title[size] == '('))
            return (int)i;
    }
    return NONE;
}

static int complain_column(const struct listing *l, const char *name)
{
    cleanup_str struct str known = STR_INIT(4096);
    for (size_t i = 0; i < l->n_columns; i++)
        str_addf(&known, "%s%s", i ? ", " : "", l->columns[i].title);
    return cli_usage("--sort-by: \"%s\" is no column; must be one of %s, or a "
                     "path as .name",
                     name, str_text(&known));
}

static bool is_path(const char *by)
{
    return *by == '.' || *by == '{';
}

/* Fill in what each is ordered by. */
static int find_keys(struct cli *c, struct row *rows, size_t n,
                     const struct listing *l)
{
    const char *by = given(c->set.sort_by), *path = NULL;
    struct error err = {0};
    int column = *by ? find_column(l, by) : 0;
    if (is_path(by) && json_path_check(by, &err))
        return cli_usage("--sort-by: %s", err.text);
    if (is_path(by))
        path = by;
    else if (column == NONE)
        return complain_column(l, by);
    else
        path = l->columns[column].path;
    if (!path)
        keys_of_cells(rows, n, l, (size_t)column);
    else if (!keys_of_path(rows, n, path) && is_path(by))
        return cli_usage("--sort-by: nothing in the list has %s", by);
    return 0;
}

static int order(struct cli *c, cJSON *list, const struct listing *l)
{
    size_t n = 0, size = (size_t)cJSON_GetArraySize(list);
    cleanup_free struct row *rows = xcalloc(size + 1, sizeof *rows);
    cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        rows[n] = (struct row){.each = x, .number = n};
        n++;
    }
    int rc = find_keys(c, rows, n, l);
    if (rc == 0)
        qsort(rows, n, sizeof *rows, row_order);
    for (size_t i = 0; i < n; i++) {
        free(rows[i].text);
        if (rc == 0)
            (void)cJSON_AddItemToArray(
                list, cJSON_DetachItemViaPointer(list, rows[i].each));
    }
    return rc;
}

/* --- shown ------------------------------------------------------------------ */

bool listing_table(struct cli *c, const cJSON *list, const struct listing *l)
{
    cleanup_table struct table t;
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    cli_add_rows(&t, list, l->add);
    if (!t.n_cells)
        return false;
    table_sort(&t);
    table_write(&t, c->colours, &c->out);
    if (l->below)
        l->below(c, list);
    return true;
}

void listing_one(struct cli *c, const cJSON *each, const struct listing *l)
{
    cleanup_table struct table t;
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    l->add(&t, each);
    table_write(&t, c->colours, &c->out);
}

static void write_table(struct cli *c, const cJSON *list,
                        const struct listing *l)
{
    cleanup_table struct table t;
    listing_begin(&t, l, c->form == OUTPUT_WIDE);
    cli_add_rows(&t, list, l->add);
    cli_write_rows(c, &t, l->none);
    if (l->below)
        l->below(c, list);
}

/* What was asked for, in its order. */
static int arrange(struct cli *c, cJSON *list, const struct listing *l)
{
    if (!cJSON_IsArray(list))
        return cli_fail("the server's answer has no list \"items\"");
    int rc = listing_choose(c, list);
    return rc ? rc : order(c, list, l);
}

int listing_show(struct cli *c, cJSON *answer, const struct listing *l)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "items");
    int rc = arrange(c, list, l);
    if (rc)
        return rc;
    c->nothing = !list->child;
    if (c->seen) {
        listing_changes(c, list, l);
        return 0;
    }
    if (!c->set.json) {
        write_table(c, list, l);
        return 0;
    }
    cleanup_free char *text = cJSON_PrintUnformatted(answer);
    str_addf(&c->out, "%s\n", text ? text : "");
    return 0;
}

int listing_check(struct cli *c, const struct listing *l)
{
    cleanup_with(json) cJSON *none = cJSON_CreateArray();
    return arrange(c, none, l);
}

int listing_get(struct cli *c, const char *path, const struct listing *l)
{
    const bool json = c->set.json;
    const bool chosen = *given(c->set.selector) || *given(c->set.sort_by);
    cleanup_with(json) cJSON *answer = NULL;
    if (c->form == OUTPUT_JSON && !chosen &&
        !c->seen) /* the server's own bytes */
        return cli_get(c, path, &answer);
    int rc = listing_check(c, l); /* what is wrong needs no answer */
    c->set.json = false;          /* what is asked is for us */
    if (rc == 0)
        rc = cli_get(c, path, &answer);
    c->set.json = json;
    return rc ? rc : listing_show(c, answer, l);
}
