#include "card/volume.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static struct error err;
static char *top, *disk, *memory, *me;

static void begin(void)
{
    struct statfs fs;
    top = tmpdir_create();
    disk = xasprintf("%s/disk/pods/u", top);
    memory = xasprintf("%s/memory/u", top);
    me = xasprintf("%u:%u", (unsigned)geteuid(), (unsigned)getegid());
    if (statfs(top, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        cr_skip("the folder for tests is not in memory");
}

static void end(void)
{
    tmpdir_remove(top);
    free(disk);
    free(memory);
    free(me);
}

TestSuite(card_volume, .init = begin, .fini = end);

#define STEPS(...)                                              \
    ({                                                          \
        const char *argv_[] = {disk, memory, "-", __VA_ARGS__}; \
        card_volume((int)ARRAY_LEN(argv_), argv_, &err);        \
    })

/* What is below the test's folder; NULL when it is not there. */
static char *content(const char *name, ino_t *ret_inode)
{
    cleanup_free char *path = xasprintf("%s/%s", top, name);
    struct stat st;
    if (stat(path, &st) != 0)
        return NULL;
    if (ret_inode)
        *ret_inode = st.st_ino;
    return testdata_read(path, NULL);
}

static void expect(const char *name, const char *text)
{
    cleanup_free char *found = content(name, NULL);
    cr_expect(found && strcmp(found, text) == 0, "%s: %s", name,
              found ? found : "(none)");
}

Test(card_volume, an_update_is_one_link)
{
    cr_assert_eq(STEPS("folder", "memory/v", "755", me,                  /**/
                       "folder", "memory/v/..1", "755", me,              /**/
                       "file", "memory/v/..1/a", "640", me, "1", "Zm9v", /**/
                       "link", "memory/v/..data", "..1",                 /**/
                       "link", "memory/v/a", "..data/a"),
                 0, "%s", err.text);
    expect("memory/u/v/a", "foo");
    cr_assert_eq(STEPS("file", "memory/v/..2/a", "640", me, "1",
                       "Zm9vYg==",                       /**/
                       "link", "memory/v/..data", "..2", /**/
                       "drop", "memory/v/..1", "drop", "memory/v/..1"),
                 0, "%s", err.text);
    expect("memory/u/v/a", "foob");
    cr_expect_null(content("memory/u/v/..1/a", NULL));
    cr_expect_null(content("memory/u/.biga-new", NULL));
}

Test(card_volume, a_single_file_keeps_its_inode)
{
    ino_t first = 0, second = 1;
    cr_assert_eq(STEPS("inplace", "disk/etc-hosts", "644", me, "1", "Zm9vYmFy"),
                 0, "%s", err.text);
    free(content("disk/pods/u/etc-hosts", &first));
    cr_assert_eq(STEPS("inplace", "disk/etc-hosts", "600", me, "1", "Zm9v"), 0);
    free(content("disk/pods/u/etc-hosts", &second));
    cr_expect_eq(first, second);
    expect("disk/pods/u/etc-hosts", "foo");
    cr_assert_eq(STEPS("inplace", "disk/etc-hosts", "600", me, "0"), 0);
    expect("disk/pods/u/etc-hosts", "");
}

Test(card_volume, nothing_leads_out)
{
    static const char *const names[] = {"memory",      "disk/../x", "/etc/x",
                                        "disk/a/../x", "other/x",   "disk//x",
                                        "memory/"};
    cleanup_free char *out = xasprintf("%s/out", top);
    cr_assert_eq(mkdir(out, 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cr_expect_eq(STEPS("file", names[i], "600", me, "0"), -EINVAL, "%s",
                     names[i]);
    cr_expect_eq(STEPS("link", "disk/l", "/etc"), -EINVAL);
    cr_expect_eq(STEPS("link", "disk/l", "../x"), -EINVAL);
    /* a link that somebody else has put there */
    cr_assert_eq(STEPS("folder", "disk/v", "755", me), 0);
    cleanup_free char *planted = xasprintf("%s/v/out", disk);
    cr_assert_eq(symlink(out, planted), 0);
    cr_expect_neq(STEPS("file", "disk/v/out/x", "600", me, "0"), 0);
    cr_expect_neq(STEPS("folder", "disk/v/out", "777", me), 0);
    cr_expect_neq(STEPS("inplace", "disk/v/out", "600", me, "0"), 0);
    cr_expect_null(content("out/x", NULL));
    cr_expect_eq(STEPS("drop", "disk/v/out"), 0);
    cr_expect_eq(access(out, F_OK), 0);
}

Test(card_volume, bad_steps_are_found_before_anything_is_done)
{
    static const char *const owners[] = {
        "", "1", ":", "1:", ":1", "-1:0", "4294967295:0", "0:x"};
    for (size_t i = 0; i < ARRAY_LEN(owners); i++)
        cr_expect_eq(STEPS("folder", "disk/a", "700", me, /**/
                           "folder", "disk/b", "700", owners[i]),
                     -EINVAL, "%s", owners[i]);
    cr_expect_eq(
        STEPS("folder", "disk/a", "700", me, "file", "disk/b", "4755", me, "0"),
        -EINVAL);
    cr_expect_eq(STEPS("file", "disk/b", "600", me, "2", "Zm9v"), -EINVAL);
    cr_expect_eq(STEPS("folder", "disk/a", "700", me, "what", "disk/b"),
                 -EINVAL);
    cr_expect_neq(access(disk, F_OK), 0);
    cr_expect_eq(STEPS("file", "disk/b", "600", me, "1", "Z"), -EINVAL);
    cr_expect_null(content("disk/pods/u/b", NULL));
}

/* What pods have made in their folder leads nobody out of it. */
Test(card_volume, a_part_is_a_folder_and_never_a_link)
{
    cleanup_free char *out = xasprintf("%s/out", top);
    cleanup_free char *link = xasprintf("%s/e/link", disk);
    cr_assert_eq(STEPS("folder", "disk/e", "777", me), 0, "%s", err.text);
    cr_assert_eq(mkdir(out, 0700), 0);
    cr_assert_eq(symlink(out, link), 0);
    cr_expect_eq(STEPS("part", "memory/p", "755", me, "disk/e/link"), -ENOTDIR);
    cr_expect_eq(STEPS("part", "memory/p", "755", me, "disk/e/link/x"),
                 -ENOTDIR);
    cr_expect_eq(STEPS("part", "memory/p", "755", me, "disk/e/../x"), -EINVAL);
    cr_expect_eq(STEPS("part", "memory/p", "755", me, "/etc"), -EINVAL);
    cr_expect_eq(STEPS("part", "memory/p", "755", me), -EINVAL);
    cr_expect_null(content("out/x", NULL));
}

Test(card_volume, a_part_is_seen_where_mounts_are_shared)
{
    struct stat st;
    cleanup_free char *in = xasprintf("%s/e/a/b", disk);
    cr_assert_eq(
        STEPS("folder", "disk/e", "777", me, "folder", "memory/f", "777", me),
        0, "%s", err.text);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        cr_skip("needs root, to mount");
    cr_expect_eq(STEPS("part", "memory/p/q", "2750", me, "disk/e/a/b"),
                 -ENOTSUP);
    cr_expect(strstr(err.text, "shared"), "%s", err.text);
    cr_assert_eq(stat(in, &st), 0);
    cr_expect_eq(st.st_mode, S_IFDIR | 02750u);
    cr_assert_eq(mount(memory, memory, NULL, MS_BIND, NULL), 0);
    cr_assert_eq(mount(NULL, memory, NULL, MS_SHARED, NULL), 0);
    cr_assert_eq(chmod(in, 0700), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(STEPS("part", "memory/p/q", "2750", me, "disk/e/a/b"), 0,
                     "%s", err.text);
    cr_assert_eq(STEPS("file", "disk/e/a/b/x", "600", me, "1", "Zm9v"), 0);
    expect("memory/u/p/q/x", "foo");
    cr_assert_eq(stat(in, &st), 0);
    cr_expect_eq(st.st_mode, S_IFDIR | 0700u, "it is the pod's own");
    cr_expect_eq(card_unmount(memory, &err), 0, "%s", err.text);
    cr_expect_null(content("memory/u/p/q/x", NULL), "it was mounted once");
}

/* --- what is there --------------------------------------------------------- */

#define SAID(call)                                                   \
    ({                                                               \
        int fd_ = open(top, O_RDWR | O_TMPFILE, 0600);               \
        cr_assert_geq(fd_, 0);                                       \
        int rc_ = (call);                                            \
        ssize_t n_ = rc_ ? 0 : pread(fd_, said, sizeof said - 1, 0); \
        said[n_ > 0 ? n_ : 0] = '\0';                                \
        for (ssize_t i_ = 0; i_ < n_; i_++)                          \
            said[i_] = said[i_] ? said[i_] : '\n';                   \
        (void)close(fd_);                                            \
        rc_;                                                         \
    })
static char said[65536];

Test(card_volume, tree_tells_what_is_there)
{
    char file[96];
    cr_assert_eq(SAID(card_tree(disk, memory, fd_, &err)), 0);
    cr_expect_str_eq(said, "end 0\n");
    cr_assert_eq(STEPS("file", "memory/v/a b", "640", me, "1", "Zm9v", /**/
                       "link", "memory/v/l", "a b",                    /**/
                       "file", "disk/volumes/kubernetes.io~empty-dir/e/x",
                       "600", me, "0"),
                 0, "%s", err.text);
    cr_assert_eq(SAID(card_tree(disk, memory, fd_, &err)), 0, "%s", err.text);
    (void)snprintf(file, sizeof file, "f 640 %u %u 3 %llx memory/v/a b\n",
                   (unsigned)geteuid(), (unsigned)getegid(),
                   (unsigned long long)hash_bytes("foo", 3));
    cr_expect(strstr(said, file), "%s", said);
    cr_expect(strstr(said, "l 0 0 0 0 0 memory/v/l\na b\n"), "%s", said);
    cr_expect(strstr(said, "empty-dir/e\n"), "%s", said);
    cr_expect(!strstr(said, "empty-dir/e/x"), "%s", said);
    cr_expect(strstr(said, "\nend 6\n"), "%s", said);
}

Test(card_volume, last_is_the_end_of_a_file)
{
    size_t size = 0;
    cleanup_free char *path = xasprintf("%s/t", disk);
    cr_expect_eq(SAID(card_last(path, 4, fd_, &size, &err)), -ENOENT);
    cr_assert_eq(STEPS("file", "disk/t", "666", me, "1", "Zm9vYmFy"), 0);
    cr_expect_eq(SAID(card_last(path, 4, fd_, &size, &err)), 0);
    cr_expect_str_eq(said, "obar");
    cr_expect_eq(SAID(card_last(path, 400, fd_, &size, &err)), 0);
    cr_expect_eq(size, 6);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(SAID(card_last(path, 4, fd_, &size, &err)), -EINVAL);
}

Test(card_volume, pods_are_folders)
{
    cleanup_free char *pods = xasprintf("%s/disk/pods", top);
    const char *const argv[] = {pods, "/nowhere/at-all"};
    cr_assert_eq(STEPS("folder", "disk/a", "700", me), 0);
    cr_expect_eq(SAID(card_pods(2, argv, fd_, &err)), 0);
    cr_expect_str_eq(said, "u\nend 1\n");
}

Test(card_volume, drop_makes_nothing)
{
    cr_expect_eq(STEPS("folder", "disk/a", "700", me, "drop", "disk/b/c"), 0);
    cleanup_free char *path = xasprintf("%s/b", disk);
    cr_expect_neq(access(path, F_OK), 0);
}
