/* A tree of files that goes, and says what does not. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/tree.h"
#include "tests/lib/tmpdir.h"

/* What stays, as what is immutable does; NULL none. */
static const char *stays;

int unlinkat(int dir, const char *name, int flags)
{
    static int (*real)(int, const char *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "unlinkat");
    if (stays && strcmp(name, stays) == 0) {
        errno = EPERM;
        return -1;
    }
    return real(dir, name, flags);
}

static void make(const char *top, const char *name, bool folder)
{
    cleanup_free char *path = xasprintf("%s/%s", top, name);
    if (folder) {
        cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
        return;
    }
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    cr_assert_eq(fclose(f), 0);
}

static int remove_tree(const char *top, struct error *err)
{
    cleanup_fd int above = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(above, 0);
    return tree_remove(above, "t", "the/tree", err);
}

static void says(const char *name, const char *what)
{
    char *top = tmpdir_create();
    struct error err = {0};
    make(top, "t", true);
    make(top, "t/folder", true);
    make(top, "t/folder/file", false);
    stays = name;
    cr_expect_eq(remove_tree(top, &err), -EPERM);
    cr_expect_str_eq(err.text, what);
    stays = NULL;
    cr_expect_eq(remove_tree(top, &err), 0, "%s", err.text);
    cr_expect_eq(remove_tree(top, &err), 0, "it may be gone");
    tmpdir_remove(top);
}

Test(tree, what_is_immutable_is_said)
{
    says("file", "the/tree: 'file' in it: Operation not permitted");
    says("folder", "the/tree: 'folder' in it: Operation not permitted");
}
