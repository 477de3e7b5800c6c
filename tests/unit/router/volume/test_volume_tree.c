#include "router/volume/volume_tree.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/card/kubeletdir.h"
#include "tests/lib/tmpdir.h"

static struct error err;
static char *top, *volume;

static void begin(void)
{
    top = tmpdir_create();
    volume = xasprintf("%s/pods/u/volumes/kubernetes.io~secret/s", top);
}

static void end(void)
{
    tmpdir_remove(top);
    free(volume);
}

TestSuite(volume_tree, .init = begin, .fini = end);

#define UPDATE(...)                            \
    kubeletdir_update(top, "u", "secret", "s", \
                      (const char *const[]){__VA_ARGS__, NULL})

static char *below(const char *name)
{
    return xasprintf("%s/%s", volume, name);
}

Test(volume_tree, only_what_is_meant_is_read)
{
    struct volume_tree t;
    UPDATE("a=one", "d/b=two");
    cleanup_free char *stale = below("..old/a");
    kubeletdir_write(stale, "stale");
    cr_assert_eq(volume_tree_read(volume, &t, &err), 0, "%s", err.text);
    const struct volume_item *data = volume_tree_find(&t, VOLUME_DATA);
    cr_assert(data && data->type == VOLUME_LINK);
    cleanup_free char *name = xasprintf("%s/d/b", data->target);
    const struct volume_item *b = volume_tree_find(&t, name);
    cr_assert(b && b->type == VOLUME_FILE);
    cr_expect_eq(b->size, 3);
    cr_expect_eq(memcmp(b->data, "two", 3), 0);
    cr_expect_eq(b->mode, 0644);
    const struct volume_item *a = volume_tree_find(&t, "a");
    cr_assert(a && a->type == VOLUME_LINK);
    cr_expect_str_eq(a->target, "..data/a");
    cr_expect(volume_tree_find(&t, "")->type == VOLUME_FOLDER);
    cr_expect_null(volume_tree_find(&t, "..old"));
    cr_expect_eq(t.size, 6);
    volume_tree_fini(&t);
}

Test(volume_tree, nothing_leads_out)
{
    static const char *const targets[] = {"/etc/passwd", "../../../x", "a/../b",
                                          "..", ""};
    struct volume_tree t;
    UPDATE("a=one");
    cleanup_free char *link = below("l");
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        if (symlink(targets[i], link) != 0)
            continue; /* Linux has no empty ones */
        cr_expect_eq(volume_tree_read(volume, &t, &err), -EINVAL, "%s",
                     targets[i]);
        cr_expect(strstr(err.text, volume), "%s", err.text);
        cr_assert_eq(unlink(link), 0);
    }
    cleanup_free char *data = below(VOLUME_DATA);
    cr_assert_eq(unlink(data), 0);
    cr_assert_eq(symlink("../s", data), 0);
    cr_expect_eq(volume_tree_read(volume, &t, &err), -EINVAL);
}

Test(volume_tree, no_link_is_followed_to_it)
{
    struct volume_tree t;
    UPDATE("a=one");
    cleanup_free char *link = xasprintf("%s/l", top);
    cleanup_free char *file = below("a");
    cr_assert_eq(symlink(volume, link), 0);
    cr_expect_neq(volume_tree_read(link, &t, &err), 0);
    cr_expect_neq(volume_tree_read_file(file, &t, &err), 0);
}

Test(volume_tree, pipes_are_refused)
{
    struct volume_tree t;
    UPDATE("a=one");
    cleanup_free char *pipe = below("p");
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    cr_expect_eq(volume_tree_read(volume, &t, &err), -EINVAL);
    cr_expect_eq(volume_tree_read_file(pipe, &t, &err), -EINVAL);
}

Test(volume_tree, what_is_missing_is_told)
{
    struct volume_tree t;
    cr_expect_eq(volume_tree_read(volume, &t, &err), -ENOENT);
    cr_expect_eq(volume_tree_read_file(volume, &t, &err), -ENOENT);
    cr_expect(strstr(err.text, volume));
}

Test(volume_tree, a_file_has_a_cap)
{
    struct volume_tree t;
    cleanup_free char *big = below("big");
    kubeletdir_write(big, "x");
    cr_assert_eq(truncate(big, VOLUME_FILE_MAX), 0);
    cr_expect_eq(volume_tree_read_file(big, &t, &err), 0, "%s", err.text);
    volume_tree_fini(&t);
    cr_assert_eq(truncate(big, VOLUME_FILE_MAX + 1), 0);
    cr_expect_eq(volume_tree_read_file(big, &t, &err), -EFBIG);
    cr_expect_eq(volume_tree_read(volume, &t, &err), -EFBIG);
    cr_expect(strstr(err.text, "1048576"), "%s", err.text);
}

Test(volume_tree, folders_and_bytes_have_caps)
{
    struct volume_tree t = {0};
    cleanup_free char *deep =
        xasprintf("%s/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/x", volume);
    cleanup_free char *data = xcalloc(1, VOLUME_FILE_MAX);
    kubeletdir_write(deep, "");
    cr_expect_eq(volume_tree_read(volume, &t, &err), -EFBIG);
    int rc = 0;
    for (unsigned i = 0; !rc && i <= VOLUME_BYTES_MAX / VOLUME_FILE_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        const struct volume_item item = {.name = name,
                                         .type = VOLUME_FILE,
                                         .size = VOLUME_FILE_MAX,
                                         .data = data};
        rc = volume_tree_add(&t, &item, &err);
        cr_expect_eq(rc, i < 16 ? 0 : -EFBIG, "%u", i);
    }
    volume_tree_fini(&t);
}

Test(volume_tree, names_are_judged)
{
    static const char *const bad[] = {"..", "a/../b", "/a", "a//b", "a/", "."};
    struct volume_tree t = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct volume_item item = {.name = bad[i]};
        cr_expect_eq(volume_tree_add(&t, &item, &err), -EINVAL, "%s", bad[i]);
    }
    const struct volume_item twice = {.name = "a"};
    cr_expect_eq(volume_tree_add(&t, &twice, &err), 0);
    cr_expect_eq(volume_tree_add(&t, &twice, &err), 0);
    cr_expect_eq(volume_tree_sort(&t, &err), -EINVAL);
    volume_tree_fini(&t);
}
