/* Of what kind a mount is, and which a remote is not given. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/mount.h"

#define POD "/var/lib/kubelet/pods/u-1/"

static const char *const allowed[] = {"/srv/data", "/opt/"};
static const struct mount_rules rules = {
    .kubelet_root = "/var/lib/kubelet",
    .allowed = allowed,
    .n_allowed = 2,
};

static int judge(const char *path, struct mount *ret, struct error *err)
{
    *ret = (struct mount){.container_path = "/in", .host_path = path};
    return mount_judge(&rules, "u-1", ret, err);
}

Test(mount, knows_kinds)
{
    static const struct {
        const char *path, *kind, *volume, *below;
    } good[] = {
        {POD "volumes/kubernetes.io~configmap/c", "configMap", "c", ""},
        {POD "volumes/kubernetes.io~configmap/c/", "configMap", "c", ""},
        {POD "volumes/kubernetes.io~secret/s/key", "secret", "s", "key"},
        {POD "volumes/kubernetes.io~projected/kube-api-access-x", "projected",
         "kube-api-access-x", ""},
        {POD "volumes/kubernetes.io~downward-api/d", "downwardAPI", "d", ""},
        {POD "volumes/kubernetes.io~empty-dir/e/a/b", "emptyDir", "e", "a/b"},
        {POD "volume-subpaths/c/app/0", "subPath", "c", "app/0"},
        {POD "etc-hosts", "hosts", "", ""},
        {POD "containers/app/1a2b3c4d", "termination log", "", ""},
        {"/srv/data", "hostPath", "", NULL},
        {"/srv//data/x", "hostPath", "", NULL},
        {"/opt/y", "hostPath", "", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct error err = {0};
        struct mount m;
        cr_assert_eq(judge(good[i].path, &m, &err), 0, "%s: %s", good[i].path,
                     err.text);
        cr_expect_str_eq(mount_kind_name(m.kind), good[i].kind);
        cr_expect_str_eq(m.volume, good[i].volume);
        cr_expect_eq(m.below == NULL, good[i].below == NULL);
        if (m.below && good[i].below)
            cr_expect_str_eq(m.below, good[i].below);
    }
}

Test(mount, refuses_the_rest_by_name)
{
    static const struct {
        const char *path;
        int code;
        const char *why;
    } bad[] = {
        {"/etc", EPERM, "is a hostPath"},
        {"/", EPERM, "is a hostPath"},
        {"/srv/database", EPERM, "is a hostPath"},
        {"/srv", EPERM, "is a hostPath"},
        {"/var/lib/kubelet", EPERM, "is the kubelet's own"},
        {"//var/lib/kubelet/pki/k.pem", EPERM, "is the kubelet's own"},
        {"/var/lib/kubelet/pods/u-2/etc-hosts", EPERM, "is of another pod"},
        {"/var/lib/kubelet/pods/u-11/etc-hosts", EPERM, "is of another pod"},
        {"/var/lib/kubelet/pods", EPERM, "is of another pod"},
        {POD, EPERM, "is nothing of a pod"},
        {POD "volumes", EPERM, "is a volume of "},
        {POD "volumes/kubernetes.io~csi/pvc-1/mount", EPERM,
         "is a volume of kubernetes.io~csi"},
        {POD "volumes/kubernetes.io~secret", EPERM, "does not name"},
        {POD "volume-subpaths/c/app", EPERM, "names no subPath"},
        {POD "volume-subpaths/c/app/0/etc", EPERM, "names no subPath"},
        {POD "etc-hosts/x", EPERM, "is nothing of a pod"},
        {POD "containers/app", EPERM, "is nothing of a pod"},
        {POD "plugins/x", EPERM, "is nothing of a pod"},
        {POD "volumes/kubernetes.io~secret/s/../../../../pki", EINVAL,
         "\"..\""},
        {"/srv/data/../../etc", EINVAL, "\"..\""},
        {"/srv/data/./x", EINVAL, "\"..\""},
        {"srv/data", EINVAL, "absolute"},
        {"", EINVAL, "absolute"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};
        struct mount m;
        cr_expect_eq(judge(bad[i].path, &m, &err), -bad[i].code, "%s",
                     bad[i].path);
        cr_expect(strstr(err.text, bad[i].why), "%s: %s", bad[i].path,
                  err.text);
    }
}

Test(mount, refuses_what_it_is_asked_to_do_with_it)
{
    struct error err = {0};
    struct mount m = {.container_path = "/in", .host_path = "", .image = true};
    cr_expect_eq(mount_judge(&rules, "u-1", &m, &err), -EPERM);
    cr_expect(strstr(err.text, "image volume"), "%s", err.text);
    for (uint32_t i = 0; i < 4; i++) {
        m = (struct mount){.container_path = "/in",
                           .host_path = POD "etc-hosts",
                           .propagation = i};
        cr_expect_eq(mount_judge(&rules, "u-1", &m, &err),
                     i <= MOUNT_FROM_HOST ? 0 : -EPERM, "%u", i);
    }
    for (uint32_t i = 0; i < 4; i++) {
        m = (struct mount){.container_path = "/in",
                           .host_path = "/srv/data/a",
                           .propagation = i};
        cr_expect_eq(mount_judge(&rules, "u-1", &m, &err),
                     i <= MOUNT_BOTH_WAYS ? 0 : -EPERM, "%u", i);
    }
    m = (struct mount){.container_path = "/a/../b",
                       .host_path = POD "etc-hosts"};
    cr_expect_eq(mount_judge(&rules, "u-1", &m, &err), -EINVAL);
    m.container_path = "/a";
    cr_expect_eq(mount_judge(&rules, "", &m, &err), -EPERM);
}

Test(mount, paths_have_a_cap)
{
    char path[MOUNT_PATH_MAX + 2];
    struct error err = {0};
    struct mount m;
    memset(path, 'a', sizeof path);
    memcpy(path, "/opt/", 5);
    path[MOUNT_PATH_MAX + 1] = '\0';
    cr_expect_eq(judge(path, &m, &err), -EINVAL);
    path[MOUNT_PATH_MAX] = '\0';
    cr_expect_eq(judge(path, &m, &err), 0, "%s", err.text);
}
