#include "router/wire/mount.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

/* What the kubelet calls the folders of volumes that a remote can have. */
static const struct {
    const char *plugin;
    enum mount_kind kind;
} plugins[] = {
    {"kubernetes.io~configmap", MOUNT_CONFIG_MAP},
    {"kubernetes.io~secret", MOUNT_SECRET},
    {"kubernetes.io~projected", MOUNT_PROJECTED},
    {"kubernetes.io~downward-api", MOUNT_DOWNWARD_API},
    {"kubernetes.io~empty-dir", MOUNT_EMPTY_DIR},
};

const char *mount_kind_name(enum mount_kind kind)
{
    static const char *const names[] = {
        [MOUNT_CONFIG_MAP] = "configMap",
        [MOUNT_SECRET] = "secret",
        [MOUNT_PROJECTED] = "projected",
        [MOUNT_DOWNWARD_API] = "downwardAPI",
        [MOUNT_EMPTY_DIR] = "emptyDir",
        [MOUNT_SUBPATH] = "subPath",
        [MOUNT_HOSTS] = "hosts",
        [MOUNT_TERMINATION_LOG] = "termination log",
        [MOUNT_HOST_PATH] = "hostPath",
    };
    return names[kind];
}

/* --- paths ---------------------------------------------------------------- */

struct segment {
    const char *data;
    size_t size;
};

/* The next name of a path, behind any slashes; its size is 0 at the end. */
static struct segment take_segment(const char **path)
{
    const char *begin = *path + strspn(*path, "/");
    struct segment s = {begin, strcspn(begin, "/")};
    *path = s.data + s.size;
    return s;
}

static bool segment_is(struct segment s, const char *name)
{
    return strlen(name) == s.size && memcmp(s.data, name, s.size) == 0;
}

static bool same(struct segment a, struct segment b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

bool mount_path_valid(const char *path)
{
    if (path[0] != '/')
        return false;
    for (struct segment s; (s = take_segment(&path)).size > 0;)
        if (segment_is(s, ".") || segment_is(s, ".."))
            return false;
    return true;
}

/* What of `path` is below `folder`, without slashes before it; NULL when it is
 * neither that nor below. */
static const char *below(const char *path, const char *folder)
{
    struct segment s;
    while ((s = take_segment(&folder)).size > 0)
        if (!same(take_segment(&path), s))
            return NULL;
    return path + strspn(path, "/");
}

bool mount_path_allowed(const struct mount_rules *rules, const char *path)
{
    for (size_t i = 0; i < rules->n_allowed && mount_path_valid(path); i++)
        if (below(path, rules->allowed[i]))
            return true;
    return false;
}

/* --- judging -------------------------------------------------------------- */

static int refuse(const struct mount *m, const char *why, struct error *err)
{
    return error_set(err, EPERM, "mount of \"%.100s\" at \"%.100s\": %s",
                     m->host_path, m->container_path, why);
}

static int judge_form(const struct mount *m, struct error *err)
{
    const char *const paths[] = {m->host_path, m->container_path};
    if (m->image)
        return refuse(m, "is an image volume, which a remote does not have",
                      err);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (strlen(paths[i]) > MOUNT_PATH_MAX || !mount_path_valid(paths[i]))
            return error_set(err, EINVAL,
                             "mount of \"%.100s\" at \"%.100s\": is no "
                             "absolute path of at most %d bytes without \".\" "
                             "and \"..\"",
                             m->host_path, m->container_path, MOUNT_PATH_MAX);
    if (m->propagation > MOUNT_BOTH_WAYS)
        return refuse(m, "has a mountPropagation that is not known", err);
    return 0;
}

static int take_name(struct mount *m, struct segment name, struct error *err)
{
    if (name.size == 0 || name.size >= sizeof m->volume)
        return refuse(m, "does not name a volume", err);
    (void)snprintf(m->volume, sizeof m->volume, "%.*s", (int)name.size,
                   name.data);
    return 0;
}

static int judge_volume(struct mount *m, const char *rest, struct error *err)
{
    struct segment plugin = take_segment(&rest);
    for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
        if (!segment_is(plugin, plugins[i].plugin))
            continue;
        m->kind = plugins[i].kind;
        int r = take_name(m, take_segment(&rest), err);
        m->below = rest + strspn(rest, "/");
        return r;
    }
    cleanup_free char *why =
        xasprintf("is a volume of %.*s, which a remote does not have; it can "
                  "have configMap, secret, projected, downwardAPI and emptyDir",
                  (int)(plugin.size < 80 ? plugin.size : 80), plugin.data);
    return refuse(m, why, err);
}

/* Two names and no more: CONTAINER/NUMBER, CONTAINER/ID. */
static bool is_pair(const char *rest)
{
    bool first = take_segment(&rest).size > 0;
    bool second = take_segment(&rest).size > 0;
    return first && second && take_segment(&rest).size == 0;
}

static int judge_file(struct mount *m, struct segment kind, const char *rest,
                      struct error *err)
{
    if (segment_is(kind, "volume-subpaths")) {
        m->kind = MOUNT_SUBPATH;
        int r = take_name(m, take_segment(&rest), err);
        m->below = rest + strspn(rest, "/");
        return r < 0 || is_pair(rest) ? r : refuse(m, "names no subPath", err);
    }
    m->below = "";
    if (segment_is(kind, "etc-hosts") && take_segment(&rest).size == 0) {
        m->kind = MOUNT_HOSTS;
        return 0;
    }
    if (segment_is(kind, "containers") && is_pair(rest)) {
        m->kind = MOUNT_TERMINATION_LOG;
        return 0;
    }
    return refuse(m, "is nothing of a pod that a remote can have", err);
}

static int judge_own(const char *uid, struct mount *m, const char *rest,
                     struct error *err)
{
    if (!segment_is(take_segment(&rest), "pods"))
        return refuse(m, "is the kubelet's own", err);
    if (!*uid || !segment_is(take_segment(&rest), uid))
        return refuse(m, "is of another pod", err);
    struct segment kind = take_segment(&rest);
    return segment_is(kind, "volumes") ? judge_volume(m, rest, err)
                                       : judge_file(m, kind, rest, err);
}

int mount_judge(const struct mount_rules *rules, const char *uid,
                struct mount *m, struct error *err)
{
    int r = judge_form(m, err);
    if (r < 0)
        return r;
    m->volume[0] = '\0';
    const char *rest = below(m->host_path, rules->kubelet_root);
    if (rest && m->propagation == MOUNT_BOTH_WAYS)
        return refuse(m,
                      "has mountPropagation Bidirectional; what is mounted on "
                      "a remote cannot be seen here",
                      err);
    if (rest)
        return judge_own(uid, m, rest, err);
    m->kind = MOUNT_HOST_PATH;
    m->below = NULL;
    if (mount_path_allowed(rules, m->host_path))
        return 0;
    return refuse(m,
                  "is a hostPath, which on a remote is the remote's own path; "
                  "its operator would have to give it with --host-paths",
                  err);
}
