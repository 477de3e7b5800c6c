/* What the files of the reader share. */
#ifndef BIGA_EXTENDER_HISTORY_HISTORY_READ_PRIVATE_H
#define BIGA_EXTENDER_HISTORY_HISTORY_READ_PRIVATE_H

#include "extender/history/history_db.h"
#include "extender/history/history_read.h"
#include "lib/base/idmap.h"

struct history_reader {
    struct history_db db;
    struct idmap texts; /* by number; never another one's */
    size_t texts_size;  /* bytes of them */
    bool damaged;
    const struct scope *scope; /* what is seen; NULL: all */
};

/* Visit the rows of a statement, as sqldb_each() does. */
int reader_each(struct history_reader *r, sqlite3_stmt *q, sqldb_row_f *visit,
                void *ctx, struct error *err);
/* The text of a number; "" of 0. */
int reader_text(struct history_reader *r, int64_t number, const char **ret_text,
                struct error *err);

#endif
