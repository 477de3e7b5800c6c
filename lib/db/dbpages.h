/* dbpages - the rows that are physically there in the files of a damaged
 * SQLite database, when SQLite itself would not, or not fully, read it.
 *
 * Read are the leaf pages of tables with their overflow pages: those of the
 * database, and the page images in the frames of its log.  Frames are judged
 * one by one, so a broken one ends nothing.  What is read is foreign: whoever
 * visits a row checks that it is whole (sqldb.h), and by its columns of which
 * table it is. */
#ifndef BIGA_LIB_DB_DBPAGES_H
#define BIGA_LIB_DB_DBPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dbpages_file { DBPAGES_MAIN, DBPAGES_LOG };

enum {
    DBPAGES_COLUMNS_MAX = 16,   /* rows of more are passed over */
    DBPAGES_ROW_MAX = 64 << 20, /* bytes; of more the same */
};

/* Where the bytes are. */
struct dbpages_source {
    /* Fill `buf`; false when these bytes cannot be read. */
    bool (*read)(void *ctx, enum dbpages_file file, uint64_t at, void *buf,
                 size_t size);
    void *ctx;
    uint64_t size[2]; /* of each file; 0: it is not there */
};

struct dbpages_value {
    enum { DBPAGES_NULL, DBPAGES_INT, DBPAGES_TEXT, DBPAGES_BLOB } type;
    int64_t number;
    const char *data; /* a text is not terminated */
    size_t size;
};

struct dbpages_row {
    const struct dbpages_value *values;
    size_t n;
};

/* What there was. */
struct dbpages_found {
    uint64_t pages;  /* of the database's file */
    uint64_t frames; /* of the log, of its newest round */
    uint64_t broken; /* of these: with a wrong checksum, or without a commit
                      * after them */
    uint64_t rows;   /* that were visited */
};

/* Visit the rows, those of newer images after those of older ones: of rows
 * with one key the last is the newest.  Every page is read in its newest
 * sound image.  From broken images, too, rows are visited, because they may be
 * in no other one: some of these may have been deleted since.  Free pages are
 * passed over.  `visit` returns nonzero to end the walk, which is returned. */
typedef int dbpages_row_f(void *ctx, const struct dbpages_row *row);
int dbpages_each(const struct dbpages_source *source, dbpages_row_f *visit,
                 void *ctx, struct dbpages_found *ret_found);

#endif
