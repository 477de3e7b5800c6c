#include "extender/keep/store.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extender/keep/writer.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/smalldisk.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static char *dir;

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
}

static void tear_down(void)
{
    tmpdir_remove(dir);
}

TestSuite(store, .init = set_up, .fini = tear_down);

static struct store *must_open(const char *where)
{
    struct store *s = NULL;
    struct error err = {0};
    cr_assert_eq(store_open(STORE_SQLITE, where, &s, &err), 0, "%s", err.text);
    return s;
}

static void put(struct store *s, const char *name, const char *json)
{
    uint64_t version;
    struct error err = {0};
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(
        store_put_slice(s, name, "n", json, strlen(json), &version, &err), 0);
    cr_assert_eq(store_commit(s, &err), 0, "%s", err.text);
}

/* Everything in the store as one text. */
static int see_slice(void *ctx, const char *name, const char *json, size_t size,
                     uint64_t version)
{
    str_addf(ctx, "%s@%llu=%.*s;", name, (unsigned long long)version, (int)size,
             json);
    return 0;
}

static int see_boot(void *ctx, const char *node, const char *boot_id)
{
    str_addf(ctx, "%s<%s;", node, boot_id);
    return 0;
}

static int see_allocation(void *ctx, struct allocation *a)
{
    str_addf(ctx, "%s/%s:%s;", a->demand.namespace, a->demand.name, a->node);
    return 0;
}

static char *content(struct store *s)
{
    struct str out = STR_INIT(1 << 20);
    struct error err = {0};
    cr_assert_eq(store_each_slice(s, NULL, see_slice, &out, &err), 0);
    cr_assert_eq(store_each_retired_boot(s, see_boot, &out, &err), 0);
    cr_assert_eq(store_each_allocation(s, see_allocation, &out, &err), 0);
    return str_steal(&out);
}

static void expect_content(struct store *s, const char *wanted)
{
    cleanup_free char *found = content(s);
    cr_expect_str_eq(found, wanted);
}

/* --- what it keeps ----------------------------------------------------- */

Test(store, keeps_what_was_committed)
{
    struct error err = {0};
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    struct allocation *a = allocation_create(&d, "n1");
    struct store *s = must_open(dir);
    put(s, "b", "{1}");
    put(s, "a", "{2}");
    put(s, "b", "{3}");
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(store_put_allocation(s, a, &err), 0);
    cr_assert_eq(store_retire_boot(s, "n1", "old", &err), 0);
    cr_assert_eq(store_commit(s, &err), 0);
    store_close(s);
    allocation_unref(a);

    s = must_open(dir);
    expect_content(s, "a@2={2};b@3={3};n1<old;ns/p:n1;");
    cr_expect_eq(store_resource_version(s), 4);
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(store_delete_slice(s, "a", &err), 0);
    cr_assert_eq(store_delete_allocation(s, "ns", "p", &err), 0);
    cr_assert_eq(store_commit(s, &err), 0);
    put(s, "c", "{4}");
    expect_content(s, "b@3={3};c@6={4};n1<old;");
    store_close(s);
}

Test(store, forgets_what_was_rolled_back)
{
    uint64_t version;
    struct error err = {0};
    struct store *s = must_open(dir);
    put(s, "a", "{1}");
    cr_assert_eq(store_begin(s, &err), 0);
    cr_assert_eq(store_put_slice(s, "b", "n", "{}", 2, &version, &err), 0);
    store_rollback(s);
    cr_expect_eq(store_resource_version(s), 1);
    put(s, "c", "{2}");
    expect_content(s, "a@1={1};c@2={2};");
    store_close(s);
}

Test(store, gets_one_slice_and_walks_after_a_name)
{
    struct store *s = must_open(NULL);
    cleanup_str struct str out = STR_INIT(1 << 20);
    struct error err = {0};
    put(s, "a", "{1}");
    put(s, "b", "{2}");
    put(s, "c", "{3}");
    cr_expect_eq(store_get_slice(s, "b", see_slice, &out, &err), 0);
    cr_expect_str_eq(out.data, "b@2={2};");
    cr_expect_eq(store_get_slice(s, "x", see_slice, &out, &err), -ENOENT);
    str_reset(&out);
    cr_expect_eq(store_each_slice(s, "a", see_slice, &out, &err), 0);
    cr_expect_str_eq(out.data, "b@2={2};c@3={3};");
    store_close(s);
}

Test(store, keeps_the_newest_16_boots_of_a_node)
{
    struct error err = {0};
    struct store *s = must_open(NULL);
    cr_assert_eq(store_retire_boot(s, "other", "b0", &err), 0);
    for (int i = 0; i < 20; i++) {
        char boot[8];
        (void)snprintf(boot, sizeof boot, "b%d", i);
        cr_assert_eq(store_retire_boot(s, "n", boot, &err), 0);
    }
    cleanup_free char *all = content(s);
    cr_expect(strstr(all, "other<b0;"));
    cr_expect_null(strstr(all, "n<b3;"));
    cr_expect(strstr(all, "n<b4;n<b5;"));
    cr_expect(strstr(all, "n<b19;"));
    store_close(s);
}

/* --- who may ----------------------------------------------------------- */

Test(store, is_for_its_owner_only)
{
    struct stat st;
    cleanup_free char *sub = xasprintf("%s/sub", dir);
    cleanup_free char *file = xasprintf("%s/biga.db", sub);
    struct store *s = must_open(sub);
    put(s, "a", "{}");
    cr_assert_eq(stat(sub, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0700);
    cr_assert_eq(stat(file, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0600);
    cleanup_free char *log = xasprintf("%s-wal", file);
    cr_assert_eq(stat(log, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0600);
    store_close(s);
    tmpdir_remove(steal(&sub));
}

Test(store, refuses_a_second_process)
{
    struct store *s = must_open(dir), *other = NULL;
    struct error err = {0};
    cr_expect_eq(store_open(STORE_SQLITE, dir, &other, &err), -EBUSY);
    cr_expect(strstr(err.text, "another process"), "%s", err.text);
    store_close(s);
    store_close(must_open(dir));
}

Test(store, says_which_directory_cannot_be_made)
{
    struct store *s = NULL;
    struct error err = {0};
    cr_expect_eq(store_open(STORE_SQLITE, "/nowhere/at/all", &s, &err),
                 -ENOENT);
    cr_expect(strstr(err.text, "/nowhere/at/all"), "%s", err.text);
}

static void execute(const char *sql)
{
    cleanup_free char *path = xasprintf("%s/biga.db", dir);
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

Test(store, refuses_a_newer_schema)
{
    struct store *s = must_open(dir);
    struct error err = {0};
    store_close(s);
    s = NULL;
    execute("PRAGMA user_version = 4");
    cr_expect_eq(store_open(STORE_SQLITE, dir, &s, &err), -ENOTSUP);
    cr_expect(strstr(err.text, "schema 4"), "%s", err.text);
    execute("PRAGMA user_version = 3");
    store_close(must_open(dir));
}

/* Of a release that drained nothing; it is marked, and not damaged. */
Test(store, renews_an_older_schema)
{
    struct store *s = must_open(dir);
    struct error err = {0};
    const struct card_bar drain = {.drains = true, .card = "card-0"};
    put(s, "a", "{}");
    cleanup_free char *before = content(s);
    store_close(s);
    execute("DROP TABLE drains; PRAGMA user_version = 2");
    s = must_open(dir);
    cleanup_free char *after = content(s);
    cr_expect_str_eq(after, before);
    cr_expect_not(store_in_doubt(s));
    cr_assert_eq(store_begin(s, &err), 0);
    cr_expect_eq(store_put_drain(s, "n", &drain, &err), 0, "%s", err.text);
    cr_expect_eq(store_commit(s, &err), 0, "%s", err.text);
    store_close(s);
}

Test(store, refuses_a_database_of_others)
{
    struct store *s = NULL;
    struct error err = {0};
    execute("CREATE TABLE theirs (x)");
    cr_expect_eq(store_open(STORE_SQLITE, dir, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "not one of Biga's"), "%s", err.text);
}

/* --- damage ------------------------------------------------------------ */

static char *read_database(size_t *ret_size)
{
    cleanup_free char *path = xasprintf("%s/biga.db", dir);
    return testdata_read(path, ret_size);
}

static void write_database(const char *data, size_t size)
{
    cleanup_free char *path = xasprintf("%s/biga.db", dir);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    cr_assert_eq(fwrite(data, 1, size, f), size);
    cr_assert_eq(fclose(f), 0);
}

static bool is_aside(int number)
{
    cleanup_free char *path = xasprintf("%s/biga.db.damaged-%d", dir, number);
    return access(path, F_OK) == 0;
}

static void fill(struct store *s)
{
    cleanup_free char *json = xcalloc(1, 6001);
    memset(json, 'x', 6000);
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    struct allocation *a = allocation_create(&d, "n1");
    struct error err = {0};
    for (int i = 0; i < 5; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%d", i);
        put(s, name, json);
    }
    cr_assert_eq(store_put_allocation(s, a, &err), 0);
    cr_assert_eq(store_retire_boot(s, "n1", "old", &err), 0);
    allocation_unref(a);
}

/* Flip one byte after the other: what opens serves the truth, or no more
 * than the one allocation after the damaged one was moved aside, or says that
 * it will not. */
Test(store, never_serves_garbage)
{
    enum { STEP = 173 };
    struct store *s = must_open(dir);
    struct error err = {0};
    size_t size = 0;
    unsigned n_same = 0, n_aside = 0, n_saved = 0, n_refused = 0;
    fill(s);
    cleanup_free char *truth = content(s);
    store_close(s);
    cleanup_free char *whole = read_database(&size);
    for (size_t at = 0; at < size; at += STEP) {
        cleanup_free char *copy = xmemdup(whole, size);
        copy[at] = (char)(copy[at] ^ 0x41);
        write_database(copy, size);
        s = NULL;
        if (store_open(STORE_SQLITE, dir, &s, &err) < 0) {
            n_refused++;
            continue;
        }
        cleanup_free char *found = content(s);
        bool saved = strcmp(found, "ns/p:n1;") == 0;
        if (strcmp(found, truth) == 0)
            n_same++;
        else
            n_aside += (saved || !found[0]) && is_aside((int)n_aside + 1);
        n_saved += saved;
        store_close(s);
    }
    unsigned n = (unsigned)((size + STEP - 1) / STEP);
    cr_expect_eq(n_same + n_aside + n_refused, n,
                 "of %u: %u unharmed, %u moved aside, %u refused", n, n_same,
                 n_aside, n_refused);
    cr_expect_gt(n_saved, n_aside * 9 / 10, "%u of %u", n_saved, n_aside);
    cr_expect_gt(n_aside, n / 3, "%u of %u", n_aside, n);
    cr_expect_leq(n_refused, 2, "%u", n_refused);
}

Test(store, starts_anew_when_cut_or_overwritten)
{
    size_t size = 0;
    struct store *s = must_open(dir);
    fill(s);
    store_close(s);
    cleanup_free char *whole = read_database(&size);
    write_database(whole, size / 2);
    s = must_open(dir);
    cleanup_free char *left = content(s);
    cr_expect_null(strstr(left, "xxx"));
    cr_expect(is_aside(1));
    put(s, "a", "{}");
    store_close(s);
    write_database("this is not a database, and never was one", 41);
    s = must_open(dir);
    expect_content(s, "");
    cr_expect(is_aside(2));
    store_close(s);
}

/* Of many allocations, one damaged page loses only its own. */
Test(store, saves_the_allocations_that_can_be_read)
{
    enum { N = 300 };
    struct store *s = must_open(dir);
    struct error err = {0};
    size_t size = 0, n = 0;
    cr_assert_eq(store_begin(s, &err), 0);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "pod-%u", i);
        struct demand d = sim_pod(name, ROLE_HOST, "", 0);
        struct allocation *a = allocation_create(&d, "n1");
        a->number = store_take_version(s);
        cr_assert_eq(store_put_allocation(s, a, &err), 0);
        allocation_unref(a);
    }
    cr_assert_eq(store_commit(s, &err), 0);
    store_close(s);
    cleanup_free char *whole = read_database(&size);
    char *row = memmem(whole, size, "pod-150", 7);
    cr_assert(row);
    size_t page = (size_t)(row - whole) / 4096 * 4096;
    memset(whole + page, 0x55, 4096);
    write_database(whole, size);

    s = must_open(dir);
    cleanup_free char *found = content(s);
    for (const char *p = found; (p = strchr(p, ';')); p++)
        n++;
    cr_expect(n > N / 2 && n < N, "%zu", n);
    cr_expect_gt(store_resource_version(s), N, "numbers go on from there");
    store_close(s);
}

/* --- a full disk ------------------------------------------------------- */

Test(store, survives_a_full_disk_and_heals)
{
    if (!smalldisk_mount(dir))
        cr_skip_test("a small file system cannot be mounted here");
    cleanup_free char *ballast = xasprintf("%s/ballast", dir);
    struct writer *w = sim_writer(dir);
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    struct demand e = sim_pod("q", ROLE_HOST, "", 0);
    struct error err = {0};
    cr_assert_eq(sim_publish(w, "n1", 4, "boot", 1), 0);
    cr_assert_eq(sim_bind(w, &d, "n1", NULL, NULL), 0);
    smalldisk_fill(ballast);
    int result = 0;
    for (int64_t i = 2; i < 300 && result == 0; i++)
        result = sim_publish(w, "n1", 4, "boot", i);
    cr_expect_eq(result, -ENOSPC);
    cr_expect_eq(sim_bind(w, &e, "n1", NULL, &err), -ENOSPC);
    cr_expect(strstr(err.text, "full"), "%s", err.text);

    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    cr_expect_eq(alloc_index_size(s->allocations), 1, "reads go on");
    cr_expect_eq(sim_bind(w, &d, "n1", NULL, NULL), 0, "repeats, too");
    cr_assert_eq(unlink(ballast), 0);
    cr_expect_eq(sim_bind(w, &e, "n1", NULL, &err), 0, "%s", err.text);
    writer_stop(w);

    w = sim_writer(dir);
    cleanup_with(snapshot) struct snapshot *t = writer_snapshot(w);
    cr_expect_eq(alloc_index_size(t->allocations), 2);
    writer_stop(w);
    smalldisk_umount(dir);
}

/* Many commits: the log is moved into the database on the way. */
Test(store, keeps_its_log_short)
{
    struct stat st;
    struct writer *w = sim_writer(dir);
    cleanup_free char *log = xasprintf("%s/biga.db-wal", dir);
    for (int64_t i = 1; i <= 600; i++)
        cr_assert_eq(sim_publish(w, "n1", 8, "boot", i), 0);
    cr_assert_eq(stat(log, &st), 0);
    cr_expect_lt(st.st_size, 16 << 20, "%lld", (long long)st.st_size);
    writer_stop(w);
}

Test(store, refuses_a_directory_that_everybody_may_write_to)
{
    struct error err = {0};
    struct store *s = NULL;
    cr_assert_eq(chmod(dir, 0777), 0);
    cr_assert_eq(store_open(STORE_SQLITE, dir, &s, &err), -EPERM);
    cr_expect_not_null(strstr(err.text, "chmod o-w"), "%s", err.text);
    cr_assert_eq(chmod(dir, 0750), 0);
    cr_assert_eq(store_open(STORE_SQLITE, dir, &s, &err), 0, "%s", err.text);
    store_close(s);
}

/* --- the other kind ------------------------------------------------------ */

static int see_nothing(void *ctx, const char *name, const char *json,
                       size_t size, uint64_t version)
{
    (void)ctx;
    (void)name;
    (void)json;
    (void)size;
    (void)version;
    cr_assert_fail("something was kept");
    return 0;
}

static int see_no_allocation(void *ctx, struct allocation *a)
{
    (void)ctx;
    (void)a;
    cr_assert_fail("something was kept");
    return 0;
}

Test(store, keeps_nothing_for_an_api_server)
{
    struct store *s = NULL;
    struct error err = {0};
    struct demand pod = {.name = "p", .namespace = "ns", .role = ROLE_HOST};
    cleanup_with(allocation) struct allocation *a = allocation_create(&pod,
                                                                      "n");
    cr_expect_eq(store_open(STORE_KUBERNETES, dir, &s, &err), -EINVAL);
    cr_expect(strstr(err.text, "--state"), "%s", err.text);
    cr_assert_eq(store_open(STORE_KUBERNETES, NULL, &s, &err), 0);
    cr_expect_eq(store_get_kind(s), STORE_KUBERNETES);
    put(s, "a", "{}");
    cr_expect_eq(store_resource_version(s), 1);
    cr_assert_eq(store_begin(s, &err), 0);
    cr_expect_eq(store_put_allocation(s, a, &err), 0);
    cr_expect_eq(store_set_silent(s, "n", true, &err), 0);
    cr_expect_eq(store_retire_boot(s, "n", "boot", &err), 0);
    cr_expect_eq(store_delete_slice(s, "b", &err), 0);
    store_raise_version(s, 70);
    store_raise_version(s, 60);
    cr_expect_eq(store_take_version(s), 71);
    store_rollback(s);
    cr_expect_eq(store_resource_version(s), 1);
    store_raise_version(s, 5);
    cr_assert_eq(store_commit(s, &err), 0);
    store_rollback(s);
    cr_expect_eq(store_resource_version(s), 5);
    cr_expect_eq(store_get_slice(s, "a", see_nothing, NULL, &err), -ENOENT);
    cr_expect_eq(store_each_slice(s, NULL, see_nothing, NULL, &err), 0);
    cr_expect_eq(store_each_allocation(s, see_no_allocation, NULL, &err), 0);
    store_tidy(s);
    store_close(s);
}

/* What was raised is durable, as what was counted. */
Test(store, keeps_a_raised_version)
{
    struct store *s = must_open(dir);
    struct error err = {0};
    cr_expect_eq(store_get_kind(s), STORE_SQLITE);
    cr_assert_eq(store_begin(s, &err), 0);
    store_raise_version(s, 1000);
    cr_assert_eq(store_commit(s, &err), 0);
    store_close(s);
    s = must_open(dir);
    cr_expect_eq(store_take_version(s), 1001);
    store_close(s);
}
