/* table - rows of cells as text with aligned columns, or as HTML.  Pure.
 *
 * Cells may hold anything: control characters never reach a terminal, and
 * markup never reaches a page. */
#ifndef BIGA_LIB_BASE_TABLE_H
#define BIGA_LIB_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
    size_t n_columns;
    const char *heads[TABLE_COLUMNS_MAX]; /* constant texts */
    size_t widths[TABLE_COLUMNS_MAX];     /* in characters */
    struct str cells;                     /* each NUL-terminated */
    size_t n_cells;
};

/* `heads` ends with NULL. */
void table_init(struct table *t, const char *const *heads);
void table_fini(struct table *t);

/* The next cell, row by row. */
void table_add(struct table *t, const char *text);
void table_addf(struct table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A number that may be unknown (negative): then "-". */
void table_add_known(struct table *t, long long number);

/* Order the rows by their first cells, as people read names (text_order());
 * rows with the same one stay as they are. */
void table_sort(struct table *t);

void table_write_text(const struct table *t, struct str *out);
void table_write_html(const struct table *t, struct str *out);

#endif
