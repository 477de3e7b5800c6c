/* Control groups as kubelets and runtimes lay them out. */
#include "advertiser/achieved/cgroups.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

#define UID "6b0c0001-1111-2222-3333-444455556666"
#define UID_ "6b0c0001_1111_2222_3333_444455556666"
#define STATIC_UID "0123456789abcdef0123456789abcdef"
#define HEX16 "0123456789abcdef"
#define ID(digit) digit "123456789abcdef" HEX16 HEX16 HEX16

/* With the folders above it. */
static void put(const char *root, const char *path, const char *text)
{
    cleanup_free char *whole = xasprintf("%s/sys/fs/cgroup/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        (void)mkdir(whole, 0755); /* it may be there */
        *slash = '/';
    }
    FILE *f = fopen(whole, "we");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", whole);
}

static void group(const char *root, bool two, const char *path,
                  const char *cpus, const char *mems)
{
    cleanup_free char *c = xasprintf("%s/cpuset.%s", path,
                                     two ? "cpus.effective" : "cpus");
    cleanup_free char *m = xasprintf("%s/cpuset.%s", path,
                                     two ? "mems.effective" : "effective_mems");
    put(root, c, cpus);
    put(root, m, mems);
}

static void expect_pod(const struct cgroups *g, const char *uid,
                       const char *cpus, const char *mems)
{
    struct index_set c, m;
    cleanup_str struct str text = STR_INIT(1024);
    cr_assert(cgroups_of_pod(g, uid, &c, &m), "%s", uid);
    index_set_format(&c, &text);
    str_add_c(&text, ' ');
    index_set_format(&m, &text);
    cleanup_free char *wanted = xasprintf("%s %s", cpus, mems);
    cr_expect_str_eq(str_text(&text), wanted);
}

static void look(const char *root, struct cgroups *ret)
{
    struct error err = {0};
    cr_assert_eq(cgroups_look(root, ret, &err), 0, "%s", err.text);
}

Test(cgroups, of_version_1_by_cgroupfs)
{
    char *root = tmpdir_create();
    struct cgroups g;
    struct index_set c, m;
    group(root, false, "cpuset", "0-7\n", "0-1\n");
    group(root, false, "cpuset/sub/kubepods/pod" UID "/" ID("0"), "0-7\n",
          "0-1\n");
    group(root, false, "cpuset/sub/kubepods/pod" UID "/" ID("1"), "2-3\n",
          "0\n");
    group(root, false, "cpuset/sub/kubepods/pod" UID "/" ID("2"), "5\n", "1\n");
    group(root, false, "cpuset/kubepods/burstable/pod" STATIC_UID "/" ID("3"),
          "0-7\n", "0-1\n");
    look(root, &g);
    cr_expect_eq(g.n, 4u);
    cr_expect_eq(index_set_count(&g.mems), 2u);
    expect_pod(&g, UID, "2-3,5", "0-1");
    cr_expect(!cgroups_of_pod(&g, STATIC_UID, &c, &m),
              "its sandbox alone says nothing");
    cr_expect(!cgroups_of_pod(&g, "nobody", &c, &m));
    cr_assert_not_null(cgroups_find(&g, ID("3")));
    cr_expect_str_eq(cgroups_find(&g, ID("3"))->uid, STATIC_UID);
    cr_expect_null(cgroups_find(&g, ID("4")));
    cgroups_fini(&g);
    tmpdir_remove(root);
}

Test(cgroups, of_version_2_by_systemd)
{
#define SLICE "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
    char *root = tmpdir_create();
    struct cgroups g;
    put(root, "cgroup.controllers", "cpuset cpu\n");
    group(root, true, ".", "0-15\n", "0\n");
    group(root, true, "kubepods.slice", "0-15\n", "0\n");
    group(root, true, SLICE UID_ ".slice/cri-containerd-" ID("0") ".scope",
          "0-15\n", "0\n");
    group(root, true, SLICE UID_ ".slice/cri-containerd-" ID("1") ".scope",
          "0,8-15\n", "0\n");
    group(root, true, "system.slice/cri-containerd-" ID("2") ".scope", "3\n",
          "0\n");
    look(root, &g);
    expect_pod(&g, UID, "0,8-15", "0");
    const struct cgroup_container *c = cgroups_find(&g, ID("2"));
    cr_assert(c && c->known);
    cr_expect_str_eq(c->uid, "");
    cr_expect(index_set_has(&c->cpus, 3));
    cgroups_fini(&g);
    tmpdir_remove(root);
}

/* A group without the controller has what the one above it has. */
Test(cgroups, take_what_is_above_where_there_is_no_cpuset)
{
    char *root = tmpdir_create();
    struct cgroups g;
    put(root, "cgroup.controllers", "cpu\n");
    group(root, true, "kubepods", "4-7\n", "1\n");
    put(root, "kubepods/pod" UID "/" ID("0") "/cgroup.procs", "");
    put(root, "kubepods/pod" UID "/" ID("1") "/cgroup.procs", "");
    /* CRI-O's, and a group that a container made */
    put(root, "kubepods/pod" UID "/crio-conmon-" ID("2") ".scope/x", "");
    put(root, "kubepods/pod" UID "/" ID("1") "/" ID("3") "/x", "");
    look(root, &g);
    cr_expect_eq(g.n, 2u);
    expect_pod(&g, UID, "4-7", "1");
    cgroups_fini(&g);
    tmpdir_remove(root);
}

Test(cgroups, what_cannot_be_read_is_not_known)
{
    char *root = tmpdir_create();
    struct cgroups g;
    struct index_set c, m;
    struct error err = {0};
    cr_expect_eq(cgroups_look(root, &g, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, "/sys/fs/cgroup/cpuset"));
    group(root, false, "cpuset/pod" UID "/" ID("0"), "0-3\n", "0\n");
    group(root, false, "cpuset/pod" UID "/" ID("1"), "0-3\n", "0\n");
    group(root, false, "cpuset/pod" UID "/" ID("2"), "what\n", "0\n");
    look(root, &g);
    cr_expect(!cgroups_of_pod(&g, UID, &c, &m));
    cgroups_fini(&g);
    tmpdir_remove(root);
}

Test(cgroups, have_names)
{
    char uid[CGROUPS_UID_MAX + 1], id[CGROUPS_ID_MAX + 1];
    cr_expect(cgroups_pod_uid("pod" UID, uid));
    cr_expect(cgroups_pod_uid("kubelet-kubepods-pod" UID_ ".slice", uid));
    cr_expect_str_eq(uid, UID);
    cr_expect(!cgroups_pod_uid("pod", uid));
    cr_expect(!cgroups_pod_uid("xpod" UID, uid));
    cr_expect(!cgroups_pod_uid("pod6b0c", uid));
    cr_expect(!cgroups_pod_uid("pod" UID "0", uid));
    cr_expect(cgroups_container_id("docker-" ID("a") ".scope", id));
    cr_expect_str_eq(id, ID("a"));
    cr_expect(!cgroups_container_id(ID("a") "0", id));
    cr_expect(!cgroups_container_id(ID("X"), id));
    cr_expect(!cgroups_container_id("", id));
}
