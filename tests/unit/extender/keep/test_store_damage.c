/* What is left of the state of an extender that was killed, with its files
 * damaged in every place: what was acknowledged is there, or it is said that
 * something may be missing. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extender/keep/store.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

/* bytes from one that is flipped to the next: a prime */
#ifdef SANITIZED
enum { FLIPS = 1327 };
#else
enum { FLIPS = 331 };
#endif
enum { PODS = 40, PAGE = 4096, LOG_HEADER = 32, FRAME = 24 + PAGE };

/* The files of a database: what ends their names. */
static const char *const ends[] = {"", "-wal", "-mark"};
enum { MAIN, LOG, MARK, FILES };

static char *dir; /* where the store runs that is killed */
static char *bytes[FILES];
static size_t sizes[FILES];

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
}

static void tear_down(void)
{
    for (int i = 0; i < FILES; i++)
        free(bytes[i]);
    tmpdir_remove(dir);
}

TestSuite(store_damage, .init = set_up, .fini = tear_down);

/* --- a store that is killed ------------------------------------------------- */

static struct store *must_open(const char *where)
{
    struct store *s = NULL;
    struct error err = {0};
    cr_assert_eq(store_open(STORE_SQLITE, where, &s, &err), 0, "%s", err.text);
    return s;
}

/* One commit. */
static void bind(struct store *s, unsigned i)
{
    char name[16];
    struct error err = {0};
    (void)snprintf(name, sizeof name, "pod-%u", i);
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    cleanup_with(allocation) struct allocation *a = allocation_create(&d, "n1");
    cr_assert_eq(store_begin(s, &err), 0);
    a->number = store_take_version(s);
    cr_assert_eq(store_put_allocation(s, a, &err), 0);
    cr_assert_eq(store_commit(s, &err), 0, "%s", err.text);
}

/* Commits that take no number: what a node is told, and which is silent. */
static void tell(struct store *s, bool silent)
{
    struct error err = {0};
    cr_assert_eq(store_begin(s, &err), 0);
    if (silent)
        cr_assert_eq(store_set_silent(s, "n1", true, &err), 0);
    else
        cr_assert_eq(store_put_fed(s, "n1", PODS, &err), 0);
    cr_assert_eq(store_commit(s, &err), 0, "%s", err.text);
}

static char *path_of(const char *where, int file)
{
    return xasprintf("%s/biga.db%s", where, ends[file]);
}

/* What kill -9 leaves is what others can read at that moment. */
static void take_files(void)
{
    for (int i = 0; i < FILES; i++) {
        cleanup_free char *path = path_of(dir, i);
        free(bytes[i]);
        bytes[i] = testdata_read(path, &sizes[i]);
    }
}

/* The same of one that was closed. */
static void take_main_and_mark(void)
{
    for (int i = 0; i < FILES; i++) {
        cleanup_free char *path = path_of(dir, i);
        if (i != LOG)
            bytes[i] = testdata_read(path, &sizes[i]);
        else
            sizes[i] = SIZE_MAX;
    }
}

/* Binds, of which half are in the database and half in its log. */
static void run_and_kill(void)
{
    struct store *s = must_open(dir);
    for (unsigned i = 0; i < PODS / 2; i++)
        bind(s, i);
    store_close(s);
    s = must_open(dir);
    for (unsigned i = PODS / 2; i < PODS; i++)
        bind(s, i);
    take_files();
    store_close(s);
}

/* --- and found again ---------------------------------------------------------- */

static void write_file(const char *where, int file, const char *data,
                       size_t size)
{
    cleanup_free char *path = path_of(where, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    (void)close(fd);
}

struct found {
    bool pods[PODS];
    unsigned n;
    bool in_doubt;
};

static int see(void *ctx, struct allocation *a)
{
    struct found *f = ctx;
    unsigned i = (unsigned)strtoul(a->demand.name + strlen("pod-"), NULL, 10);
    cr_assert_lt(i, PODS);
    cr_expect_str_eq(a->node, "n1");
    f->n += !f->pods[i];
    f->pods[i] = true;
    return 0;
}

/* Start with the files as they are in `bytes`, but for those with a size of
 * SIZE_MAX, which are missing. */
static struct found start_again(void)
{
    struct found f = {0};
    struct error err = {0};
    cleanup_free char *where = tmpdir_create();
    for (int i = 0; i < FILES; i++)
        if (sizes[i] != SIZE_MAX)
            write_file(where, i, bytes[i], sizes[i]);
    struct store *s = must_open(where);
    cr_assert_eq(store_each_allocation(s, see, &f, &err), 0);
    f.in_doubt = store_in_doubt(s);
    cr_expect(store_resource_version(s) >= PODS, "versions never go back");
    store_close(s);
    s = must_open(where); /* it is so at the next start, too */
    cr_expect_eq(store_in_doubt(s), f.in_doubt);
    store_close(s);
    tmpdir_remove(steal(&where));
    return f;
}

/* Nothing is lost in silence. */
static void expect_said(const struct found *f, const char *what, size_t at)
{
    cr_expect(f->n == PODS || f->in_doubt, "%s at %zu: %u of %d are there",
              what, at, f->n, PODS);
}

Test(store_damage, is_not_seen_where_there_is_none)
{
    run_and_kill();
    struct found f = start_again();
    cr_expect_eq(f.n, PODS);
    cr_expect_not(f.in_doubt);
}

Test(store_damage, of_one_byte_of_the_log_is_said)
{
    run_and_kill();
    size_t n = 0, n_whole = 0;
    for (size_t at = 0; at < sizes[LOG]; at += FLIPS, n++) {
        bytes[LOG][at] = (char)(bytes[LOG][at] ^ 0x11);
        struct found f = start_again();
        bytes[LOG][at] = (char)(bytes[LOG][at] ^ 0x11);
        expect_said(&f, "flip", at);
        cr_expect_geq(f.n, PODS - 1, "flip at %zu: %u", at, f.n);
        n_whole += f.n == PODS;
    }
    cr_expect_gt(n_whole, n * 9 / 10, "%zu of %zu", n_whole, n);
}

Test(store_damage, of_a_commit_without_a_number_is_said)
{
    for (int silent = 0; silent < 2; silent++) {
        struct store *s = must_open(dir);
        for (unsigned i = 0; i < PODS; i++)
            bind(s, i);
        take_files();
        size_t before = sizes[LOG];
        tell(s, silent);
        take_files();
        store_close(s);
        cr_assert_gt(sizes[LOG], before);
        size_t whole = sizes[LOG];
        sizes[LOG] = before;
        cr_expect(start_again().in_doubt, "cut, silent %d", silent);
        sizes[LOG] = whole;
        bytes[LOG][before + FRAME / 2] ^= 0x11;
        cr_expect(start_again().in_doubt, "flip, silent %d", silent);
    }
}

/* At the end of a frame, and in the middle of one. */
Test(store_damage, of_a_log_that_was_cut_is_said)
{
    unsigned least = 0;
    run_and_kill();
    size_t whole = sizes[LOG];
    for (size_t cut = 0; cut < whole; cut += FRAME / 2) {
        sizes[LOG] = cut ? (size_t)LOG_HEADER + cut : 0;
        struct found f = start_again();
        expect_said(&f, "cut", cut);
        cr_expect_geq(f.n, least);
        cr_expect_geq(f.n, PODS / 2);
        least = f.n;
    }
    cr_expect_gt(least, PODS - 3);
    sizes[LOG] = SIZE_MAX;
    struct found f = start_again();
    expect_said(&f, "no log", 0);
    cr_expect_eq(f.n, PODS / 2);
}

Test(store_damage, of_zeroed_pages_is_said)
{
    run_and_kill();
    for (int file = MAIN; file <= LOG; file++) {
        for (size_t at = 0; at + PAGE <= sizes[file]; at += PAGE) {
            char kept[PAGE];
            memcpy(kept, bytes[file] + at, PAGE);
            memset(bytes[file] + at, 0, PAGE);
            struct found f = start_again();
            memcpy(bytes[file] + at, kept, PAGE);
            expect_said(&f, ends[file], at);
            cr_expect_geq(f.n, PODS / 2, "%s at %zu: %u", ends[file], at, f.n);
        }
    }
}

/* A version above ours may be that of a newer program, and is refused. */
Test(store_damage, of_a_header_is_said)
{
    run_and_kill();
    sizes[LOG] = SIZE_MAX; /* it has the first page again */
    for (size_t at = 0; at < 100; at++) {
        struct store *s = NULL;
        struct error err = {0};
        char kept = bytes[MAIN][at];
        bytes[MAIN][at] = (char)(at == 63 ? 1 : kept ^ 0x40);
        cleanup_free char *where = tmpdir_create();
        write_file(where, MAIN, bytes[MAIN], sizes[MAIN]);
        write_file(where, MARK, bytes[MARK], sizes[MARK]);
        int e = store_open(STORE_SQLITE, where, &s, &err);
        if (e == 0)
            cr_expect(store_in_doubt(s), "byte %zu", at);
        else
            cr_expect(e == -ENOTSUP && at >= 60 && at < 63, "byte %zu: %s", at,
                      err.text);
        store_close(s);
        bytes[MAIN][at] = kept;
        tmpdir_remove(steal(&where));
    }
}

static int see_drain(void *ctx, const char *node, const struct card_bar *drain)
{
    cr_expect_str_eq(node, "n1");
    cr_expect_str_eq(drain->card, "card-0");
    cr_expect_str_eq(drain->why, "drained by ann since S: new fw");
    cr_expect(drain->evict);
    ++*(unsigned *)ctx;
    return 0;
}

/* They are an operator's word, which nobody says again. */
Test(store_damage, leaves_drains)
{
    const struct card_bar drain = {.drains = true,
                                   .card = "card-0",
                                   .evict = true,
                                   .since = "S",
                                   .by = "ann",
                                   .reason = "new fw"};
    struct store *s = must_open(dir);
    struct error err = {0};
    unsigned n = 0;
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(store_put_drain(s, "n1", &drain, &err), 0);
    cr_assert_eq(store_commit(s, &err), 0, "%s", err.text);
    store_close(s);
    take_main_and_mark();
    bytes[MAIN][0] ^= 0x40;
    cleanup_free char *where = tmpdir_create();
    write_file(where, MAIN, bytes[MAIN], sizes[MAIN]);
    write_file(where, MARK, bytes[MARK], sizes[MARK]);
    s = must_open(where);
    cr_expect(store_in_doubt(s));
    cr_assert_eq(store_each_drain(s, see_drain, &n, &err), 0);
    cr_expect_eq(n, 1);
    store_close(s);
    tmpdir_remove(steal(&where));
}

/* What is left of the file is read, and what is in the log. */
Test(store_damage, of_a_database_that_was_cut_is_said)
{
    run_and_kill();
    size_t whole = sizes[MAIN];
    for (size_t cut = 0; cut < whole; cut += PAGE / 2) {
        sizes[MAIN] = cut;
        struct found f = start_again();
        expect_said(&f, "cut", cut);
        cr_expect_geq(f.n, PODS / 2, "cut at %zu: %u", cut, f.n);
    }
    sizes[MAIN] = SIZE_MAX;
    struct found f = start_again();
    expect_said(&f, "no database", 0);
}

static void skip_file(int file)
{
    sizes[file] = SIZE_MAX;
}

/* A page has some ten of these rows. */
Test(store_damage, leaves_the_rest_of_a_database_without_log)
{
    struct store *s = must_open(dir);
    for (unsigned i = 0; i < PODS; i++)
        bind(s, i);
    store_close(s);
    take_main_and_mark();
    struct found all = start_again();
    cr_expect_eq(all.n, PODS);
    cr_expect_not(all.in_doubt);
    for (unsigned n_lost = 0; n_lost < 2; n_lost++) {
        sizes[MAIN] -= PAGE / 2;
        struct found f = start_again();
        cr_expect(f.in_doubt);
        cr_expect_geq(f.n, PODS - 12, "%u", f.n);
    }
}

/* An older copy of the database under the mark of now. */
Test(store_damage, is_seen_in_an_older_copy)
{
    run_and_kill();
    skip_file(LOG);
    struct found f = start_again();
    cr_expect(f.in_doubt);
    cr_expect_eq(f.n, PODS / 2);
}

/* --- no false alarms --------------------------------------------------------- */

static void expect_no_alarm(const char *what)
{
    struct found f = start_again();
    cr_expect_eq(f.n, PODS, "%s: %u", what, f.n);
    cr_expect_not(f.in_doubt, "%s", what);
}

/* What a power cut leaves behind the last commit: half a frame, or an older
 * mark, of which one slot is torn. */
Test(store_damage, is_not_seen_in_what_was_never_acknowledged)
{
    run_and_kill();
    bytes[LOG] = xrealloc(bytes[LOG], sizes[LOG] + FRAME, 1);
    memcpy(bytes[LOG] + sizes[LOG], bytes[LOG] + LOG_HEADER, FRAME);
    sizes[LOG] += FRAME;
    expect_no_alarm("a frame of before");
    sizes[LOG] -= FRAME / 2;
    expect_no_alarm("half a frame");
    for (size_t slot = 0; slot < sizes[MARK]; slot += PAGE) {
        bytes[MARK][slot + 8] ^= 1;
        expect_no_alarm("a torn mark");
        bytes[MARK][slot + 8] ^= 1;
    }
}

/* From before there were marks; it has one from now on. */
Test(store_damage, is_not_seen_without_a_mark)
{
    run_and_kill();
    skip_file(MARK);
    expect_no_alarm("no mark");
}

/* A program of before goes on with it, and leaves the mark behind. */
Test(store_damage, is_not_seen_after_an_older_program)
{
    struct store *s = must_open(dir);
    for (unsigned i = 0; i < PODS / 2; i++)
        bind(s, i);
    store_close(s);
    take_main_and_mark();
    size_t size = sizes[MARK];
    cleanup_free char *mark = xmemdup(bytes[MARK], size);
    s = must_open(dir);
    for (unsigned i = PODS / 2; i < PODS; i++)
        bind(s, i);
    take_files();
    store_close(s);
    memcpy(bytes[MARK], mark, size);
    expect_no_alarm("an older mark");
}

/* --- taking over, cut short ---------------------------------------------------- */

static void rename_in(const char *where, const char *from, const char *to)
{
    cleanup_free char *a = xasprintf("%s/%s", where, from);
    cleanup_free char *b = xasprintf("%s/%s", where, to);
    cr_assert_eq(rename(a, b), 0);
}

/* The new one is whole, and not in its place yet: it is taken, and not saved
 * from once more. */
Test(store_damage, is_mended_once_when_that_is_cut_short)
{
    for (int moved = 0; moved < 2; moved++) {
        cleanup_free char *where = tmpdir_create();
        struct store *s = must_open(where);
        for (unsigned i = 0; i < PODS; i++)
            bind(s, i);
        store_close(s);
        rename_in(where, "biga.db", "biga.db.salvaged");
        write_file(where, MAIN, "damaged", 7);
        if (moved)
            rename_in(where, "biga.db", "biga.db.damaged-1");
        cleanup_free char *half = xasprintf("%s/biga.db.salvaging", where);
        FILE *f = fopen(half, "w");
        cr_assert(f);
        (void)fclose(f);
        s = must_open(where);
        struct found found = {0};
        cr_assert_eq(store_each_allocation(s, see, &found, NULL), 0);
        cr_expect_eq(found.n, PODS);
        cr_expect_not(store_in_doubt(s));
        cr_expect_neq(access(half, F_OK), 0);
        store_close(s);
        tmpdir_remove(steal(&where));
    }
}

/* --- the end of doubt ---------------------------------------------------------- */

static int see_node(void *ctx, const char *node, uint64_t number)
{
    (void)number;
    str_addf(ctx, "%s ", node);
    return 0;
}

static char *trusted(struct store *s)
{
    struct str out = STR_INIT(1024);
    cr_assert_eq(store_each_trusted(s, see_node, &out, NULL), 0);
    return str_steal(&out);
}

static void trust(struct store *s, const char *node, bool commits)
{
    struct error err = {0};
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(store_trust(s, node, &err), 0);
    if (commits)
        cr_assert_eq(store_commit(s, &err), 0, "%s", err.text);
    else
        store_rollback(s);
}

Test(store_damage, is_over_by_and_by)
{
    struct store *s = must_open(dir);
    bind(s, 0);
    store_close(s);
    write_file(dir, MAIN, "damaged", 7);
    s = must_open(dir);
    cr_expect(store_in_doubt(s));
    trust(s, "n2", true);
    trust(s, "n1", true);
    store_close(s);
    s = must_open(dir);
    cleanup_free char *two = trusted(s);
    cr_expect_str_eq(two, "n1 n2 ");
    trust(s, NULL, false);
    cr_expect(store_in_doubt(s), "it was not committed");
    trust(s, NULL, true);
    cr_expect_not(store_in_doubt(s));
    store_close(s);
    s = must_open(dir);
    cr_expect_not(store_in_doubt(s));
    cleanup_free char *none = trusted(s);
    cr_expect_null(none && *none ? none : NULL);
    store_close(s);
}
