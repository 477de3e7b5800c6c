/* A pod's directory on the host: made, read, and gone without a trace. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "advertiser/act/card/hostdir.h"
#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

static struct podspec_file files[] = {
    {.path = (char *)"a/b", .mode = 0440, .data = (char *)"text", .size = 4},
};
static struct podspec_volume volumes[] = {
    {.name = (char *)"c", .kind = PODSPEC_FILES, .files = files, .n_files = 1},
    {.name = (char *)"e", .kind = PODSPEC_EMPTY},
    {.name = (char *)"m", .kind = PODSPEC_EMPTY, .medium = PODSPEC_MEMORY},
};
static const struct podspec spec = {.volumes = volumes, .n_volumes = 2};
static const struct podspec with_memory = {.volumes = volumes, .n_volumes = 3};

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    cr_assert(f && fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
}

static mode_t mode_of(const char *dir, const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    cr_assert_eq(lstat(path, &st), 0, "%s", path);
    return st.st_mode;
}

Test(act_hostdir, files_and_their_end)
{
    char *top = tmpdir_create();
    cleanup_free char *dir = xasprintf("%s/pods/u-1", top);
    struct error err = {0};
    (void)umask(077);
    for (int i = 0; i < 2; i++) /* once more is the same */
        cr_assert_eq(hostdir_make(dir, "/nowhere", &spec, &err), 0, "%s",
                     err.text);
    /* nobody else may look into it, whatever the umask; but any container's
     * user into what is mounted there */
    cr_assert_eq(mode_of(dir, "") & 0777, 0700);
    cr_assert_eq(mode_of(dir, "logs") & 0777, 0755);
    cr_assert_eq(mode_of(dir, "volumes/c") & 0777, 0755);
    cr_assert_eq(mode_of(dir, "volumes/c/a") & 0777, 0755);
    cr_assert_neq(access("/nowhere", F_OK), 0);
    cr_assert(S_ISDIR(mode_of(dir, "logs")));
    cr_assert_eq(mode_of(dir, "volumes/c/a/b") & 0777, 0440);
    cr_assert_eq(mode_of(dir, "volumes/e") & 0777, 0777);
    cr_assert_eq(hostdir_remove(dir, &err), 0, "%s", err.text);
    cr_assert_neq(access(dir, F_OK), 0);
    cr_assert_eq(hostdir_remove(dir, &err), 0, "it may be gone");
    tmpdir_remove(top);
}

Test(act_hostdir, memory_is_memory)
{
    char *top = tmpdir_create();
    char memory[] = "/dev/shm/biga-test-XXXXXX";
    char disk[] = "/var/tmp/biga-test-XXXXXX";
    cleanup_free char *dir = xasprintf("%s/u-1", top);
    struct error err = {0};
    struct statfs fs;
    if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC) {
        cr_assert(mkdtemp(memory));
        cleanup_free char *own = xasprintf("%s/u-1", memory);
        cr_assert_eq(hostdir_make(dir, own, &with_memory, &err), 0, "%s",
                     err.text);
        cr_assert_eq(mode_of(own, "") & 0777, 0700);
        cr_assert_eq(mode_of(own, "m") & 0777, 0777);
        cr_assert_eq(hostdir_remove(memory, &err), 0, "%s", err.text);
    }
    cr_assert(mkdtemp(disk));
    if (statfs(disk, &fs) == 0 && fs.f_type != TMPFS_MAGIC) {
        cr_assert_eq(hostdir_make(dir, disk, &with_memory, &err), -EMEDIUMTYPE);
        cr_assert_not_null(strstr(err.text, "volume m"), "%s", err.text);
    }
    cr_assert_eq(hostdir_remove(disk, &err), 0, "%s", err.text);
    tmpdir_remove(top);
}

Test(act_hostdir, removes_a_tree_of_any_depth)
{
    char *top = tmpdir_create();
    struct error err = {0};
    cleanup_free char *dir = xasprintf("%s/u-1", top);
    cr_assert_eq(hostdir_make(dir, "/nowhere", &spec, NULL), 0);
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(mkdirat(fd, "d", 0755), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        cr_assert_geq(next, 0);
        close(fd);
        fd = next;
    }
    close(fd);
    cr_assert_eq(hostdir_remove(dir, &err), 0, "%s", err.text);
    cr_assert_neq(access(dir, F_OK), 0);
    tmpdir_remove(top);
}

Test(act_hostdir, links_lead_nowhere)
{
    char *top = tmpdir_create();
    cleanup_free char *dir = xasprintf("%s/u-1", top);
    cleanup_free char *out = xasprintf("%s/out", top);
    cleanup_free char *kept = xasprintf("%s/out/kept", top);
    cleanup_free char *link = xasprintf("%s/u-1/volumes/c/a", top);
    cleanup_free char *made = xasprintf("%s/u-1/volumes/c", top);
    cr_assert_eq(mkdir(out, 0755), 0);
    write_text(kept, "x");
    cr_assert_eq(hostdir_make(dir, "/nowhere", &spec, NULL), 0);
    cleanup_free char *file = xasprintf("%s/a/b", made);
    cr_assert(unlink(file) == 0 && rmdir(link) == 0);
    cr_assert_eq(symlink(out, link), 0);
    cr_assert_lt(hostdir_make(dir, "/nowhere", &spec, NULL), 0);
    cr_assert_eq(hostdir_remove(dir, NULL), 0);
    cr_assert_eq(access(kept, F_OK), 0);
    tmpdir_remove(top);
}

#define TIME "2026-01-01T00:00:00Z "

Test(act_hostdir, logs_are_what_was_written)
{
    char *top = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/x.log", top);
    struct str text = STR_INIT(1 << 20);
    uint64_t next = 7;
    cr_assert_eq(hostdir_log(path, 3, 100, &text, &next, NULL), 0);
    cr_assert(text.size == 0 && next == 3, "there is none yet");
    write_text(path, TIME "stdout F one\n" TIME "stderr P tw\n" TIME
                          "stderr F o\nodd\nT st");
    cr_assert_eq(hostdir_log(path, 0, 100, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text), "one\ntwo\nodd\n");
    cr_assert_eq(next, 103);
    str_reset(&text);
    cr_assert_eq(hostdir_log(path, 0, 4, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text), "one\n");
    cr_assert_eq(next, 34);
    str_reset(&text);
    cr_assert_eq(hostdir_log(path, 4000, 4, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text), "one\n", "it was replaced");
    str_reset(&text);
    cr_assert_eq(hostdir_log_tail(path, 9, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text), "odd\n");
    cr_assert_eq(next, 103);
    str_reset(&text);
    cr_assert_eq(hostdir_log_tail(path, 900, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text), "one\ntwo\nodd\n");
    cr_assert_eq(hostdir_log_tail(top, 9, &text, &next, NULL), -EINVAL);
    str_reset(&text);
    struct lines_ask ask = {.offset = 34, .max = 100};
    cr_assert_eq(hostdir_log_lines(path, &ask, &text, &next, NULL), 0);
    cr_assert_str_eq(str_text(&text),
                     TIME "stderr P tw\n" TIME "stderr F o\nodd\n");
    cr_assert_eq(next, 103);
    cr_assert_eq(hostdir_log_lines(top, &ask, &text, &next, NULL), -EINVAL);
    (void)unlink(path);
    cr_assert_eq(hostdir_log_tail(path, 9, &text, &next, NULL), -ENOENT);
    str_reset(&text);
    cr_assert_eq(hostdir_log_lines(path, &ask, &text, &next, NULL), 0);
    cr_assert(text.size == 0 && next == 34, "there is none yet");
    str_fini(&text);
    tmpdir_remove(top);
}
