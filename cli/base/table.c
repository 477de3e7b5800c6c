#include "cli/base/table.h"

#include <stdarg.h>

#include "lib/base/mem.h"

enum { GAP = 2 };

void table_init(struct table *t, const struct table_column *columns,
                size_t n_columns)
{
    *t = (struct table){
        .columns = columns,
        .n_columns = n_columns < TABLE_COLUMNS_MAX ? n_columns
                                                   : TABLE_COLUMNS_MAX,
    };
}

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->cells);
    t->cells = NULL;
    t->n_cells = t->cells_cap = 0;
}

void text_render(const char *text, enum table_style style, bool colours,
                 struct str *out)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "",        [STYLE_GOOD] = "\033[32m",
        [STYLE_FAIR] = "\033[33m", [STYLE_BAD] = "\033[31m",
        [STYLE_DIM] = "\033[2m",
    };
    bool coloured = colours && style != STYLE_PLAIN;
    if (coloured)
        str_add(out, codes[style]);
    text_clean(text, out);
    if (coloured)
        str_add(out, "\033[0m");
}

void table_add_style(struct table *t, enum table_style style, const char *text)
{
    cleanup_str struct str clean = STR_INIT(TABLE_CELL_MAX);
    text_clean(text && *text ? text : "-", &clean);
    t->cells = xgrow(t->cells, t->n_cells, &t->cells_cap, sizeof *t->cells);
    t->cells[t->n_cells++] = (struct table_cell){str_steal(&clean), style};
}

void table_add(struct table *t, const char *text)
{
    table_add_style(t, STYLE_PLAIN, text);
}

void table_addf(struct table *t, const char *fmt, ...)
{
    char text[TABLE_CELL_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_add(t, text);
}

struct row {
    struct table_cell cells[TABLE_COLUMNS_MAX];
    size_t number;
};

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = text_order(x->cells[0].text, y->cells[0].text);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

void table_sort(struct table *t)
{
    size_t n = t->n_cells / t->n_columns;
    size_t size = t->n_columns * sizeof *t->cells;
    cleanup_free struct row *rows = xcalloc(n + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        memcpy(rows[i].cells, t->cells + i * t->n_columns, size);
        rows[i].number = i;
    }
    if (n)
        qsort(rows, n, sizeof *rows, row_order);
    for (size_t i = 0; i < n; i++)
        memcpy(t->cells + i * t->n_columns, rows[i].cells, size);
}

static void pad(struct str *out, size_t n)
{
    while (n-- > 0)
        str_add_c(out, ' ');
}

struct rendering {
    const struct table *table;
    size_t widths[TABLE_COLUMNS_MAX];
    bool colours;
    struct str *out;
};

/* One line; `cells` beyond `n` are missing. */
static void render_row(const struct rendering *r,
                       const struct table_cell *cells, size_t n)
{
    const struct table *t = r->table;
    size_t owed = 0; /* spaces that only a further cell makes necessary */
    for (size_t c = 0; c < t->n_columns; c++) {
        const char *text = c < n ? cells[c].text : "-";
        size_t room = r->widths[c] - text_width(text);
        if (t->columns[c].right)
            owed += room;
        pad(r->out, owed);
        text_render(text, c < n ? cells[c].style : STYLE_PLAIN, r->colours,
                    r->out);
        owed = GAP + (t->columns[c].right ? 0 : room);
    }
    str_add_c(r->out, '\n');
}

static void render_head(const struct rendering *r)
{
    const struct table *t = r->table;
    struct table_cell head[TABLE_COLUMNS_MAX] = {0};
    for (size_t c = 0; c < t->n_columns; c++)
        head[c] = (struct table_cell){xstrdup(t->columns[c].title), STYLE_DIM};
    render_row(r, head, t->n_columns);
    for (size_t c = 0; c < t->n_columns; c++)
        free(head[c].text);
}

void table_render(const struct table *t, bool colours, struct str *out)
{
    struct rendering r = {.table = t, .colours = colours, .out = out};
    for (size_t c = 0; c < t->n_columns; c++)
        r.widths[c] = text_width(t->columns[c].title);
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t *w = &r.widths[i % t->n_columns];
        size_t width = text_width(t->cells[i].text);
        *w = width > *w ? width : *w;
    }
    render_head(&r);
    for (size_t i = 0; i < t->n_cells; i += t->n_columns) {
        size_t left = t->n_cells - i;
        render_row(&r, t->cells + i, left < t->n_columns ? left : t->n_columns);
    }
}
