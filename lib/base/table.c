#include "lib/base/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { CELL_MAX = 512 };

void table_init(struct table *t, const char *const *heads)
{
    *t = (struct table){.cells = STR_INIT(STR_MAX_DEFAULT)};
    for (; heads[t->n_columns]; t->n_columns++) {
        assert(t->n_columns < TABLE_COLUMNS_MAX);
        t->heads[t->n_columns] = heads[t->n_columns];
        t->widths[t->n_columns] = strlen(heads[t->n_columns]);
    }
}

void table_fini(struct table *t)
{
    str_fini(&t->cells);
}

void table_add(struct table *t, const char *text)
{
    size_t column = t->n_cells++ % t->n_columns, width = text_width(text);
    text_clean(text, &t->cells);
    str_add_n(&t->cells, "", 1);
    if (width > t->widths[column])
        t->widths[column] = width;
}

void table_addf(struct table *t, const char *fmt, ...)
{
    char text[CELL_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_add(t, text);
}

struct row {
    const char *cells; /* the first, with the others behind it */
    size_t size, number;
};

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = text_order(x->cells, y->cells);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

void table_sort(struct table *t)
{
    size_t n = t->n_cells / t->n_columns;
    cleanup_free struct row *rows = xcalloc(n + 1, sizeof *rows);
    struct str sorted = STR_INIT(STR_MAX_DEFAULT);
    const char *at = str_text(&t->cells);
    if (t->cells.overflow)
        return; /* which is the answer's to tell */
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct row){.cells = at, .number = i};
        for (size_t c = 0; c < t->n_columns; c++)
            at += strlen(at) + 1;
        rows[i].size = (size_t)(at - rows[i].cells);
    }
    if (n)
        qsort(rows, n, sizeof *rows, row_order);
    for (size_t i = 0; i < n; i++)
        str_add_n(&sorted, rows[i].cells, rows[i].size);
    str_fini(&t->cells);
    t->cells = sorted;
}

void table_add_known(struct table *t, long long number)
{
    if (number < 0)
        table_add(t, "-");
    else
        table_addf(t, "%lld", number);
}

static void write_padded(struct str *out, const char *text, size_t width,
                         bool last)
{
    size_t have = text_width(text);
    str_add(out, text);
    for (; !last && have < width + 2; have++)
        str_add_c(out, ' ');
    if (last)
        str_add_c(out, '\n');
}

void table_write_text(const struct table *t, struct str *out)
{
    const char *cell = str_text(&t->cells);
    for (size_t i = 0; i < t->n_columns; i++)
        write_padded(out, t->heads[i], t->widths[i], i + 1 == t->n_columns);
    for (size_t i = 0; i < t->n_cells && !t->cells.overflow; i++) {
        size_t column = i % t->n_columns;
        write_padded(out, cell, t->widths[column], column + 1 == t->n_columns);
        cell += strlen(cell) + 1;
    }
}

void table_write_html(const struct table *t, struct str *out)
{
    const char *cell = str_text(&t->cells);
    str_add(out, "<table><thead><tr>");
    for (size_t i = 0; i < t->n_columns; i++) {
        str_add(out, "<th>");
        text_escape(t->heads[i], out);
        str_add(out, "</th>");
    }
    str_add(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < t->n_cells && !t->cells.overflow; i++) {
        size_t column = i % t->n_columns;
        str_add(out, column == 0 ? "<tr><td>" : "<td>");
        text_escape(cell, out);
        str_add(out, column + 1 == t->n_columns ? "</td></tr>\n" : "</td>");
        cell += strlen(cell) + 1;
    }
    str_add(out, "</tbody></table>\n");
}
