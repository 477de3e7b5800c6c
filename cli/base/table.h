/* table - rows and columns for a terminal: widths by content, numbers to the
 * right, colours only when asked for.  Pure. */
#ifndef BIGA_CLI_BASE_TABLE_H
#define BIGA_CLI_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "lib/base/text.h"

enum { TABLE_COLUMNS_MAX = 16, TABLE_CELL_MAX = 512 };

enum table_style { STYLE_PLAIN, STYLE_GOOD, STYLE_FAIR, STYLE_BAD, STYLE_DIM };

struct table_column {
    const char *title;
    bool right; /* align to the right */
};

struct table_cell {
    char *text;
    enum table_style style;
};

struct table {
    const struct table_column *columns; /* borrowed */
    size_t n_columns;
    struct table_cell *cells; /* row by row */
    size_t n_cells, cells_cap;
};

void table_init(struct table *t, const struct table_column *columns,
                size_t n_columns);
void table_fini(struct table *t);
static inline void cleanup_table_p(struct table *t)
{
    table_fini(t);
}
#define cleanup_table __attribute__((__cleanup__(cleanup_table_p)))

/* The next cell, from left to right; a NULL or empty text shows as "-".
 * What is hidden (hidden.h) becomes '?'. */
void table_add(struct table *t, const char *text);
void table_add_style(struct table *t, enum table_style style, const char *text);
void table_addf(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Order the rows by their first cells, as people read names (text_order());
 * rows with the same one stay as they are. */
void table_sort(struct table *t);

/* Append the head and all rows, each ending in a line feed and none in a
 * space.  A row that was begun is filled up with "-". */
void table_render(const struct table *t, bool colours, struct str *out);

/* Append `text`, cleaned, in a style; plain when `colours` is false. */
void text_render(const char *text, enum table_style style, bool colours,
                 struct str *out);

#endif
