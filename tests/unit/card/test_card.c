#include "card/card.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"
#include "tests/lib/late_writer.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static struct error err;

static char *dir_make(void)
{
    return tmpdir_create();
}

Test(card, a_disk_is_as_large_as_its_file_system)
{
    char *dir = dir_make();
    cleanup_free char *path = xasprintf("%s/out", dir);
    char text[128] = "", must[64];
    struct statfs fs;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_eq(statfs(dir, &fs), 0);
    cr_assert_eq(card_disk(dir, fd, &err), 0, "%s", err.text);
    cr_assert_gt(pread(fd, text, sizeof text - 1, 0), 0);
    (void)snprintf(must, sizeof must, "size=%llu\navailable=",
                   (unsigned long long)fs.f_blocks *
                       (unsigned long)fs.f_frsize);
    cr_expect(strncmp(text, must, strlen(must)) == 0, "%s", text);
    cr_expect_eq(card_disk("/nowhere/at/all", fd, &err), -ENOENT);
    (void)close(fd);
    tmpdir_remove(dir);
}

/* --- base64 ------------------------------------------------------------- */

static int decode(const char *text, char *out)
{
    size_t n = 0;
    int rc = card_decode(text, strlen(text), (unsigned char *)out, &n);
    if (!rc)
        out[n] = 0;
    return rc;
}

Test(card, base64_is_strict)
{
    static const char *const bad[] = {
        "A",     "AA",   "AAA",  "A===", "====",    "AA=A",
        "AAAA=", "AB==", "AAB=", "A A=", "AA==AAAA"};
    char out[64];
    cr_expect_eq(decode("", out), 0);
    cr_expect_str_eq(out, "");
    cr_expect_eq(decode("Zm9v", out), 0);
    cr_expect_str_eq(out, "foo");
    cr_expect_eq(decode("Zm9vYg==", out), 0);
    cr_expect_str_eq(out, "foob");
    cr_expect_eq(decode("Zm9vYmE=", out), 0);
    cr_expect_str_eq(out, "fooba");
    cr_expect_eq(decode("/+8=", out), 0);
    cr_expect_eq((unsigned char)out[0], 0xff);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect_eq(decode(bad[i], out), -EINVAL, "%s", bad[i]);
}

Test(card, names_stay_below)
{
    static const char *const good[] = {"a", "a/b", "..data", "a/...", ".a"};
    static const char *const bad[] = {"",   "/a",       "a/",   "a//b",
                                      ".",  "a/..",     "../a", "a/./b",
                                      "..", "a/../../b"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        cr_expect(card_name_ok(good[i]), "%s", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        cr_expect(!card_name_ok(bad[i]), "%s", bad[i]);
}

/* --- files -------------------------------------------------------------- */

#define PADDED(dir, pad, ...)                                     \
    ({                                                            \
        const char *argv_[] = {__VA_ARGS__};                      \
        card_files(dir, pad, (int)ARRAY_LEN(argv_), argv_, &err); \
    })
#define FILES(dir, ...) PADDED(dir, "-", __VA_ARGS__)

static mode_t mode_of(const char *dir, const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    cr_assert_eq(stat(path, &st), 0, "%s", path);
    return st.st_mode & 07777;
}

static void expect_file(const char *dir, const char *name, const char *text,
                        mode_t mode)
{
    struct stat st;
    size_t size;
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cr_assert_eq(stat(path, &st), 0, "%s", path);
    cr_expect_eq(st.st_mode & 07777, mode, "%s: %o", path, st.st_mode);
    cleanup_free char *data = testdata_read(path, &size);
    cr_expect_str_eq(data, text, "%s", path);
}

Test(card, files_are_written)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *sub = xasprintf("%s/pods/u1/volumes/v", dir);
    (void)umask(077);
    cr_assert_eq(FILES(sub, "a", "644", "2", "Zm9v", "YmFy", "c/d", "0400", "0",
                       "e", "755", "1", "Zg=="),
                 0, "%s", err.text);
    expect_file(sub, "a", "foobar", 0644);
    expect_file(sub, "c/d", "", 0400);
    expect_file(sub, "e", "f", 0755);
    cr_expect_eq(mode_of(sub, ""), 0700, "nobody else sees into it");
    cr_expect_eq(mode_of(sub, "c"), 0755, "any container's user does");
    cr_assert_eq(FILES(sub, "a", "600", "1", "bmV3", "f", "d777", "0"), 0, "%s",
                 err.text);
    cr_expect_eq(mode_of(sub, "f"), 0777, "as an emptyDir is");
    expect_file(sub, "a", "new", 0600);
    cr_assert_eq(card_remove(dir, &err), 0, "%s", err.text);
    cr_expect_neq(access(dir, F_OK), 0);
}

Test(card, what_is_wrong_writes_nothing)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *sub = xasprintf("%s/v", dir);
    cr_expect_eq(FILES(sub, "a", "644", "1", "Zm9v", "../b", "644", "0"),
                 -EINVAL);
    cr_expect_eq(FILES(sub, "a", "644", "2", "Zm9v"), -EINVAL);
    cr_expect_eq(FILES(sub, "a", "1644", "0"), -EINVAL);
    cr_expect_eq(FILES(sub, "a", "9", "0"), -EINVAL);
    cr_expect_eq(FILES(sub, "a", "644"), -EINVAL);
    cr_expect_eq(FILES(sub, "a", "644", "-1"), -EINVAL);
    cr_expect_eq(FILES("relative", "a", "644", "0"), -EINVAL);
    cr_expect_eq(FILES(sub, "a", "d755", "1", "Zm9v"), -EINVAL);
    cr_expect_neq(access(sub, F_OK), 0);
    cr_expect_eq(FILES(sub, "a", "644", "1", "Zm9"), -EINVAL);
    cleanup_free char *left = xasprintf("%s/.biga-new", sub);
    cr_expect_neq(access(left, F_OK), 0, "half a file is left");
    (void)card_remove(dir, &err);
}

Test(card, files_follow_no_symlink)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *out = xasprintf("%s/out", dir);
    cleanup_free char *sub = xasprintf("%s/v", dir);
    cleanup_free char *link = xasprintf("%s/v/link", dir);
    cleanup_free char *leaf = xasprintf("%s/v/leaf", dir);
    cleanup_free char *through = xasprintf("%s/v/link/v", dir);
    cr_assert_eq(mkdir(out, 0755), 0);
    cr_assert_eq(mkdir(sub, 0755), 0);
    cr_assert_eq(symlink(out, link), 0);
    cr_assert_eq(symlink("../out/leaf", leaf), 0);
    cr_expect_lt(FILES(sub, "link/a", "644", "0"), 0);
    cr_expect_lt(FILES(through, "a", "644", "0"), 0);
    /* the link itself is replaced */
    cr_expect_eq(FILES(sub, "leaf", "644", "1", "Zm9v"), 0, "%s", err.text);
    expect_file(sub, "leaf", "foo", 0644);
    cr_expect_eq(rmdir(out), 0, "something was written into it");
    (void)card_remove(dir, &err);
}

Test(card, an_argument_of_the_largest_size_arrives)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *piece = xmalloc(CARD_PIECE_MAX + 2);
    const char *argv[3 + 14] = {"big", "600", "14"};
    struct stat st;
    memset(piece, 'A', CARD_PIECE_MAX + 1);
    piece[CARD_PIECE_MAX] = 0;
    for (int i = 0; i < 14; i++)
        argv[3 + i] = piece;
    cr_assert_eq(card_files(dir, "-", 17, argv, &err), 0, "%s", err.text);
    cleanup_free char *path = xasprintf("%s/big", dir);
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_size, 14 * CARD_PIECE_MAX / 4 * 3);
    piece[CARD_PIECE_MAX] = 'A';
    piece[CARD_PIECE_MAX + 1] = 0;
    cr_expect_eq(card_files(dir, "-", 17, argv, &err), -EINVAL);
    (void)card_remove(dir, &err);
}

/* What a pad of `size` bytes is, and its id. */
static char *pad_make(const char *dir, size_t size, char id[CARD_PAD_ID_SIZE])
{
    cleanup_free char *path = xasprintf("%s.pad", dir);
    size_t n;
    int out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(out, 0);
    cr_assert_eq(card_pad(dir, size, out, id, &err), 0, "%s", err.text);
    close(out);
    char *data = testdata_read(path, &n);
    cr_assert_eq(n, size);
    (void)unlink(path);
    return data;
}

Test(card, a_pad_hides_what_is_written_and_is_used_once)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *sub = xasprintf("%s/u", dir);
    char id[CARD_PAD_ID_SIZE], later[CARD_PAD_ID_SIZE], text[9] = {0};
    /* base64 of six bytes has no padding: three and three of "secret" */
    cleanup_free char *pad = pad_make(sub, 6, id);
    cr_expect_eq(mode_of(sub, ".biga-pad"), 0600);
    cr_expect_eq(mode_of(sub, ""), 0700);
    struct str hidden[2] = {STR_INIT(64), STR_INIT(64)};
    for (int i = 0; i < 2; i++) {
        char three[3];
        for (int k = 0; k < 3; k++)
            three[k] = (char)("secret"[3 * i + k] ^ pad[3 * i + k]);
        base64_add(&hidden[i], three, 3);
    }
    cr_expect_eq(PADDED(sub, "0123", "a", "644", "0"), -ESTALE);
    cr_assert_eq(PADDED(sub, id, "a", "400", "1", str_text(&hidden[0]), "b",
                        "400", "1", str_text(&hidden[1])),
                 0, "%s", err.text);
    expect_file(sub, "a", "sec", 0400);
    expect_file(sub, "b", "ret", 0400);
    cleanup_free char *left = xasprintf("%s/.biga-pad", sub);
    cr_expect_neq(access(left, F_OK), 0, "it is gone");
    cr_expect_eq(PADDED(sub, id, "a", "644", "1", str_text(&hidden[0])),
                 -ESTALE, "it is used once");
    /* another pad took the place of the first */
    cleanup_free char *one = pad_make(sub, 6, id);
    cleanup_free char *two = pad_make(sub, 6, later);
    cr_expect_str_neq(id, later);
    cr_expect_neq(memcmp(one, two, 6), 0);
    cr_expect_eq(PADDED(sub, id, "a", "644", "1", str_text(&hidden[0])),
                 -ESTALE);
    /* more than the pad has */
    memset(text, 'A', 8);
    cr_expect_eq(PADDED(sub, later, "a", "644", "2", text, "AAAA"), -EINVAL);
    expect_file(sub, "a", "sec", 0400);
    str_fini(&hidden[0]);
    str_fini(&hidden[1]);
    (void)card_remove(dir, &err);
}

Test(card, huge_pages_are_of_the_size_asked_for)
{
    static const char *const folder[] = {"v", "d777", "0"};
    static const char *const file[] = {"v", "644", "0"};
    struct stat st;
    char *top = tmpdir_create();
    cleanup_free char *dir = xasprintf("%s/biga/u", top);
    cleanup_free char *made = xasprintf("%s/v", dir);
    cr_expect_eq(card_hugepages(top, 2 << 20, dir, 3, folder, &err),
                 -EMEDIUMTYPE);
    cr_expect(strstr(err.text, "pages of 2097152 bytes"), "%s", err.text);
    cr_expect_eq(card_hugepages("/none", 2 << 20, dir, 3, folder, &err),
                 -EMEDIUMTYPE);
    if (unshare(CLONE_NEWNS) == 0 &&
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", top, "hugetlbfs", 0, "pagesize=2M") == 0) {
        cr_expect_eq(card_hugepages(top, 1 << 30, dir, 3, folder, &err),
                     -EMEDIUMTYPE);
        cr_expect_eq(card_hugepages(top, 2 << 20, dir, 3, file, &err), -EINVAL);
        cr_expect_eq(card_hugepages(top, 2 << 20, dir, 3, folder, &err), 0,
                     "%s", err.text);
        cr_assert_eq(stat(made, &st), 0);
        cr_expect_eq(st.st_mode & 07777, 0777u);
        cr_expect_eq(card_remove(dir, &err), 0, "%s", err.text);
        cr_expect_neq(stat(dir, &st), 0);
        (void)umount(top);
    }
    tmpdir_remove(top);
}

Test(card, memory_is_memory)
{
    static const char *const folder[] = {"v", "d777", "0"};
    static const char *const file[] = {"v", "644", "0"};
    struct statfs fs;
    char path[] = "/var/tmp/biga-test-XXXXXX";
    if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC) {
        char memory[] = "/dev/shm/biga-test-XXXXXX";
        cr_assert(mkdtemp(memory));
        cleanup_free char *u = xasprintf("%s/u", memory);
        cr_expect_eq(card_memory(u, 3, folder, &err), 0, "%s", err.text);
        cr_expect_eq(mode_of(u, "v"), 0777);
        cr_expect_eq(mode_of(u, ""), 0700);
        cr_expect_eq(card_memory(u, 3, file, &err), -EINVAL);
        (void)card_remove(memory, &err);
    }
    cr_assert(mkdtemp(path));
    if (statfs(path, &fs) == 0 && fs.f_type != TMPFS_MAGIC &&
        fs.f_type != RAMFS_MAGIC) {
        cr_expect_eq(card_memory(path, 3, folder, &err), -EMEDIUMTYPE);
        cr_expect(strstr(err.text, "/dev/shm"), "%s", err.text);
    }
    (void)card_remove(path, &err);
}

/* --- remove ------------------------------------------------------------- */

Test(card, removes_what_is_there_and_nothing_else)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *keep = xasprintf("%s/keep", dir);
    cleanup_free char *gone = xasprintf("%s/gone", dir);
    cleanup_free char *link = xasprintf("%s/gone/link", dir);
    cleanup_free char *outer = xasprintf("%s/outer", dir);
    cleanup_free char *below = xasprintf("%s/outer/x", dir);
    cr_assert_eq(FILES(keep, "a", "644", "0"), 0);
    cr_assert_eq(FILES(gone, "b/c/d", "0", "0", "e", "644", "0"), 0);
    cr_assert_eq(symlink(keep, link), 0);
    cr_assert_eq(symlink(keep, outer), 0);
    cr_expect_eq(card_remove(gone, &err), 0, "%s", err.text);
    cr_expect_neq(access(gone, F_OK), 0);
    cr_expect_eq(card_remove(gone, &err), 0, "once more: %s", err.text);
    expect_file(keep, "a", "", 0644);
    cr_expect_lt(card_remove(outer, &err), 0, "a link is no folder");
    cr_expect_lt(card_remove(below, &err), 0);
    cr_expect_eq(card_remove("/", &err), -EINVAL);
    cr_expect_eq(card_remove("/etc", &err), -EINVAL);
    cr_expect_eq(card_remove("/tmp/..", &err), -EINVAL);
    cr_expect_eq(card_remove("tmp/x", &err), -EINVAL);
    (void)card_remove(dir, &err);
}

Test(card, removes_a_tree_of_any_depth)
{
    cleanup_free char *dir = dir_make();
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000; i++) {
        cr_assert_eq(mkdirat(fd, "d", 0755), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        cr_assert_geq(next, 0);
        close(fd);
        fd = next;
    }
    close(fd);
    cr_expect_eq(card_remove(dir, &err), 0, "%s", err.text);
    cr_expect_neq(access(dir, F_OK), 0);
}

/* --- log ---------------------------------------------------------------- */

#define T "2026-01-01T00:00:00.000000001Z "

static const char sample[] = T "stdout F one\n" //
    T "stderr P two"
                               "\n" T "stderr P , still"
                               "\n" T "stderr F , end\n" //
    T "stdout F \n"                                      //
                               "no head\n" T "stdout F:tag x\n" T
                               "stdlog F y\n" T "stdout F last, torn";
static const char wanted[] = "one\n"
                             "two, still, end\n"
                             "\n"
                             "no head\n"
                             "x\n" T "stdlog F y\n";

static void log_make(const char *dir, const char *text, size_t size)
{
    cleanup_free char *path = xasprintf("%s/0.log", dir);
    FILE *f = fopen(path, "w");
    cr_assert(f);
    cr_assert_eq(fwrite(text, 1, size, f), size);
    cr_assert_eq(fclose(f), 0);
}

/* Up to `max` bytes of the log; where it goes on. */
static uint64_t log_take(const char *dir, uint64_t offset, size_t max,
                         char **ret_text)
{
    struct card_given given = {0};
    size_t size;
    cleanup_free char *path = xasprintf("%s/0.log", dir);
    cleanup_free char *out = xasprintf("%s/out", dir);
    int fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(card_log(path, offset, max, fd, &given, &err), 0, "%s",
                 err.text);
    close(fd);
    *ret_text = testdata_read(out, &size);
    cr_expect_leq(size, max);
    cr_expect_eq(size, given.size);
    return given.next;
}

Test(card, logs_say_what_the_container_wrote)
{
    cleanup_free char *dir = dir_make();
    log_make(dir, sample, sizeof sample - 1);
    cleanup_free char *text = NULL;
    uint64_t next = log_take(dir, 0, CARD_LOG_MAX, &text);
    cr_expect_str_eq(text, wanted);
    cr_expect_str_eq(sample + next, T "stdout F last, torn");
    cleanup_free char *nothing = NULL;
    cr_expect_eq(log_take(dir, next, 10, &nothing), next);
    cr_expect_str_eq(nothing, "");
    /* it was replaced by a shorter one */
    cleanup_free char *again = NULL;
    (void)log_take(dir, sizeof sample + 5, 4, &again);
    cr_expect_str_eq(again, "one\n");
    (void)card_remove(dir, &err);
}

/* Whatever the size of the bites, the whole is the same. */
Test(card, logs_are_the_same_in_any_bites)
{
    cleanup_free char *dir = dir_make();
    log_make(dir, sample, sizeof sample - 1);
    for (size_t max = 1; max < 40; max++) {
        char whole[1024];
        size_t n = 0;
        uint64_t at = 0;
        for (int i = 0; i < 1000; i++) {
            cleanup_free char *text = NULL;
            uint64_t next = log_take(dir, at, max, &text);
            cr_expect_geq(next, at);
            memcpy(whole + n, text, strlen(text) + 1);
            n += strlen(text);
            if (next == at)
                break;
            at = next;
        }
        cr_expect_str_eq(whole, wanted, "in bites of %zu", max);
    }
    (void)card_remove(dir, &err);
}

Test(card, a_line_without_an_end_is_given)
{
    cleanup_free char *dir = dir_make();
    size_t size = 3 * CARD_LINE_MAX + 100;
    cleanup_free char *big = xmalloc(size);
    memset(big, 'x', size);
    log_make(dir, big, size);
    cleanup_free char *text = NULL;
    uint64_t next = log_take(dir, 0, CARD_LOG_MAX, &text);
    cr_expect_eq(next, 3 * CARD_LINE_MAX);
    cr_expect_eq(strlen(text), 3 * CARD_LINE_MAX);
    (void)card_remove(dir, &err);
}

Test(card, many_lines_are_given)
{
    cleanup_free char *dir = dir_make();
    enum { LINES = 9000 };
    static const char line[] = T "stdout F 0123456789\n";
    cleanup_free char *all = xmalloc(LINES * (sizeof line - 1));
    for (size_t i = 0; i < LINES; i++)
        memcpy(all + i * (sizeof line - 1), line, sizeof line - 1);
    log_make(dir, all, LINES * (sizeof line - 1));
    cleanup_free char *text = NULL;
    uint64_t next = log_take(dir, 0, CARD_LOG_MAX, &text);
    cr_expect_eq(next, LINES * (sizeof line - 1));
    cr_expect_eq(strlen(text), LINES * 11);
    (void)card_remove(dir, &err);
}

/* Byte for byte, however the pieces fall: at line ends and within lines, and
 * where what is held back is written. */
Test(card, large_logs_are_given_in_pieces)
{
    enum { LINES = 60000, ROOM = LINES * 100 };
    cleanup_free char *dir = dir_make();
    cleanup_str struct str all = STR_INIT(2 * ROOM), plain = STR_INIT(ROOM);
    for (int i = 0; i < LINES; i++) {
        bool partial = i % 7 == 0;
        str_addf(&all, T "stdout %c ", partial ? 'P' : 'F');
        size_t from = all.size;
        str_addf(
            &all, "%d %.*s", i * 7919, i % 61,
            "the quick brown fox jumps over the lazy dog, again and again");
        str_add_n(&plain, all.data + from, all.size - from);
        str_add_c(&all, '\n');
        if (!partial)
            str_add_c(&plain, '\n');
    }
    log_make(dir, str_text(&all), all.size);
    static const size_t pieces[] = {CARD_LINE_MAX - 1, CARD_LINE_MAX,
                                    CARD_LINE_MAX + 1, 1 << 20, CARD_LOG_MAX};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        cleanup_str struct str got = STR_INIT(ROOM);
        uint64_t at = 0, next;
        for (;; at = next) {
            cleanup_free char *text = NULL;
            next = log_take(dir, at, pieces[i], &text);
            str_add(&got, text);
            if (next == at)
                break;
        }
        cr_expect_eq(at, all.size);
        cr_expect_eq(got.size, plain.size, "%zu", pieces[i]);
        cr_expect_str_eq(str_text(&got), str_text(&plain), "%zu", pieces[i]);
    }
    (void)card_remove(dir, &err);
}

Test(card, the_end_of_a_log_is_given)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *path = xasprintf("%s/0.log", dir);
    cleanup_free char *out = xasprintf("%s/out", dir);
    struct card_given at = {0};
    size_t size;
    static const char text[] = T "stdout F one\n" T "stderr F two\n";
    log_make(dir, text, sizeof text - 1);
    for (size_t max = 1; max < 2 * sizeof text; max++) {
        int fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
        cr_assert_geq(fd, 0);
        cr_assert_eq(card_log_tail(path, max, fd, &at, &err), 0, "%s",
                     err.text);
        close(fd);
        cleanup_free char *given = testdata_read(out, &size);
        cr_expect_eq(at.next, sizeof text - 1);
        cr_expect_eq(at.size, size);
        cr_expect(size <= 8 && strcmp(given, &"one\ntwo\n"[8 - size]) == 0,
                  "%zu: %s", max, given);
        cr_expect(size == 8 || max < sizeof text - 1);
    }
    cr_expect_eq(card_log_tail("/none/x", 1, 1, &at, &err), -ENOENT);
    (void)card_remove(dir, &err);
}

Test(card, what_comes_late_is_waited_for)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *path = xasprintf("%s/0.log", dir);
    cleanup_free char *text = NULL;
    struct late_writer late;
    log_make(dir, "", 0);
    late_writer_begin(&late, path, T "stdout F last\n");
    card_log_await(path);
    (void)log_take(dir, 0, 100, &text);
    late_writer_end(&late);
    cr_expect_str_eq(text, "last\n");
    (void)card_remove(dir, &err);
    card_log_await(path); /* none: who reads it says so */
}

Test(card, a_log_is_a_file)
{
    cleanup_free char *dir = dir_make();
    cleanup_free char *none = xasprintf("%s/none", dir);
    cleanup_free char *fifo = xasprintf("%s/fifo", dir);
    cleanup_free char *link = xasprintf("%s/link", dir);
    struct card_given at = {.next = 7};
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    cr_assert_eq(symlink("/etc/passwd", link), 0);
    cr_expect_eq(card_log(none, 0, 1, 1, &at, &err), -ENOENT);
    cr_expect_eq(card_log(fifo, 0, 1, 1, &at, &err), -EINVAL);
    cr_expect_eq(card_log(link, 0, 1, 1, &at, &err), -ELOOP);
    cr_expect_eq(card_log(dir, 0, 1, 1, &at, &err), -EINVAL);
    cr_expect_eq(card_log("none", 0, 1, 1, &at, &err), -EINVAL);
    cr_expect_eq(at.next, 7);
    (void)card_remove(dir, &err);
}
