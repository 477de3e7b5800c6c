#include "advertiser/achieved/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"
#include "lib/base/mem.h"

/* --- names ---------------------------------------------------------------- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* As the API server draws it, and the 32 digits of a static pod. */
static bool uid_read(const char *text, size_t size,
                     char ret_uid[CGROUPS_UID_MAX + 1])
{
    if (size != 32 && size != 36)
        return false;
    for (size_t i = 0; i < size; i++) {
        bool dash = size == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash ? text[i] != '-' && text[i] != '_' : !is_hex(text[i]))
            return false;
        ret_uid[i] = dash ? '-' : text[i];
    }
    ret_uid[size] = '\0';
    return true;
}

static size_t size_without(const char *name, const char *suffix)
{
    size_t size = strlen(name), n = strlen(suffix);
    return size > n && strcmp(name + size - n, suffix) == 0 ? size - n : size;
}

bool cgroups_pod_uid(const char *name, char ret_uid[CGROUPS_UID_MAX + 1])
{
    static const size_t sizes[] = {36, 32};
    char uid[CGROUPS_UID_MAX + 1];
    size_t size = size_without(name, ".slice");
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        if (size < n + 3 || memcmp(name + size - n - 3, "pod", 3) != 0 ||
            (size > n + 3 && name[size - n - 4] != '-') ||
            !uid_read(name + size - n, n, uid))
            continue;
        memcpy(ret_uid, uid, sizeof uid);
        return true;
    }
    return false;
}

bool cgroups_container_id(const char *name, char ret_id[CGROUPS_ID_MAX + 1])
{
    size_t size = size_without(name, ".scope");
    if (size < CGROUPS_ID_MAX)
        return false;
    const char *id = name + size - CGROUPS_ID_MAX;
    if (id > name && (id[-1] != '-' || strstr(name, "conmon")))
        return false; /* CRI-O's monitor of a container is beside it */
    for (size_t i = 0; i < CGROUPS_ID_MAX; i++)
        if (!is_hex(id[i]))
            return false;
    memcpy(ret_id, id, CGROUPS_ID_MAX);
    ret_id[CGROUPS_ID_MAX] = '\0';
    return true;
}

/* --- files ---------------------------------------------------------------- */

/* The name that tells what is in effect, and that of a kernel without it. */
struct names {
    const char *cpus[2], *mems[2];
};
static const struct names v1 = {
    {"cpuset.effective_cpus", "cpuset.cpus"},
    {"cpuset.effective_mems", "cpuset.mems"},
};
static const struct names v2 = {
    {"cpuset.cpus.effective", NULL},
    {"cpuset.mems.effective", NULL},
};

static bool file_parse(int fd, struct index_set *ret_set)
{
    char text[INDEX_SET_TEXT_MAX];
    size_t size = 0;
    ssize_t n;
    while (size < sizeof text &&
           (n = read(fd, text + size, sizeof text - size)) > 0)
        size += (size_t)n;
    return size > 0 && size < sizeof text &&
           index_set_parse(text, size, ret_set, NULL) == 0 &&
           !index_set_is_empty(ret_set);
}

/* Of the group, or of the nearest above it that has the controller. */
static bool set_read(int dir, const char *const names[2],
                     struct index_set *ret_set)
{
    char path[3 * CGROUPS_DEPTH_MAX + 64];
    for (int above = 0; above < CGROUPS_DEPTH_MAX; above++)
        for (int i = 0; i < 2 && names[i]; i++) {
            int at = 0;
            for (int k = 0; k < above; k++, at += 3)
                memcpy(path + at, "../", 3);
            (void)snprintf(path + at, sizeof path - (size_t)at, "%s", names[i]);
            cleanup_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0)
                return file_parse(fd, ret_set);
        }
    return false;
}

/* --- the walk ------------------------------------------------------------- */

struct walk {
    struct cgroups *groups;
    const struct names *names;
    size_t n_seen;
};

static void add_container(struct walk *w, int dir, const char *uid,
                          const char *id)
{
    struct cgroups *g = w->groups;
    if (g->n == CGROUPS_CONTAINERS_MAX)
        return;
    g->containers = xgrow(g->containers, g->n, &g->cap, sizeof *g->containers);
    struct cgroup_container *c = &g->containers[g->n++];
    *c = (struct cgroup_container){0};
    (void)snprintf(c->uid, sizeof c->uid, "%s", uid);
    (void)snprintf(c->id, sizeof c->id, "%s", id);
    c->known = set_read(dir, w->names->cpus, &c->cpus) &&
               set_read(dir, w->names->mems, &c->mems);
}

static void walk_group(struct walk *w, int parent, const char *name,
                       const char *uid, unsigned depth);

/* `dir` is closed. */
static void walk_below(struct walk *w, int dir, const char *uid, unsigned depth)
{
    DIR *d = fdopendir(dir);
    if (!d) {
        (void)close(dir); /* nothing was written to it */
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' &&
            (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
            walk_group(w, dirfd(d), e->d_name, uid, depth + 1);
    (void)closedir(d); /* nothing was written to it */
}

/* What is below a container is its own. */
static void walk_group(struct walk *w, int parent, const char *name,
                       const char *uid, unsigned depth)
{
    char id[CGROUPS_ID_MAX + 1], pod[CGROUPS_UID_MAX + 1];
    if (depth > CGROUPS_DEPTH_MAX || ++w->n_seen > CGROUPS_SEEN_MAX)
        return;
    int dir = openat(parent, name,
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return; /* it has gone meanwhile */
    if (cgroups_container_id(name, id)) {
        add_container(w, dir, uid, id);
        (void)close(dir); /* nothing was written to it */
        return;
    }
    walk_below(w, dir, cgroups_pod_uid(name, pod) ? pod : uid, depth);
}

static int container_order(const void *a, const void *b)
{
    const struct cgroup_container *x = a, *y = b;
    int order = strcmp(x->uid, y->uid);
    return order ? order : strcmp(x->id, y->id);
}

/* The top of version 2, or of the cpuset of version 1. */
static int open_top(const char *sysroot, const struct names **ret_names,
                    struct error *err)
{
    cleanup_free char *two = xasprintf("%s/sys/fs/cgroup/cgroup.controllers",
                                       sysroot);
    const struct names *names = access(two, F_OK) == 0 ? &v2 : &v1;
    cleanup_free char *path = xasprintf("%s/sys/fs/cgroup%s", sysroot,
                                        names == &v1 ? "/cpuset" : "");
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", path);
    *ret_names = names;
    return fd;
}

int cgroups_look(const char *sysroot, struct cgroups *ret_groups,
                 struct error *err)
{
    struct cgroups found = {0};
    struct walk w = {.groups = &found};
    int top = open_top(sysroot, &w.names, err);
    if (top < 0)
        return top;
    (void)set_read(top, w.names->mems, &found.mems); /* none: not known */
    walk_below(&w, top, "", 0);
    if (found.n)
        qsort(found.containers, found.n, sizeof *found.containers,
              container_order);
    *ret_groups = found;
    return 0;
}

void cgroups_fini(struct cgroups *g)
{
    free(g->containers);
    *g = (struct cgroups){0};
}

/* --- what was found ------------------------------------------------------- */

/* The one with the most, as its sandbox has. */
static size_t find_widest(const struct cgroup_container *c, size_t n)
{
    size_t widest = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t count = index_set_count(&c[i].cpus) +
                       index_set_count(&c[i].mems);
        if (count > most) {
            most = count;
            widest = i;
        }
    }
    return widest;
}

/* How many there are of a pod, and the first. */
static size_t find_pod(const struct cgroups *g, const char *uid,
                       const struct cgroup_container **ret_first)
{
    size_t n = 0,
           first = lower_bound(g->n, i, strcmp(g->containers[i].uid, uid) < 0);
    while (first + n < g->n && strcmp(g->containers[first + n].uid, uid) == 0)
        n++;
    *ret_first = n ? &g->containers[first] : NULL;
    return n;
}

bool cgroups_has_pod(const struct cgroups *g, const char *uid)
{
    const struct cgroup_container *first;
    return find_pod(g, uid, &first) > 0;
}

bool cgroups_of_pod(const struct cgroups *g, const char *uid,
                    struct index_set *ret_cpus, struct index_set *ret_mems)
{
    struct index_set cpus = {0}, mems = {0};
    const struct cgroup_container *c;
    size_t n = find_pod(g, uid, &c);
    if (n < 2) /* none, or its sandbox alone */
        return false;
    size_t sandbox = find_widest(c, n);
    for (size_t i = 0; i < n; i++) {
        if (!c[i].known)
            return false;
        if (i == sandbox)
            continue;
        index_set_unite(&cpus, &c[i].cpus);
        index_set_unite(&mems, &c[i].mems);
    }
    *ret_cpus = cpus;
    *ret_mems = mems;
    return true;
}

const struct cgroup_container *cgroups_find(const struct cgroups *g,
                                            const char *id)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->containers[i].id, id) == 0)
            return &g->containers[i];
    return NULL;
}
