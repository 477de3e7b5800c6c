#include "router/volume/volume_home.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "tests/lib/card/kubeletdir.h"
#include "tests/lib/tmpdir.h"

static struct error err;
static char *top;
static struct volume_home whole; /* of the last look */

static void begin(void)
{
    top = tmpdir_create();
    kubeletdir_pod(top, "u");
}

static void end(void)
{
    volume_home_fini(&whole);
    tmpdir_remove(top);
}

TestSuite(volume_home, .init = begin, .fini = end);

/* As the router gets it, and judges it. */
static int look(const char *below, struct volume_home *ret_home)
{
    static const char *const allowed[] = {"/data"};
    const struct mount_rules rules = {
        .kubelet_root = top, .allowed = allowed, .n_allowed = 1};
    cleanup_free char *path = below[0] == '/'
                                  ? xstrdup(below)
                                  : xasprintf("%s/pods/u/%s", top, below);
    struct mount m = {.container_path = "/x", .host_path = path};
    int rc = mount_judge(&rules, "u", &m, &err);
    volume_home_fini(&whole);
    return rc ? rc : volume_home_look(top, "u", &m, ret_home, &whole, &err);
}

static void update(const char *plugin, const char *volume)
{
    kubeletdir_update(top, "u", plugin, volume,
                      (const char *const[]){"a=one", NULL});
}

Test(volume_home, each_kind_has_its_form)
{
    static const struct {
        const char *below;
        enum volume_form form;
        bool memory;
    } kinds[] = {
        {"volumes/kubernetes.io~configmap/v", VOLUME_AS_TREE, false},
        {"volumes/kubernetes.io~secret/v", VOLUME_AS_TREE, true},
        {"volumes/kubernetes.io~projected/v", VOLUME_AS_TREE, true},
        {"volumes/kubernetes.io~downward-api/v", VOLUME_AS_TREE, true},
        {"volumes/kubernetes.io~empty-dir/v", VOLUME_AS_EMPTY, false},
        {"etc-hosts", VOLUME_AS_FILE, false},
        {"containers/main/1a2b", VOLUME_AS_OUTPUT, false},
    };
    kubeletdir_empty(top, "u", "v");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct volume_home h;
        cr_assert_eq(look(kinds[i].below, &h), 0, "%s", err.text);
        cr_expect_eq(h.form, kinds[i].form, "%s", kinds[i].below);
        cr_expect_eq(h.memory, kinds[i].memory, "%s", kinds[i].below);
        cr_expect_str_eq(h.name, kinds[i].below);
        cr_expect_eq(h.limit, 0);
        if (h.form == VOLUME_AS_EMPTY)
            cr_expect_eq(h.mode, 0777);
        if (h.form == VOLUME_AS_OUTPUT)
            cr_expect_eq(h.mode, 0666);
        volume_home_fini(&h);
    }
}

Test(volume_home, a_host_path_is_the_remotes_own)
{
    struct volume_home h;
    cr_assert_eq(look("/data/x", &h), 0, "%s", err.text);
    cr_expect(h.form == VOLUME_AS_PATH);
    cr_expect_str_eq(h.path, "/data/x");
    volume_home_fini(&h);
    cr_expect_eq(look("/etc", &h), -EPERM);
}

Test(volume_home, a_subpath_is_of_its_volumes_kind)
{
    struct volume_home h;
    cleanup_free char *file = xasprintf("%s/pods/u/volume-subpaths/s/main/0",
                                        top);
    cleanup_free char *folder =
        xasprintf("%s/pods/u/volume-subpaths/c/main/1/x", top);
    update("secret", "s");
    update("configmap", "c");
    kubeletdir_write(file, "one");
    kubeletdir_write(folder, "one");
    cr_assert_eq(look("volume-subpaths/s/main/0", &h), 0, "%s", err.text);
    cr_expect(h.form == VOLUME_AS_FILE && h.memory);
    volume_home_fini(&h);
    cr_assert_eq(look("volume-subpaths/c/main/1", &h), 0, "%s", err.text);
    cr_expect(h.form == VOLUME_AS_TREE && !h.memory);
    volume_home_fini(&h);
    cr_expect_eq(look("volume-subpaths/s/main/7", &h), -ENOENT);
}

/* As the kubelet does it: a folder in its own emptyDir, mounted. */
Test(volume_home, a_subpath_of_an_empty_dir_is_a_part_of_it)
{
    struct volume_home h;
    cleanup_free char *in =
        xasprintf("%s/pods/u/volumes/kubernetes.io~empty-dir/e/a/b", top);
    cleanup_free char *file = xasprintf("%s/x", in);
    cleanup_free char *on = xasprintf("%s/pods/u/volume-subpaths/e/main/0",
                                      top);
    cleanup_free char *under = xasprintf("%s/y", on);
    kubeletdir_empty(top, "u", "e");
    kubeletdir_write(file, "");
    kubeletdir_write(under, "");
    cr_assert_eq(chmod(in, 02775), 0);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        cr_skip("needs root, to mount");
    cr_assert_eq(mount(in, on, NULL, MS_BIND, NULL), 0);
    int rc = look("volume-subpaths/e/main/0", &h);
    cr_expect_eq(umount(on), 0);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_expect(h.form == VOLUME_AS_PART && h.memory);
    cr_expect_str_eq(h.name, "volumes/kubernetes.io~empty-dir/.subpaths/e/"
                             "main/0");
    cr_expect_str_eq(h.of, "disk/volumes/kubernetes.io~empty-dir/e/a/b");
    cr_expect_eq(h.mode, 02775);
    cr_expect(whole.form == VOLUME_AS_EMPTY && !whole.memory);
    cr_expect_str_eq(whole.name, "volumes/kubernetes.io~empty-dir/e");
    volume_home_fini(&h);
}

Test(volume_home, subpaths_of_what_pods_write_are_refused)
{
    struct volume_home h;
    cleanup_free char *folder =
        xasprintf("%s/pods/u/volume-subpaths/e/main/0/x", top);
    cleanup_free char *link = xasprintf("%s/pods/u/volume-subpaths/s/main/0",
                                        top);
    cleanup_free char *above = xasprintf("%s/none", link);
    kubeletdir_write(folder, "");
    kubeletdir_empty(top, "u", "e");
    cr_expect_eq(look("volume-subpaths/e/main/0", &h), -EPERM);
    cr_expect(strstr(err.text, "emptyDir"), "%s", err.text);
    /* it has no folder: of a hostPath */
    cr_expect_eq(look("volume-subpaths/h/main/0", &h), -EPERM);
    cr_expect(strstr(err.text, "hostPath"), "%s", err.text);
    update("secret", "s");
    kubeletdir_write(above, "");
    cr_assert_eq(unlink(above), 0);
    cr_assert_eq(rmdir(link), 0);
    cr_assert_eq(symlink("/etc/passwd", link), 0);
    cr_expect_eq(look("volume-subpaths/s/main/0", &h), -EINVAL);
}

Test(volume_home, what_is_no_file_is_refused)
{
    struct volume_home h;
    cleanup_free char *hosts = xasprintf("%s/pods/u/etc-hosts", top);
    cr_assert_eq(unlink(hosts), 0);
    cr_expect_eq(look("etc-hosts", &h), -ENOENT);
    cr_assert_eq(symlink("/etc/hosts", hosts), 0);
    cr_expect_eq(look("etc-hosts", &h), -EINVAL);
}

Test(volume_home, volumes_of_others_are_refused_by_name)
{
    cleanup_free char *csi =
        xasprintf("%s/pods/u/volumes/kubernetes.io~csi/pvc-1/mount", top);
    cleanup_free char *block =
        xasprintf("%s/pods/w/volumeDevices/kubernetes.io~csi/pvc-2", top);
    update("secret", "s");
    kubeletdir_empty(top, "u", "e");
    cr_expect_eq(volume_home_check(top, "u", &err), 0, "%s", err.text);
    cr_expect_eq(volume_home_check(top, "nobody", &err), 0, "%s", err.text);
    kubeletdir_write(csi, "");
    cr_expect_eq(volume_home_check(top, "u", &err), -EPERM);
    cr_expect(strstr(err.text, "volume pvc-1: is of kubernetes.io/csi"), "%s",
              err.text);
    kubeletdir_write(block, "");
    cr_expect_eq(volume_home_check(top, "w", &err), -EPERM);
    cr_expect_eq(volume_home_check(top, "../u", &err), -EINVAL);
}

Test(volume_home, it_is_in_use_while_a_volume_is_there)
{
    cr_expect(!volume_home_in_use(top, "u"));
    update("secret", "s");
    cr_expect(volume_home_in_use(top, "u"));
    kubeletdir_end(top, "u");
    cr_expect(!volume_home_in_use(top, "u"));
}
