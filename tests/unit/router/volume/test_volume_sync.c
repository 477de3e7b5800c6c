#include "router/volume/volume_sync.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/card/cardexec.h"
#include "tests/lib/card/kubeletdir.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

enum { HANGS_MS = 120000 };

static struct error err;
static char *top, *kubelet, *disk, *memory;
static struct cardexec *card;
static struct volume_sync *sync_;
static const struct volume_pod pod = {"card-0", "u"};

static void start(void)
{
    const struct volume_sync_config config = {.kubelet_root = kubelet,
                                              .disk = disk,
                                              .memory = memory,
                                              .memory_helper = memory,
                                              .exec = cardexec_run,
                                              .ctx = card};
    cr_assert_eq(volume_sync_create(&config, &sync_, &err), 0, "%s", err.text);
}

static void begin(void)
{
    top = tmpdir_create();
    kubelet = xasprintf("%s/kubelet", top);
    disk = xasprintf("%s/disk", top);
    memory = xasprintf("%s/memory", top);
    card = cardexec_create();
    kubeletdir_pod(kubelet, "u");
    start();
}

static void end(void)
{
    volume_sync_destroy(sync_);
    cardexec_destroy(card);
    tmpdir_remove(top);
    free(kubelet);
    free(disk);
    free(memory);
}

TestSuite(volume_sync, .init = begin, .fini = end, .timeout = 300);

static void update(const char *plugin, const char *volume, const char *file)
{
    kubeletdir_update(kubelet, "u", plugin, volume,
                      (const char *const[]){file, NULL});
}

/* Mounts as the kubelet asks for them. */
struct asked {
    struct mount mounts[8];
    char *paths[8];
    size_t n;
};

static int ask(struct asked *a, const char *below)
{
    static const char *const allowed[] = {"/"};
    const struct mount_rules rules = {
        .kubelet_root = kubelet, .allowed = allowed, .n_allowed = 1};
    char *path = below[0] == '/' ? xstrdup(below)
                                 : xasprintf("%s/pods/u/%s", kubelet, below);
    a->paths[a->n] = path;
    a->mounts[a->n] = (struct mount){.container_path = "/x", .host_path = path};
    return mount_judge(&rules, "u", &a->mounts[a->n++], &err);
}

static void asked_fini(struct asked *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->paths[i]);
}

/* Where a mount is there; NULL: -`*ret_rc`. */
static char *prepare(const char *below, int *ret_rc)
{
    struct asked a = {0};
    char **paths = NULL, *path = NULL;
    cr_assert_eq(ask(&a, below), 0, "%s", err.text);
    *ret_rc = volume_sync_prepare(sync_, &pod, a.mounts, a.n, &paths, &err);
    if (!*ret_rc)
        path = paths[0];
    free(paths);
    asked_fini(&a);
    return path;
}

static char *prepared(const char *below)
{
    int rc;
    char *path = prepare(below, &rc);
    cr_assert_eq(rc, 0, "%s", err.text);
    return path;
}

static char *content(const char *path, const char *name)
{
    cleanup_free char *file = *name ? xasprintf("%s/%s", path, name)
                                    : xstrdup(path);
    return access(file, R_OK) == 0 ? testdata_read(file, NULL) : NULL;
}

static void expect(const char *path, const char *name, const char *text)
{
    cleanup_free char *found = content(path, name);
    cr_expect(found && strcmp(found, text) == 0, "%s/%s: %s", path, name,
              found ? found : "(none)");
}

/* Until it has that content. */
static void await(const char *path, const char *name, const char *text)
{
    for (;;) {
        cleanup_free char *found = content(path, name);
        if (found && strcmp(found, text) == 0)
            return;
        cr_assert_eq(usleep(1000), 0);
    }
}

static void settle(void)
{
    cr_assert_eq(volume_sync_settle(sync_, "card-0", HANGS_MS), 0);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

#define SECRET "volumes/kubernetes.io~secret/s"
#define CONFIG "volumes/kubernetes.io~configmap/c"

Test(volume_sync, mounts_are_delivered_before_they_are_needed)
{
    update("secret", "s", "key=hidden");
    update("configmap", "c", "d/key=shown");
    cleanup_free char *s = prepared(SECRET), *c = prepared(CONFIG);
    cleanup_free char *hosts = prepared("etc-hosts");
    expect(s, "key", "hidden");
    expect(c, "d/key", "shown");
    expect(hosts, "", "127.0.0.1 localhost\n");
}

Test(volume_sync, secrets_are_in_memory_alone)
{
    update("secret", "s", "key=hidden");
    update("configmap", "c", "key=shown");
    cleanup_free char *s = prepared(SECRET), *c = prepared(CONFIG);
    cr_expect_eq(strncmp(s, memory, strlen(memory)), 0, "%s", s);
    cr_expect_eq(strncmp(c, disk, strlen(disk)), 0, "%s", c);
    cr_expect(!cardexec_seen(card, "hidden"));
}

Test(volume_sync, an_update_comes_whole)
{
    update("secret", "s", "key=0");
    cleanup_free char *s = prepared(SECRET);
    for (unsigned i = 1; i <= 20; i++) {
        cleanup_free char *file = xasprintf("key=%u", i);
        update("secret", "s", file);
    }
    await(s, "key", "20");
    settle();
    expect(s, "key", "20");
}

Test(volume_sync, a_file_keeps_its_inode)
{
    struct stat before, after;
    cleanup_free char *at_home = xasprintf("%s/pods/u/etc-hosts", kubelet);
    cleanup_free char *hosts = prepared("etc-hosts");
    cr_assert_eq(stat(hosts, &before), 0);
    kubeletdir_write(at_home, "10.0.0.1 other\n");
    await(hosts, "", "10.0.0.1 other\n");
    cr_assert_eq(stat(hosts, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino);
}

Test(volume_sync, what_a_container_wrote_comes_back)
{
    struct asked a = {0};
    cr_assert_eq(ask(&a, "containers/main/1a2b"), 0);
    cleanup_free char *log = prepared("containers/main/1a2b");
    cleanup_free char *huge = xcalloc(1, 6001);
    struct stat st;
    cr_assert_eq(stat(log, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0666);
    kubeletdir_write(log, "it is over");
    cr_expect_eq(volume_sync_collect(sync_, &pod, a.mounts, &err), 0, "%s",
                 err.text);
    expect(a.paths[0], "", "it is over");
    memset(huge, 'x', 6000);
    kubeletdir_write(log, huge);
    cr_expect_eq(volume_sync_collect(sync_, &pod, a.mounts, &err), 0);
    cleanup_free char *found = content(a.paths[0], "");
    cr_expect_eq(strlen(found), VOLUME_MESSAGE_MAX);
    /* another container of the pod does not make it anew */
    free(prepared("containers/main/1a2b"));
    expect(log, "", huge);
    cr_assert_eq(unlink(log), 0);
    cr_expect_eq(volume_sync_collect(sync_, &pod, a.mounts, &err), 0);
    kubeletdir_end(kubelet, "u");
    cr_expect_eq(volume_sync_collect(sync_, &pod, a.mounts, &err), 0);
    asked_fini(&a);
}

Test(volume_sync, all_goes_with_the_pod)
{
    update("secret", "s", "key=hidden");
    kubeletdir_empty(kubelet, "u", "e");
    cleanup_free char *s = prepared(SECRET);
    cleanup_free char *e = prepared("volumes/kubernetes.io~empty-dir/e");
    cleanup_free char *file = xasprintf("%s/own", e);
    cleanup_free char *all_m = xasprintf("%s/u", memory);
    cleanup_free char *all_d = xasprintf("%s/pods/u", disk);
    kubeletdir_write(file, "mine");
    /* the kubelet makes another sandbox of it */
    volume_sync_forget(sync_, &pod);
    free(prepared(SECRET));
    settle();
    expect(e, "own", "mine");
    expect(s, "key", "hidden");
    volume_sync_forget(sync_, &pod);
    kubeletdir_end(kubelet, "u");
    settle();
    cr_expect(!is_there(all_m));
    cr_expect(!is_there(all_d));
}

Test(volume_sync, what_could_not_be_removed_is_tried_again)
{
    cleanup_free char *hosts = prepared("etc-hosts");
    cardexec_fail(card, "forget", EAGAIN, 2);
    volume_sync_forget(sync_, &pod);
    settle();
    cr_expect(!is_there(hosts));
    cr_expect_eq(cardexec_calls(card, "forget"), 3);
}

Test(volume_sync, what_could_not_be_delivered_is_tried_again)
{
    int rc;
    update("secret", "s", "key=1");
    cardexec_fail(card, "tree", EAGAIN, 1);
    cr_expect_null(prepare(SECRET, &rc));
    cr_expect_eq(rc, -EAGAIN);
    settle();
    cleanup_free char *s = prepared(SECRET);
    cardexec_fail(card, "volume", ETIMEDOUT, 2);
    update("secret", "s", "key=2");
    await(s, "key", "2");
}

Test(volume_sync, a_former_process_left_it)
{
    cleanup_free char *left = xasprintf("%s/other/volumes/x", memory);
    cleanup_free char *in_use = xasprintf("%s/pods/busy/x", disk);
    cleanup_free char *kept = xasprintf("%s/pods/kept/x", disk);
    const char *const uids[] = {"kept"};
    struct asked a = {0};
    update("secret", "s", "key=1");
    cleanup_free char *s = prepared(SECRET);
    volume_sync_destroy(sync_);
    kubeletdir_write(left, "");
    kubeletdir_write(in_use, "");
    kubeletdir_write(kept, "");
    kubeletdir_empty(kubelet, "busy", "e");
    update("secret", "s", "key=2");
    start();
    cr_assert_eq(ask(&a, SECRET), 0);
    cr_assert_eq(volume_sync_adopt(sync_, &pod, a.mounts, 1, &err), 0, "%s",
                 err.text);
    volume_sync_sweep(sync_, "card-0", uids, 1);
    await(s, "key", "2");
    update("secret", "s", "key=3");
    await(s, "key", "3");
    while (is_there(left))
        cr_assert_eq(usleep(1000), 0);
    cr_expect(is_there(in_use), "the kubelet still has it");
    kubeletdir_end(kubelet, "busy");
    settle();
    cr_expect(!is_there(in_use));
    cr_expect(is_there(kept));
    expect(s, "key", "3");
    asked_fini(&a);
}

Test(volume_sync, a_remote_that_hangs_delays_no_other)
{
    static const struct volume_pod other = {"card-1", "w"};
    struct asked a = {0};
    update("secret", "s", "key=1");
    cleanup_free char *s = prepared(SECRET);
    cardexec_hold(card, true);
    update("secret", "s", "key=2");
    cardexec_await_held(card, 1);
    /* not even one that would hang, too, when it is only told */
    cr_assert_eq(ask(&a, SECRET), 0);
    volume_sync_forget(sync_, &other);
    volume_sync_sweep(sync_, "card-1", NULL, 0);
    cr_expect_eq(volume_sync_adopt(sync_, &pod, a.mounts, 1, &err), 0);
    cr_expect_eq(volume_sync_check(sync_, "u", &err), 0);
    cardexec_hold(card, false);
    await(s, "key", "2");
    asked_fini(&a);
}

Test(volume_sync, other_pods_volumes_are_nobodys_host_path)
{
    const char *const bad[] = {memory, disk, top, "/", "//", NULL};
    int rc;
    for (size_t i = 0; bad[i]; i++) {
        cr_expect_null(prepare(bad[i], &rc));
        cr_expect_eq(rc, -EPERM, "%s", bad[i]);
    }
    cleanup_free char *slashes = xasprintf("/%s//pods/v", disk);
    cr_expect_null(prepare(slashes, &rc));
    cr_expect_eq(rc, -EPERM);
    cleanup_free char *own = prepared("/opt/data");
    cr_expect_str_eq(own, "/opt/data");
    cr_expect_eq(cardexec_calls(card, "tree"), 0);
}

/* The kubelet mounts a folder of its emptyDir; the pod gets that of its own. */
Test(volume_sync, a_subpath_of_an_empty_dir_is_in_it)
{
    int rc;
    cleanup_free char *in =
        xasprintf("%s/pods/u/volumes/kubernetes.io~empty-dir/e/a", kubelet);
    cleanup_free char *file = xasprintf("%s/x", in);
    cleanup_free char *on = xasprintf("%s/pods/u/volume-subpaths/e/main/0",
                                      kubelet);
    cleanup_free char *below = xasprintf("%s/y", on);
    kubeletdir_empty(kubelet, "u", "e");
    kubeletdir_write(file, "");
    kubeletdir_write(below, "");
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        cr_skip("needs root, to mount");
    cr_assert_eq(mount(in, on, NULL, MS_BIND, NULL), 0);
    cr_assert_eq(mkdir(memory, 0700), 0);
    cr_assert_eq(mount(memory, memory, NULL, MS_BIND, NULL), 0);
    cr_assert_eq(mount(NULL, memory, NULL, MS_SHARED, NULL), 0);
    cleanup_free char *path = prepare("volume-subpaths/e/main/0", &rc);
    cr_assert_eq(rc, 0, "%s", err.text);
    cleanup_free char *own =
        xasprintf("%s/pods/u/volumes/kubernetes.io~empty-dir/e/a/f", disk);
    kubeletdir_write(own, "foo");
    expect(path, "f", "foo");
    for (const char *const *at = (const char *const[]){path, memory, on, NULL};
         *at; at++)
        cr_expect_eq(umount(*at), 0, "%s", *at);
}

Test(volume_sync, paths_are_told_back)
{
    update("secret", "s", "key=1");
    cleanup_free char *s = prepared(SECRET), *hosts = prepared("etc-hosts");
    cleanup_free char *home = volume_sync_home_path(sync_, "u", s);
    cleanup_free char *want = xasprintf("%s/pods/u/" SECRET, kubelet);
    cr_expect_str_eq(home, want);
    cleanup_free char *back = volume_sync_home_path(sync_, "u", hosts);
    cleanup_free char *file = xasprintf("%s/pods/u/etc-hosts", kubelet);
    cr_expect_str_eq(back, file);
    cr_expect_null(volume_sync_home_path(sync_, "w", s));
    cr_expect_null(volume_sync_home_path(sync_, "u", "/etc"));
    cleanup_free char *out = xasprintf("%s/pods/u/../w", disk);
    cr_expect_null(volume_sync_home_path(sync_, "u", out));
}

Test(volume_sync, what_is_missing_is_told_by_its_name)
{
    int rc;
    cr_expect_null(prepare(SECRET, &rc));
    cr_expect_eq(rc, -ENOENT);
    cr_expect(strstr(err.text, "kubernetes.io~secret/s"), "%s", err.text);
    /* and another volume of the pod does not suffer from it */
    cleanup_free char *hosts = prepared("etc-hosts");
    expect(hosts, "", "127.0.0.1 localhost\n");
    update("secret", "s", "key=1");
    cleanup_free char *s = prepared(SECRET);
    expect(s, "key", "1");
}
