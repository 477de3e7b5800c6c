/* table - rows of cells as text with aligned columns, for a terminal or a
 * page, or as HTML.  Pure.
 *
 * Cells may hold anything: control characters never reach a terminal, and
 * markup never reaches a page. */
#ifndef BIGA_LIB_BASE_TABLE_H
#define BIGA_LIB_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "lib/base/text.h"

/* A cell made by table_addf() is cut after TABLE_CELL_MAX bytes. */
enum { TABLE_COLUMNS_MAX = 24, TABLE_CELL_MAX = 512 };

enum table_style { STYLE_PLAIN, STYLE_GOOD, STYLE_FAIR, STYLE_BAD, STYLE_DIM };

struct table_column {
    const char *title; /* a constant text */
    bool right;        /* align to the right */
};

struct table {
    size_t n_columns;
    struct table_column columns[TABLE_COLUMNS_MAX];
    size_t widths[TABLE_COLUMNS_MAX]; /* in characters */
    bool hidden[TABLE_COLUMNS_MAX];   /* not written */
    struct str cells; /* each its style, as a byte, and its text with a NUL */
    size_t n_cells;
};

/* All columns to the left; `heads` ends with NULL. */
void table_init(struct table *t, const char *const *heads);
void table_init_columns(struct table *t, const struct table_column *columns,
                        size_t n_columns);
void table_fini(struct table *t);
#define cleanup_table __attribute__((__cleanup__(table_fini)))

/* The next cell, row by row; a NULL or empty text shows as "-". */
void table_add(struct table *t, const char *text);
void table_add_style(struct table *t, enum table_style style, const char *text);
void table_addf(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A number that may be unknown (negative): then "-". */
void table_add_known(struct table *t, long long number);

/* Its columns are at least as wide as those of `like`, which has as many. */
void table_widen(struct table *t, const struct table *like);

/* The texts of all cells, row by row, as they are written: n_cells of them in
 * the caller's array (free it), until the table changes. */
const char **table_texts(const struct table *t);

/* Order the rows by their first cells, as people read names (text_order());
 * rows with the same one stay as they are. */
void table_sort(struct table *t);

/* Append the head and all rows, each ending in a line feed and none in a
 * space.  A row that was begun is filled up with "-".  `coloured`: styles are
 * shown, with the terminal's escape sequences. */
void table_write(const struct table *t, bool coloured, struct str *out);
/* The rows alone. */
void table_write_rows(const struct table *t, bool coloured, struct str *out);
void table_write_text(const struct table *t, struct str *out); /* no colours */
void table_write_html(const struct table *t, struct str *out);

/* Append `text`, cleaned, in a style; plain when `coloured` is false. */
void text_render(const char *text, enum table_style style, bool coloured,
                 struct str *out);

#endif
