#include "lib/base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { GAP = 2 };

static void add_column(struct table *t, const char *title, bool right)
{
    assert(t->n_columns < TABLE_COLUMNS_MAX);
    t->columns[t->n_columns] = (struct table_column){title, right};
    t->widths[t->n_columns++] = text_width(title);
}

void table_init(struct table *t, const char *const *heads)
{
    *t = (struct table){.cells = STR_INIT(STR_MAX_DEFAULT)};
    for (size_t i = 0; heads[i]; i++)
        add_column(t, heads[i], false);
}

void table_init_columns(struct table *t, const struct table_column *columns,
                        size_t n_columns)
{
    *t = (struct table){.cells = STR_INIT(STR_MAX_DEFAULT)};
    for (size_t i = 0; i < n_columns; i++)
        add_column(t, columns[i].title, columns[i].right);
}

void table_fini(struct table *t)
{
    str_fini(&t->cells);
}

void text_render(const char *text, enum table_style style, bool coloured,
                 struct str *out)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "",        [STYLE_GOOD] = "\033[32m",
        [STYLE_FAIR] = "\033[33m", [STYLE_BAD] = "\033[31m",
        [STYLE_DIM] = "\033[2m",
    };
    bool escapes = coloured && style != STYLE_PLAIN;
    if (escapes)
        str_add(out, codes[style]);
    text_clean(text, out);
    if (escapes)
        str_add(out, "\033[0m");
}

void table_add_style(struct table *t, enum table_style style, const char *text)
{
    const char *shown = text && *text ? text : "-";
    size_t column = t->n_cells++ % t->n_columns, width = text_width(shown);
    str_add_c(&t->cells, (char)style);
    text_clean(shown, &t->cells);
    str_add_n(&t->cells, "", 1);
    if (width > t->widths[column])
        t->widths[column] = width;
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

void table_add_known(struct table *t, long long number)
{
    if (number < 0)
        table_add(t, "-");
    else
        table_addf(t, "%lld", number);
}

/* --- order ---------------------------------------------------------------- */

/* The cell behind `cell`; both are a style and a text. */
static const char *cell_next(const char *cell)
{
    return cell + 1 + strlen(cell + 1) + 1;
}

void table_widen(struct table *t, const struct table *like)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (like->widths[i] > t->widths[i])
            t->widths[i] = like->widths[i];
}

const char **table_texts(const struct table *t)
{
    const char **texts = xcalloc(t->n_cells + 1, sizeof *texts);
    const char *cell = str_text(&t->cells);
    for (size_t i = 0; i < t->n_cells; i++) {
        texts[i] = t->cells.overflow ? "" : cell + 1;
        cell = t->cells.overflow ? cell : cell_next(cell);
    }
    return texts;
}

struct row {
    const char *cells; /* the first, with the others behind it */
    size_t size, number;
};

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = text_order(x->cells + 1, y->cells + 1);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

void table_sort(struct table *t)
{
    size_t n = t->n_cells / t->n_columns;
    cleanup_free struct row *rows = xcalloc(n + 1, sizeof *rows);
    struct str sorted = STR_INIT(STR_MAX_DEFAULT);
    const char *at = str_text(&t->cells);
    if (n == 0 || t->cells.overflow) /* the latter is the answer's to tell */
        return;
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct row){.cells = at, .number = i};
        for (size_t c = 0; c < t->n_columns; c++)
            at = cell_next(at);
        rows[i].size = (size_t)(at - rows[i].cells);
    }
    qsort(rows, n, sizeof *rows, row_order);
    for (size_t i = 0; i < n; i++)
        str_add_n(&sorted, rows[i].cells, rows[i].size);
    /* a row that was begun stays the last */
    str_add_n(&sorted, at, (size_t)(t->cells.data + t->cells.size - at));
    str_fini(&t->cells);
    t->cells = sorted;
}

/* --- output --------------------------------------------------------------- */

static void pad(struct str *out, size_t n)
{
    while (n-- > 0)
        str_add_c(out, ' ');
}

/* A line as it grows: cells from left to right. */
struct line {
    const struct table *table;
    bool coloured;
    struct str *out;
    size_t column;
    size_t owed; /* spaces that only a further cell makes necessary */
};

static void line_add(struct line *l, enum table_style style, const char *text)
{
    size_t width = text_width(text), widest = l->table->widths[l->column];
    size_t room = widest > width ? widest - width : 0;
    bool right = l->table->columns[l->column].right;
    if (!l->table->hidden[l->column]) {
        pad(l->out, l->owed + (right ? room : 0));
        text_render(text, style, l->coloured, l->out);
        l->owed = GAP + (right ? 0 : room);
    }
    if (++l->column < l->table->n_columns)
        return;
    str_add_c(l->out, '\n');
    l->column = l->owed = 0;
}

void table_write(const struct table *t, bool coloured, struct str *out)
{
    struct line l = {.table = t, .coloured = coloured, .out = out};
    for (size_t i = 0; i < t->n_columns; i++)
        line_add(&l, STYLE_DIM, t->columns[i].title);
    table_write_rows(t, coloured, out);
}

void table_write_rows(const struct table *t, bool coloured, struct str *out)
{
    struct line l = {.table = t, .coloured = coloured, .out = out};
    const char *cell = str_text(&t->cells);
    for (size_t i = 0; i < t->n_cells && !t->cells.overflow; i++) {
        line_add(&l, (enum table_style) * cell, cell + 1);
        cell = cell_next(cell);
    }
    while (l.column)
        line_add(&l, STYLE_PLAIN, "-");
}

void table_write_text(const struct table *t, struct str *out)
{
    table_write(t, false, out);
}

void table_write_html(const struct table *t, struct str *out)
{
    const char *cell = str_text(&t->cells);
    str_add(out, "<table><thead><tr>");
    for (size_t i = 0; i < t->n_columns; i++) {
        str_add(out, "<th>");
        text_escape(t->columns[i].title, out);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < t->n_cells && !t->cells.overflow; i++) {
        size_t column = i % t->n_columns;
        str_add(out, column == 0 ? "<tr><td>" : "<td>");
        text_escape(cell + 1, out);
        str_add(out, column + 1 == t->n_columns ? "</td></tr>\n" : "</td>");
        cell = cell_next(cell);
    }
    str_add(out, "</tbody></table>\n");
}
