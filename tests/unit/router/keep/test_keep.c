/* The map: durable, each name once, and what readers see. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/tmpdir.h"

static struct keep *open_in(const char *dir)
{
    const struct keep_config config = {.dir = dir, .pod_logs = "/var/log/pods"};
    struct keep *k = NULL;
    struct error err = {0};
    cr_assert_eq(keep_open(&config, &k, &err), 0, "%s", err.text);
    return k;
}

static void make(struct keep *k, const struct kept *what, const char *id)
{
    enum keep_answer answer;
    struct kept *was = NULL;
    struct error err = {0};
    cr_assert_eq(keep_announce(k, what, &answer, &was, &err), 0, "%s",
                 err.text);
    cr_assert_eq(answer, KEEP_SEND);
    cr_assert_eq(keep_made(k, what, id, &err), 0, "%s", err.text);
}

static bool has(struct keep *k, const char *id)
{
    cleanup_with(kept) struct kept *found = keep_find(k, id);
    return found != NULL;
}

Test(keep, is_there_again_after_a_restart)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir);
    const struct kept s = keeprig_sandbox("u-1", 0);
    const struct kept c = keeprig_container("u-1", "aa", "c", 2);
    const struct kept gone = keeprig_sandbox("u-2", 0);
    const struct kept half = keeprig_sandbox("u-3", 0);
    enum keep_answer answer;
    struct kept *was = NULL;
    make(k, &s, "aa");
    make(k, &c, "ab");
    make(k, &gone, "ac");
    cr_assert_eq(keep_forget(k, "ac", NULL), 0);
    cr_assert_eq(keep_announce(k, &half, &answer, &was, NULL), 0);
    keep_close(k); /* as a kill leaves it */
    k = open_in(dir);
    cleanup_with(keep_view) struct keep_view *v = keep_view(k);
    cr_assert_eq(keep_view_count(v), 3);
    const struct kept *found = keep_view_find(v, "ab");
    cr_assert_not_null(found);
    cr_assert_str_eq(found->container, "c");
    cr_assert_str_eq(found->sandbox_id, "aa");
    cr_assert_eq(found->mounts.size, 7);
    cr_assert_null(keep_view_find(v, "ac"));
    cr_assert_eq(keep_view_at(v, 2)->state, KEPT_ANNOUNCED);
    cr_assert_str_eq(keep_view_at(v, 2)->uid, "u-3");
    cr_assert_eq(keep_announce(k, &half, &answer, &was, NULL), 0);
    cr_assert_eq(answer, KEEP_LOOK, "its end is not known");
    cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    cr_assert_eq(answer, KEEP_THERE);
    cr_assert_str_eq(was->id, "aa");
    kept_unref(was);
    keep_close(k);
    tmpdir_remove(dir);
}

Test(keep, an_end_is_there_again_after_a_restart)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir);
    const struct kept s = keeprig_sandbox("u-1", 0);
    const struct kept c = keeprig_container("u-1", "aa", "c", 2);
    static char long_one[KEPT_ENDED_MAX + 1];
    make(k, &s, "aa");
    make(k, &c, "ab");
    cr_assert_eq(keep_ended(k, "ab",
                            (struct proto_bytes){long_one, sizeof long_one},
                            NULL),
                 -EINVAL);
    cr_assert_eq(keep_ended(k, "ab", (struct proto_bytes){"first", 5}, NULL),
                 0);
    cr_assert_eq(keep_ended(k, "ab", (struct proto_bytes){"other", 5}, NULL),
                 0);
    cr_assert_eq(keep_ended(k, "ff", (struct proto_bytes){"none", 4}, NULL), 0);
    keep_close(k);
    k = open_in(dir);
    cleanup_with(kept) struct kept *found = keep_find(k, "ab");
    cr_assert(proto_equals(found->ended, "first"));
    cr_assert_eq(found->attempt, 2);
    keep_close(k);
    tmpdir_remove(dir);
}

Test(keep, is_of_one_process)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir), *second = NULL;
    const struct keep_config config = {.dir = dir};
    struct error err = {0};
    cr_assert_eq(keep_open(&config, &second, &err), -EBUSY);
    keep_close(k);
    tmpdir_remove(dir);
}

Test(keep, a_call_is_one_callers)
{
    struct keep *k = open_in(NULL);
    const struct kept s = keeprig_sandbox("u-1", 0);
    enum keep_answer answer;
    struct kept *was = NULL;
    struct error err = {0};
    cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    cr_assert_eq(answer, KEEP_SEND);
    cr_assert_eq(keep_announce(k, &s, &answer, &was, &err), -EBUSY);
    cr_assert(strstr(err.text, "u-1/0"), "%s", err.text);
    keep_unclear(k, &s);
    cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    cr_assert_eq(answer, KEEP_LOOK);
    cr_assert_eq(keep_refused(k, &s, NULL), 0);
    cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    cr_assert_eq(answer, KEEP_SEND);
    keep_close(k);
}

Test(keep, an_id_is_of_one_record)
{
    struct keep *k = open_in(NULL);
    const struct kept a = keeprig_sandbox("u-1", 0);
    struct kept b = keeprig_sandbox("u-2", 0);
    enum keep_answer answer;
    struct kept *was = NULL;
    struct error err = {0};
    b.remote = "card-1";
    make(k, &a, "aa");
    cr_assert_eq(keep_announce(k, &b, &answer, &was, NULL), 0);
    cr_assert_eq(keep_made(k, &b, "aa", &err), -EEXIST);
    cr_assert(strstr(err.text, "card-0"), "%s", err.text);
    cr_assert_eq(keep_made(k, &b, "../aa", NULL), -EINVAL);
    cr_assert_eq(keep_made(k, &b, "", NULL), -EINVAL);
    cleanup_with(kept) struct kept *found = keep_find(k, "aa");
    cr_assert_str_eq(found->remote, "card-0");
    cr_assert_eq(keep_count(k, "card-1", KEPT_ANNOUNCED), 1);
    keep_close(k);
}

Test(keep, a_sandbox_goes_with_its_containers)
{
    struct keep *k = open_in(NULL);
    const struct kept s = keeprig_sandbox("u-1", 0);
    const struct kept c = keeprig_container("u-1", "aa", "c", 0);
    const struct kept d = keeprig_container("u-1", "aa", "d", 0);
    enum keep_answer answer;
    struct kept *was = NULL;
    make(k, &s, "aa");
    make(k, &c, "ab");
    cr_assert_eq(keep_announce(k, &d, &answer, &was, NULL), 0);
    cleanup_with(keep_view) struct keep_view *v = keep_view(k);
    cr_assert_eq(keep_forget(k, "aa", NULL), 0);
    cr_assert_not(has(k, "aa"));
    cr_assert_not(has(k, "ab"));
    cr_assert_eq(keep_made(k, &d, "ad", NULL), -ENOENT,
                 "its sandbox was removed meanwhile");
    cr_assert_not_null(keep_view_find(v, "ab"), "a view does not change");
    cr_assert_eq(keep_forget(k, "aa", NULL), 0, "once more");
    keep_close(k);
}

Test(keep, has_a_limit_for_each_remote)
{
    struct keep *k = open_in(NULL);
    struct error err = {0};
    enum keep_answer answer;
    struct kept *was = NULL;
    char uid[16];
    for (unsigned i = 0; i < KEEP_REMOTE_MAX; i++) {
        (void)snprintf(uid, sizeof uid, "u-%u", i);
        const struct kept s = keeprig_sandbox(uid, 0);
        cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    }
    struct kept s = keeprig_sandbox("one-more", 0);
    cr_assert_eq(keep_announce(k, &s, &answer, &was, &err), -ENOSPC);
    cr_assert(strstr(err.text, "4096"), "%s", err.text);
    s.remote = "card-1";
    cr_assert_eq(keep_announce(k, &s, &answer, &was, NULL), 0);
    keep_close(k);
}

/* --- damage --------------------------------------------------------------- */

static void remove_file(const char *dir, const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cr_assert_eq(unlink(path), 0, "%s", path);
}

Test(keep, saves_what_a_damaged_file_has)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir);
    char uid[16], id[KEPT_ID_MAX + 1];
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(uid, sizeof uid, "u-%u", i);
        keeprig_id(i + 1, id);
        const struct kept s = keeprig_sandbox(uid, 0);
        make(k, &s, id);
    }
    keep_close(k);
    cleanup_free char *db = xasprintf("%s/keep.db", dir);
    int fd = open(db, O_RDWR);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, "\xff\xff\xff\xff", 4, 100), 4, "its first page");
    (void)close(fd);
    k = open_in(dir);
    cr_assert_eq(keep_count(k, "card-0", KEPT_MADE), 20);
    keep_close(k);
    tmpdir_remove(dir);
}

Test(keep, begins_anew_when_the_file_is_lost)
{
    char *dir = tmpdir_create();
    struct keep *k = open_in(dir);
    const struct kept s = keeprig_sandbox("u-1", 0);
    cleanup_str struct str before = STR_INIT(KEPT_SEALED_MAX);
    make(k, &s, "aa");
    keep_seal(k, &s, &before);
    keep_close(k);
    remove_file(dir, "keep.db");
    k = open_in(dir);
    cr_assert_not(has(k, "aa"));
    cleanup_with(kept) struct kept *said = keep_unseal(k, str_text(&before));
    cr_assert_not_null(said, "the secret is not in that file");
    keep_close(k);
    tmpdir_remove(dir);
}
