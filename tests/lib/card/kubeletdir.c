#include "tests/lib/card/kubeletdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/tree.h"

static atomic_uint version;

static void must(int rc)
{
    if (rc < 0) {
        perror("kubeletdir");
        abort();
    }
}

/* All folders above the last name. */
static void make_above(const char *path)
{
    cleanup_free char *copy = xstrdup(path);
    for (char *at = copy + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST)
            must(-1);
    }
}

void kubeletdir_write(const char *path, const char *text)
{
    make_above(path);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                             0644);
    must(fd);
    must(write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1);
}

void kubeletdir_pod(const char *root, const char *uid)
{
    cleanup_free char *hosts = xasprintf("%s/pods/%s/etc-hosts", root, uid);
    cleanup_free char *log = xasprintf("%s/pods/%s/containers/main/1a2b", root,
                                       uid);
    kubeletdir_write(hosts, "127.0.0.1 localhost\n");
    kubeletdir_write(log, "");
    must(chmod(log, 0666));
}

static void link_names(const char *top, const char *data)
{
    cleanup_free char *folder = xasprintf("%s/%s", top, data);
    DIR *list = opendir(folder);
    must(list ? 0 : -1);
    for (struct dirent *e; (e = readdir(list));) {
        cleanup_free char *name = xasprintf("%s/%s", top, e->d_name);
        cleanup_free char *target = xasprintf("..data/%s", e->d_name);
        if (e->d_name[0] != '.' && symlink(target, name) != 0 &&
            errno != EEXIST)
            must(-1);
    }
    (void)closedir(list);
}

/* Names that lead nowhere any more, and the folder of before. */
static void clean(const char *top, const char *before)
{
    DIR *list = opendir(top);
    must(list ? 0 : -1);
    for (struct dirent *e; (e = readdir(list));) {
        cleanup_free char *name = xasprintf("%s/%s", top, e->d_name);
        if (e->d_name[0] != '.' && access(name, F_OK) != 0)
            must(unlink(name));
    }
    (void)closedir(list);
    cleanup_free char *old = xasprintf("%s/%s", top, before);
    if (before[0])
        must(tree_remove(AT_FDCWD, old, old, NULL));
}

void kubeletdir_update(const char *root, const char *uid, const char *plugin,
                       const char *volume, const char *const *files)
{
    char before[256] = "";
    cleanup_free char *top = xasprintf("%s/pods/%s/volumes/kubernetes.io~%s/%s",
                                       root, uid, plugin, volume);
    cleanup_free char *data = xasprintf("..2026_11_23_00_00_00.%u",
                                        atomic_fetch_add(&version, 1));
    cleanup_free char *link = xasprintf("%s/..data", top);
    cleanup_free char *next = xasprintf("%s/..data_tmp", top);
    cleanup_free char *folder = xasprintf("%s/%s/", top, data);
    make_above(folder);
    for (; *files; files++) {
        const char *text = strchr(*files, '=');
        cleanup_free char *path = xasprintf("%s%.*s", folder,
                                            (int)(text - *files), *files);
        kubeletdir_write(path, text + 1);
    }
    ssize_t n = readlink(link, before, sizeof before - 1);
    before[n > 0 ? n : 0] = '\0';
    must(symlink(data, next));
    must(rename(next, link));
    link_names(top, data);
    clean(top, before);
}

void kubeletdir_empty(const char *root, const char *uid, const char *volume)
{
    cleanup_free char *path = xasprintf(
        "%s/pods/%s/volumes/kubernetes.io~empty-dir/%s/", root, uid, volume);
    make_above(path);
    must(chmod(path, 0777));
}

void kubeletdir_end(const char *root, const char *uid)
{
    cleanup_free char *path = xasprintf("%s/pods/%s", root, uid);
    must(tree_remove(AT_FDCWD, path, path, NULL));
}
