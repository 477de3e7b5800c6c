#include "lib/db/dbpages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

enum { LOG_HEADER = 32, FRAME_HEADER = 24, PAGE = 1024, ROWS = 40 };

static char *dir;
static sqlite3 *db;

/* Both files, as a killed process leaves them. */
static char *bytes[2];
static size_t sizes[2];

static void run(const char *sql)
{
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s: %s",
                 sql, sqlite3_errmsg(db));
}

static void set_up(void)
{
    dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/x.db", dir);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run("PRAGMA page_size = 1024; PRAGMA journal_mode = WAL;"
        "PRAGMA wal_autocheckpoint = 0;"
        "CREATE TABLE t (name TEXT PRIMARY KEY, n INTEGER, x TEXT)");
}

static void tear_down(void)
{
    (void)sqlite3_close(db);
    free(bytes[0]);
    free(bytes[1]);
    tmpdir_remove(dir);
}

TestSuite(dbpages, .init = set_up, .fini = tear_down);

static int64_t number_of(int row)
{
    return row * 1000 - 4500;
}

/* One transaction each. */
static void put(int from, int to)
{
    for (int i = from; i < to; i++) {
        char sql[160];
        (void)snprintf(sql, sizeof sql,
                       "INSERT OR REPLACE INTO t VALUES ('row-%03d', %d, "
                       "hex(zeroblob(%d)))",
                       i, (int)number_of(i), i == 7 ? 5000 : 30);
        run(sql);
    }
}

static void take_files(void)
{
    for (int i = 0; i < 2; i++) {
        cleanup_free char *path = xasprintf("%s/x.db%s", dir, i ? "-wal" : "");
        free(bytes[i]);
        bytes[i] = testdata_read(path, &sizes[i]);
    }
}

/* --- what is found -------------------------------------------------------- */

struct pending_demands {
    int64_t numbers[1000]; /* by row; 0 none */
    size_t n_rows;
};

static bool read_bytes(void *ctx, enum dbpages_file file, uint64_t at,
                       void *buf, size_t size)
{
    (void)ctx;
    if (at > sizes[file] || size > sizes[file] - at)
        return false;
    memcpy(buf, bytes[file] + at, size);
    return true;
}

/* Is it as it was written?  Rows of ours carry a sum that tells. */
static bool is_whole(const struct dbpages_value *v, int row)
{
    if (v[1].type != DBPAGES_INT || v[2].type != DBPAGES_TEXT ||
        (v[1].number != number_of(row) && v[1].number != 1) ||
        v[2].size != (row == 7 ? 10000 : 60))
        return false;
    for (size_t i = 0; i < v[2].size; i++)
        if (v[2].data[i] != '0')
            return false;
    return true;
}

static int see(void *ctx, const struct dbpages_row *row)
{
    struct pending_demands *s = ctx;
    const struct dbpages_value *v = row->values;
    if (row->n != 3 || v[0].type != DBPAGES_TEXT || v[0].size != 7 ||
        memcmp(v[0].data, "row-", 4) != 0)
        return 0;
    cleanup_free char *name = xstrndup(v[0].data + 4, 3);
    long i = strtol(name, NULL, 10);
    if (i < 0 || i >= (long)ARRAY_LEN(s->numbers) || !is_whole(v, (int)i))
        return 0;
    s->numbers[i] = v[1].number;
    s->n_rows++;
    return 0;
}

static struct dbpages_found read_rows(struct pending_demands *ret_seen)
{
    struct dbpages_found found;
    const struct dbpages_source source = {.read = read_bytes,
                                          .size = {sizes[0], sizes[1]}};
    memset(ret_seen, 0, sizeof *ret_seen);
    cr_assert_eq(dbpages_each(&source, see, ret_seen, &found), 0);
    return found;
}

static void expect_rows(const struct pending_demands *s, int from, int to)
{
    for (int i = from; i < to; i++)
        cr_expect_eq(s->numbers[i], number_of(i), "row %d: %lld", i,
                     (long long)s->numbers[i]);
}

/* --- sound files ------------------------------------------------------------ */

Test(dbpages, reads_database_and_log)
{
    struct pending_demands s;
    put(0, ROWS / 2);
    run("UPDATE t SET n = 1 WHERE name = 'row-005'");
    run("PRAGMA wal_checkpoint");
    put(ROWS / 2, ROWS);
    take_files();
    struct dbpages_found found = read_rows(&s);
    expect_rows(&s, 0, 5);
    cr_expect_eq(s.numbers[5], 1);
    expect_rows(&s, 6, ROWS);
    cr_expect_eq(s.n_rows, ROWS, "each once: %zu", s.n_rows);
    cr_expect_eq(found.broken, 0);
    cr_expect_gt(found.frames, ROWS / 2);
    cr_expect_gt(found.pages, 10);
}

/* Neither in pages that are free, nor in those that are not full any more. */
Test(dbpages, passes_over_what_was_deleted)
{
    struct pending_demands s;
    put(0, 400);
    run("PRAGMA wal_checkpoint");
    run("DELETE FROM t WHERE name >= 'row-010'");
    take_files();
    (void)read_rows(&s);
    cr_expect_eq(s.n_rows, 10, "%zu", s.n_rows);
    run("PRAGMA wal_checkpoint");
    take_files();
    sizes[DBPAGES_LOG] = 0;
    (void)read_rows(&s);
    cr_expect_eq(s.n_rows, 10, "%zu", s.n_rows);
}

/* What is left of an earlier round, after the end of the newest. */
Test(dbpages, passes_over_earlier_rounds)
{
    struct pending_demands s;
    put(0, ROWS);
    run("PRAGMA wal_checkpoint; DELETE FROM t WHERE name > 'row-003'");
    take_files();
    struct dbpages_found found = read_rows(&s);
    cr_expect_lt(found.frames * (FRAME_HEADER + PAGE), sizes[DBPAGES_LOG] / 2);
    cr_expect_eq(s.n_rows, 4, "%zu", s.n_rows);
    cr_expect_eq(found.broken, 0);
}

/* What was not committed did not happen, but what it would have deleted is
 * there, and so is, to be careful, what it would have made. */
Test(dbpages, keeps_what_was_not_committed_from_deleting)
{
    struct pending_demands s;
    put(0, ROWS);
    run("PRAGMA cache_size = 1; BEGIN; DELETE FROM t WHERE name > 'row-020'");
    take_files();
    cr_expect_gt(read_rows(&s).broken, 0);
    expect_rows(&s, 0, ROWS);
    run("ROLLBACK");
}

/* --- damage ----------------------------------------------------------------- */

static size_t n_found(const struct pending_demands *s)
{
    size_t n = 0;
    for (int i = 0; i < ROWS; i++)
        n += s->numbers[i] != 0;
    return n;
}

static void flip(enum dbpages_file file, size_t at)
{
    bytes[file][at] = (char)(bytes[file][at] ^ 0x24);
}

/* A byte of the log anywhere: the frames after it are read all the same, and
 * no more is missing than what was hit. */
Test(dbpages, loses_no_more_than_was_hit)
{
    struct pending_demands s;
    put(0, ROWS);
    take_files();
    size_t n_all = 0, n = 0;
    for (size_t at = 0; at < sizes[DBPAGES_LOG]; at += 37, n++) {
        flip(DBPAGES_LOG, at);
        uint64_t broken = read_rows(&s).broken;
        flip(DBPAGES_LOG, at);
        /* its frame, and those that were committed with it at the end */
        cr_expect_leq(broken, 2, "at %zu: %d", at, (int)broken);
        cr_expect_geq(n_found(&s), ROWS - 1, "at %zu: %zu", at, n_found(&s));
        n_all += n_found(&s) == ROWS;
    }
    cr_expect_gt(n_all, n * 9 / 10, "%zu of %zu", n_all, n);
}

/* Wherever the log ends: what was committed before is there. */
Test(dbpages, reads_up_to_where_the_log_was_cut)
{
    struct pending_demands s;
    size_t ends[ROWS];
    for (int i = 0; i < ROWS; i++) {
        put(i, i + 1);
        take_files();
        ends[i] = sizes[DBPAGES_LOG];
    }
    for (size_t cut = 0; cut < ends[ROWS - 1]; cut += 97) {
        int n = 0;
        while (n < ROWS && ends[n] <= cut)
            n++;
        sizes[DBPAGES_LOG] = cut;
        (void)read_rows(&s);
        expect_rows(&s, 0, n);
    }
}

/* A page of zeros, in either file. */
Test(dbpages, reads_around_zeros)
{
    put(0, ROWS / 2);
    run("PRAGMA wal_checkpoint");
    put(ROWS / 2, ROWS);
    take_files();
    for (enum dbpages_file f = DBPAGES_MAIN; f <= DBPAGES_LOG; f++) {
        for (size_t at = 0; at + PAGE <= sizes[f]; at += PAGE) {
            struct pending_demands s;
            char kept[PAGE];
            memcpy(kept, bytes[f] + at, PAGE);
            memset(bytes[f] + at, 0, PAGE);
            (void)read_rows(&s);
            memcpy(bytes[f] + at, kept, PAGE);
            /* two frames, of a page with up to nine rows each */
            cr_expect_geq(n_found(&s), ROWS - 18, "%d at %zu: %zu", (int)f, at,
                          n_found(&s));
        }
    }
}

/* The database's file cut anywhere: whole pages before it are read. */
Test(dbpages, reads_a_database_that_was_cut)
{
    struct pending_demands s;
    size_t least = 0;
    put(0, ROWS);
    run("PRAGMA wal_checkpoint");
    take_files();
    sizes[DBPAGES_LOG] = 0;
    size_t whole = sizes[DBPAGES_MAIN];
    for (size_t cut = 0; cut <= whole; cut += 300) {
        sizes[DBPAGES_MAIN] = cut;
        (void)read_rows(&s);
        cr_expect_geq(n_found(&s), least);
        least = n_found(&s);
    }
    sizes[DBPAGES_MAIN] = whole;
    (void)read_rows(&s);
    expect_rows(&s, 0, ROWS);
}

/* Bytes that the disk does not give. */
static bool read_half(void *ctx, enum dbpages_file file, uint64_t at, void *buf,
                      size_t size)
{
    return at / PAGE % 2 == 0 && read_bytes(ctx, file, at, buf, size);
}

Test(dbpages, goes_on_after_what_cannot_be_read)
{
    struct pending_demands s = {0};
    struct dbpages_found found;
    put(0, ROWS);
    run("PRAGMA wal_checkpoint");
    take_files();
    const struct dbpages_source source = {.read = read_half,
                                          .size = {sizes[0], sizes[1]}};
    cr_assert_eq(dbpages_each(&source, see, &s, &found), 0);
    cr_expect_gt(n_found(&s), 0);
    cr_expect_gt(found.broken, 0);
}

static int stop(void *ctx, const struct dbpages_row *row)
{
    (void)row;
    return ++*(int *)ctx == 3 ? -EIO : 0;
}

Test(dbpages, ends_when_its_visitor_says_so)
{
    int n = 0;
    struct dbpages_found found;
    put(0, ROWS);
    take_files();
    const struct dbpages_source source = {.read = read_bytes,
                                          .size = {sizes[0], sizes[1]}};
    cr_expect_eq(dbpages_each(&source, stop, &n, &found), -EIO);
    cr_expect_eq(n, 3);
}
