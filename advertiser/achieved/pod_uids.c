#include "advertiser/achieved/pod_uids.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/lower_bound.h"

/* None of the three has a '_'.  The UID of a pod that the kubelet has from a
 * file is another than the API server's, which nobody here knows. */
bool pod_uid_read(const char *name, struct pod_uid *ret_uid)
{
    const char *first = strchr(name, '_');
    const char *second = first ? strchr(first + 1, '_') : NULL;
    struct pod_uid u;
    if (!second || first == name || second == first + 1 || first - name > 63 ||
        second - first - 1 > POD_UIDS_NAME_MAX ||
        strlen(second + 1) != CGROUPS_UID_MAX || strchr(second + 1, '_'))
        return false;
    size_t size = (size_t)(second - name);
    memcpy(u.pod, name, size);
    u.pod[size] = '\0';
    memcpy(u.uid, second + 1, sizeof u.uid);
    *ret_uid = u;
    return true;
}

static int pod_order(const void *a, const void *b)
{
    const struct pod_uid *x = a, *y = b;
    int order = strcmp(x->pod, y->pod);
    return order ? order : strcmp(x->uid, y->uid);
}

void pod_uids_look(const char *dir, struct pod_uids *ret_uids)
{
    struct pod_uids u = {0};
    struct pod_uid one;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && u.n < POD_UIDS_MAX && (e = readdir(d));) {
        if (!pod_uid_read(e->d_name, &one))
            continue;
        u.items = xgrow(u.items, u.n, &u.cap, sizeof *u.items);
        u.items[u.n++] = one;
    }
    if (d)
        (void)closedir(d); /* only read from */
    if (u.n)
        qsort(u.items, u.n, sizeof *u.items, pod_order);
    *ret_uids = u;
}

void pod_uids_fini(struct pod_uids *u)
{
    free(u->items);
    *u = (struct pod_uids){0};
}

const char *pod_uids_find(const struct pod_uids *u, const char *namespace,
                          const char *name, const struct cgroups *groups)
{
    cleanup_free char *pod = xasprintf("%s_%s", namespace, name);
    size_t n = 0,
           first = lower_bound(u->n, i, strcmp(u->items[i].pod, pod) < 0);
    const char *found = NULL;
    size_t n_found = 0;
    while (first + n < u->n && strcmp(u->items[first + n].pod, pod) == 0)
        n++;
    for (size_t i = first; i < first + n; i++)
        if (cgroups_has_pod(groups, u->items[i].uid)) {
            found = u->items[i].uid;
            n_found++;
        }
    return n_found == 1 ? found : NULL;
}
