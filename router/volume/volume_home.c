#include "router/volume/volume_home.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "router/volume/volume_tree.h"

#define PLUGIN "kubernetes.io~"

enum {
    FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    /* looked at for a subPath: the kubelet's, nobody else writes there */
    PART_FOLDERS_MAX = 4096,
};

DEFINE_CLEANUP(dir, DIR *, closedir)

void volume_home_fini(struct volume_home *h)
{
    free(h->path);
    free(h->name);
    free(h->of);
    *h = (struct volume_home){0};
}

/* Plugins of volumes that reach remotes, in the kubelet's folders; where their
 * files are: the kubelet has those of the same ones in memory. */
static const struct plugin {
    const char *name;
    enum volume_form form;
    bool memory;
} plugins[] = {
    {"configmap", VOLUME_AS_TREE, false},
    {"secret", VOLUME_AS_TREE, true},
    {"projected", VOLUME_AS_TREE, true},
    {"downward-api", VOLUME_AS_TREE, true},
    {"empty-dir", VOLUME_AS_EMPTY, false},
};

static const struct plugin *plugin_find(const char *folder)
{
    size_t len = strlen(PLUGIN);
    for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
        if (strncmp(folder, PLUGIN, len) == 0 &&
            strcmp(folder + len, plugins[i].name) == 0)
            return &plugins[i];
    return NULL;
}

static const char *plugin_of(enum mount_kind kind)
{
    switch (kind) {
    case MOUNT_CONFIG_MAP:
        return "configmap";
    case MOUNT_SECRET:
        return "secret";
    case MOUNT_PROJECTED:
        return "projected";
    case MOUNT_DOWNWARD_API:
        return "downward-api";
    case MOUNT_EMPTY_DIR:
        return "empty-dir";
    default:
        return NULL;
    }
}

/* --- what is at home -------------------------------------------------------- */

/* Whose what a container fills is. */
static int look_owner(struct volume_home *h, struct error *err)
{
    struct stat st;
    if (lstat(h->path, &st) != 0)
        return error_errno(err, errno, "%s", h->path);
    bool folder = h->form == VOLUME_AS_EMPTY;
    if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
        return error_set(err, EINVAL, "%s: is no %s", h->path,
                         folder ? "folder" : "file");
    h->mode = st.st_mode & (folder ? 03777 : 0777);
    h->uid = st.st_uid;
    h->gid = st.st_gid;
    return 0;
}

/* The kubelet mounts a tmpfs of the size that it may have. */
static int look_memory(struct volume_home *h, struct error *err)
{
    struct statfs fs;
    struct stat st, above;
    cleanup_free char *parent = xasprintf("%s/..", h->path);
    if (lstat(h->path, &st) != 0 || lstat(parent, &above) != 0 ||
        statfs(h->path, &fs) != 0)
        return error_errno(err, errno, "%s", h->path);
    h->memory = fs.f_type == TMPFS_MAGIC && st.st_dev != above.st_dev;
    h->limit = h->memory ? (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize : 0;
    return 0;
}

static int look_folder(const char *pod, const struct plugin *plugin,
                       const char *volume, struct volume_home *h,
                       struct error *err)
{
    h->form = plugin->form;
    h->memory = plugin->memory;
    h->name = xasprintf("volumes/" PLUGIN "%s/%s", plugin->name, volume);
    h->path = xasprintf("%s/%s", pod, h->name);
    if (h->form != VOLUME_AS_EMPTY)
        return 0;
    int rc = look_memory(h, err);
    return rc ? rc : look_owner(h, err);
}

/* --- subPaths ----------------------------------------------------------------- */

/* The plugin of that volume of the pod; NULL: it has none in its folders. */
static int find_plugin(const char *pod, const char *volume, char ret_name[256],
                       struct error *err)
{
    cleanup_free char *top = xasprintf("%s/volumes", pod);
    cleanup_with(dir) DIR *list = opendir(top);
    if (!list)
        return error_errno(err, errno, "%s", top);
    for (struct dirent *e; (e = readdir(list));) {
        struct stat st;
        cleanup_free char *path = xasprintf("%s/%s", e->d_name, volume);
        if (e->d_name[0] == '.' ||
            fstatat(dirfd(list), path, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        (void)snprintf(ret_name, 256, "%s", e->d_name);
        return 0;
    }
    return error_set(err, EPERM,
                     "volume %s: a subPath of a hostPath, which no remote "
                     "can be given",
                     volume);
}

/* The kubelet has made the folder in its own emptyDir, and mounted it: which
 * one it is, tells its number.  `path` becomes the way to it, "/a/b". */
static bool find_folder(int above, const char *name, const struct stat *wanted,
                        unsigned *left, char path[VOLUME_NAME_MAX + 1])
{
    size_t len = strlen(path);
    int top = openat(above, name, FOLDER);
    cleanup_with(dir) DIR *list = top < 0 ? NULL : fdopendir(top);
    for (struct dirent *e; list && (e = readdir(list)) && --*left > 0;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        int n = snprintf(path + len, VOLUME_NAME_MAX + 1 - len, "/%s",
                         e->d_name);
        if (len + (size_t)n <= VOLUME_NAME_MAX &&
            ((st.st_ino == wanted->st_ino && st.st_dev == wanted->st_dev) ||
             find_folder(dirfd(list), e->d_name, wanted, left, path)))
            return true;
        path[len] = '\0';
    }
    return false;
}

static int look_part(const char *pod, const struct mount *m,
                     struct volume_home *h, struct volume_home *whole,
                     struct error *err)
{
    struct stat st;
    char path[VOLUME_NAME_MAX + 1] = "";
    unsigned left = PART_FOLDERS_MAX;
    int rc = look_folder(pod, plugin_find(PLUGIN "empty-dir"), m->volume, whole,
                         err);
    if (rc)
        return rc;
    h->form = VOLUME_AS_PART;
    h->memory = true;
    h->path = xasprintf("%s/volume-subpaths/%s/%s", pod, m->volume, m->below);
    h->name = xasprintf("volumes/" PLUGIN "empty-dir/.subpaths/%s/%s",
                        m->volume, m->below);
    if (!volume_name_ok(h->name))
        return error_set(err, EINVAL, "%s: is no path of a subPath", h->path);
    if (lstat(h->path, &st) != 0)
        return error_errno(err, errno, "%s", h->path);
    if (!S_ISDIR(st.st_mode) ||
        !find_folder(AT_FDCWD, whole->path, &st, &left, path))
        return error_set(err, EPERM,
                         "volume %s: a subPath of an emptyDir, which is no "
                         "folder in it, so no remote can be given it",
                         m->volume);
    h->mode = st.st_mode & 03777;
    h->uid = st.st_uid;
    h->gid = st.st_gid;
    h->of = xasprintf("%s/%s%s", whole->memory ? "memory" : "disk", whole->name,
                      path);
    return 0;
}

static int look_subpath(const char *pod, const struct mount *m,
                        struct volume_home *h, struct volume_home *whole,
                        struct error *err)
{
    char folder[256];
    struct stat st;
    int rc = find_plugin(pod, m->volume, folder, err);
    const struct plugin *plugin = rc ? NULL : plugin_find(folder);
    if (rc)
        return rc;
    if (!plugin)
        return error_set(err, EPERM,
                         "volume %s: a subPath of %s, which no remote can be "
                         "given",
                         m->volume, folder);
    if (plugin->form == VOLUME_AS_EMPTY)
        return look_part(pod, m, h, whole, err);
    h->memory = plugin->memory;
    h->name = xasprintf("volume-subpaths/%s/%s", m->volume, m->below);
    h->path = xasprintf("%s/%s", pod, h->name);
    if (!volume_name_ok(h->name))
        return error_set(err, EINVAL, "%s: is no path of a subPath", h->path);
    if (lstat(h->path, &st) != 0)
        return error_errno(err, errno, "%s", h->path);
    if (S_ISLNK(st.st_mode))
        return error_set(err, EINVAL, "%s: is a link", h->path);
    h->form = S_ISDIR(st.st_mode) ? VOLUME_AS_TREE : VOLUME_AS_FILE;
    return 0;
}

/* --- a mount ------------------------------------------------------------------ */

/* "pods/UID/" is in the path of what is the pod's, and `below` at its end. */
static int look_file(const char *pod, const struct mount *m,
                     struct volume_home *h, struct error *err)
{
    size_t len = strlen(pod);
    h->form = m->kind == MOUNT_HOSTS ? VOLUME_AS_FILE : VOLUME_AS_OUTPUT;
    if (strncmp(m->host_path, pod, len) != 0 || m->host_path[len] != '/' ||
        !volume_name_ok(m->host_path + len + 1))
        return error_set(err, EINVAL, "%s: is not below %s", m->host_path, pod);
    h->path = xstrdup(m->host_path);
    h->name = xstrdup(m->host_path + len + 1);
    return look_owner(h, err);
}

int volume_home_look(const char *kubelet_root, const char *uid,
                     const struct mount *m, struct volume_home *ret_home,
                     struct volume_home *ret_whole, struct error *err)
{
    cleanup_free char *pod = xasprintf("%s/pods/%s", kubelet_root, uid);
    struct volume_home h = {0}, whole = {0};
    int rc = 0;
    if (m->kind == MOUNT_HOST_PATH) {
        h.form = VOLUME_AS_PATH;
        h.path = xstrdup(m->host_path);
        h.name = xstrdup("");
    } else if (m->kind == MOUNT_SUBPATH) {
        rc = look_subpath(pod, m, &h, &whole, err);
    } else if (plugin_of(m->kind)) {
        cleanup_free char *folder = xasprintf(PLUGIN "%s", plugin_of(m->kind));
        rc = m->below && m->below[0]
                 ? error_set(err, EPERM, "volume %s: a part of it", m->volume)
                 : look_folder(pod, plugin_find(folder), m->volume, &h, err);
    } else {
        rc = look_file(pod, m, &h, err);
    }
    if (rc) {
        volume_home_fini(&h);
        volume_home_fini(&whole);
        return rc;
    }
    *ret_home = h;
    *ret_whole = whole;
    return 0;
}

/* --- a pod -------------------------------------------------------------------- */

/* The first volume of a plugin; "" when it has none. */
static void first_volume(int dir, const char *folder, char ret_name[256])
{
    int fd = openat(dir, folder, FOLDER);
    cleanup_with(dir) DIR *list = fd < 0 ? NULL : fdopendir(fd);
    ret_name[0] = '\0';
    for (struct dirent *e; list && (e = readdir(list));)
        if (e->d_name[0] != '.') {
            (void)snprintf(ret_name, 256, "%s", e->d_name);
            return;
        }
}

/* "kubernetes.io~csi" is the folder of kubernetes.io/csi. */
static int refuse(const char *folder, const char *volume, struct error *err)
{
    cleanup_free char *plugin = xstrdup(folder);
    char *tilde = strchr(plugin, '~');
    if (tilde)
        *tilde = '/';
    return error_set(err, EPERM,
                     "volume %.200s: is of %.100s, which no remote can be "
                     "given: only configMap, secret, projected, downwardAPI, "
                     "emptyDir and hostPath are",
                     volume, plugin);
}

static int check_folder(const char *top, bool devices, struct error *err)
{
    cleanup_with(dir) DIR *list = opendir(top);
    if (!list)
        return errno == ENOENT ? 0 : error_errno(err, errno, "%s", top);
    for (struct dirent *e; (e = readdir(list));) {
        char volume[256];
        if (e->d_name[0] == '.' || (!devices && plugin_find(e->d_name)))
            continue;
        first_volume(dirfd(list), e->d_name, volume);
        if (volume[0])
            return refuse(e->d_name, volume, err);
    }
    return 0;
}

bool volume_home_in_use(const char *kubelet_root, const char *uid)
{
    cleanup_free char *top = xasprintf("%s/pods/%s/volumes", kubelet_root, uid);
    cleanup_with(dir) DIR *list = opendir(top);
    for (struct dirent *e; list && (e = readdir(list));) {
        char volume[256];
        if (e->d_name[0] == '.')
            continue;
        first_volume(dirfd(list), e->d_name, volume);
        if (volume[0])
            return true;
    }
    return false;
}

int volume_home_check(const char *kubelet_root, const char *uid,
                      struct error *err)
{
    cleanup_free char *volumes = xasprintf("%s/pods/%s/volumes", kubelet_root,
                                           uid);
    cleanup_free char *devices = xasprintf("%s/pods/%s/volumeDevices",
                                           kubelet_root, uid);
    if (!volume_name_ok(uid) || strchr(uid, '/'))
        return error_set(err, EINVAL, "pod uid \"%.80s\": is no name", uid);
    int rc = check_folder(volumes, false, err);
    return rc ? rc : check_folder(devices, true, err);
}
