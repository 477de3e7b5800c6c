/* What is written down is there after a restart, whatever came between. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/pod/intents.h"
#include "lib/io/log.h"
#include "tests/lib/testdata.h"
#include "tests/lib/tmpdir.h"

static struct act_pod pod_of(const char *uid)
{
    static const struct cri_pair env[] = {{"BIGA_RANK", "3"},
                                          {"ODD", "a\"b\\c\n"}};
    return (struct act_pod){
        .owner = "socket",
        .namespace = "lab",
        .name = uid,
        .uid = uid,
        .place = "card-0000-17-00",
        .pair_key = "lab/job/0",
        .spec = "{\"kind\":\"Pod\"}",
        .spec_size = 14,
        .files = "[]",
        .files_size = 2,
        .env = {env, 2},
        .sriov_vfs = -1,
        .hook = "flash",
        .held = true,
    };
}

static void keep(void *ctx, struct intent *i)
{
    struct intent **list = ctx;
    while (*list)
        list++;
    *list = i;
}

static struct intent *only(struct intents *s)
{
    struct intent *list[8] = {0};
    struct error err = {0};
    cr_assert_eq(intents_each(s, keep, list, &err), 0, "%s", err.text);
    cr_assert_null(list[0] ? list[1] : NULL);
    return list[0];
}

static struct intents *open_at(const char *dir)
{
    struct intents *s = NULL;
    struct error err = {0};
    cr_assert_eq(intents_open(dir, &s, &err), 0, "%s", err.text);
    return s;
}

/* As if the process had been killed after the commit. */
static struct intents *again(struct intents *s, const char *dir)
{
    intents_close(s);
    return open_at(dir);
}

Test(act_intents, all_of_it_is_there_again)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    struct act_pod pod = pod_of("u-1");
    struct intent *i = intent_create(&pod);
    cr_assert_eq(intents_put(s, i, NULL), 0);
    s = again(s, dir);
    struct intent *j = only(s);
    cr_assert_str_eq(j->owner, "socket");
    cr_assert_str_eq(j->namespace, "lab");
    cr_assert_str_eq(j->uid, "u-1");
    cr_assert_str_eq(j->place, "card-0000-17-00");
    cr_assert_str_eq(j->pair_key, "lab/job/0");
    cr_assert_str_eq(j->hook, "flash");
    cr_assert_str_eq(j->spec, "{\"kind\":\"Pod\"}");
    cr_assert_str_eq(j->files, "[]");
    cr_assert_eq(j->spec_size, 14);
    cr_assert_eq(j->n_env, 2);
    cr_assert_str_eq(j->env[1].value, "a\"b\\c\n");
    cr_assert_eq(j->sriov_vfs, -1);
    cr_assert(j->held && !j->stop && j->state == ACT_WANTED);
    cr_assert_eq(j->grace_s, -1);
    intent_destroy(i);
    intent_destroy(j);
    intents_close(s);
    tmpdir_remove(dir);
}

Test(act_intents, each_save_is_there_again)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    struct act_pod pod = pod_of("u-1");
    struct intent *i = intent_create(&pod);
    cr_assert_eq(intents_put(s, i, NULL), 0);
    for (uint32_t n = 1; n < 12; n++) {
        i->state = (enum act_state)(n % 8);
        i->attempt = n;
        i->stop = n > 8;
        i->grace_s = n > 8 ? 5 : -1;
        i->ran = n > 4;
        (void)snprintf(i->sandbox, sizeof i->sandbox, "ab%u", n);
        (void)snprintf(i->reason, sizeof i->reason, "Word%u", n);
        (void)snprintf(i->message, sizeof i->message, "line\n\"%u\"", n);
        struct intent_container *c = intent_container(i, n % 2 ? "a" : "b");
        c->attempt = n;
        c->exited = n % 3;
        c->exit_code = -(int32_t)n;
        c->restarts = n / 2;
        cr_assert_eq(intents_save(s, i, NULL), 0);
        s = again(s, dir);
        struct intent *j = only(s);
        cr_assert_eq(j->state, i->state);
        cr_assert_eq(j->attempt, n);
        cr_assert(j->stop == i->stop && j->ran == i->ran);
        cr_assert_eq(j->grace_s, i->grace_s);
        cr_assert_str_eq(j->sandbox, i->sandbox);
        cr_assert_str_eq(j->message, i->message);
        cr_assert_eq(j->n_containers, i->n_containers);
        for (size_t k = 0; k < i->n_containers; k++) {
            cr_assert_str_eq(j->containers[k].name, i->containers[k].name);
            cr_assert_eq(j->containers[k].attempt, i->containers[k].attempt);
            cr_assert_eq(j->containers[k].exit_code,
                         i->containers[k].exit_code);
        }
        intent_destroy(j);
    }
    cr_assert_eq(intents_delete(s, "u-1", NULL), 0);
    s = again(s, dir);
    cr_assert_null(only(s));
    intent_destroy(i);
    intents_close(s);
    tmpdir_remove(dir);
}

static void count(void *ctx, const char *place)
{
    (void)place;
    ++*(unsigned *)ctx;
}

Test(act_intents, drained_places_are_there_again)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    unsigned n = 0;
    cr_assert_eq(intents_drain(s, "card-0000-17-00", true, NULL), 0);
    cr_assert_eq(intents_drain(s, "card-0000-17-00", true, NULL), 0);
    cr_assert_eq(intents_drain(s, "host", true, NULL), 0);
    cr_assert_eq(intents_drain(s, "host", false, NULL), 0);
    s = again(s, dir);
    cr_assert_eq(intents_each_drained(s, count, &n, NULL), 0);
    cr_assert_eq(n, 1);
    intents_close(s);
    tmpdir_remove(dir);
}

static void count_intent(void *ctx, struct intent *i)
{
    ++*(unsigned *)ctx;
    intent_destroy(i);
}

Test(act_intents, one_process_at_a_time)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir), *other = NULL;
    struct error err = {0};
    cr_assert_eq(intents_open(dir, &other, &err), -EBUSY);
    intents_close(s);
    tmpdir_remove(dir);
}

Test(act_intents, damage_is_moved_aside)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    struct act_pod pod = pod_of("u-1");
    struct intent *i = intent_create(&pod);
    char path[512];
    cr_assert_eq(intents_put(s, i, NULL), 0);
    intents_close(s);
    (void)snprintf(path, sizeof path, "%s/intents.db", dir);
    FILE *f = fopen(path, "r+");
    cr_assert_not_null(f);
    for (long at = 4096; at < 40960; at += 512)
        cr_assert(fseek(f, at, SEEK_SET) == 0 && fputs("damage", f) >= 0);
    (void)fclose(f);
    s = open_at(dir);
    cr_assert_null(only(s));
    (void)snprintf(path, sizeof path, "%s/intents.db.damaged-1", dir);
    cr_assert_eq(access(path, F_OK), 0);
    cr_assert_eq(intents_put(s, i, NULL), 0);
    intent_destroy(i);
    intents_close(s);
    tmpdir_remove(dir);
}

static void copy_file(const char *from, const char *to, const char *end,
                      long flip_at)
{
    size_t size;
    cleanup_free char *a = xasprintf("%s/intents.db%s", from, end);
    cleanup_free char *b = xasprintf("%s/intents.db%s", to, end);
    cleanup_free char *data = testdata_read(a, &size);
    if (flip_at >= 0)
        data[(size_t)flip_at % size] = (char)(data[(size_t)flip_at % size] ^ 2);
    FILE *f = fopen(b, "w");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(data, 1, size, f), size);
    (void)fclose(f);
}

/* Of a process that was killed, the log with a flipped byte: what was written
 * down is there, or the log and the new name of the file say that it is not.
 * What was drained stays drained. */
Test(act_intents, damage_of_the_log_is_noticed)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    unsigned n_aside = 0, n_drained = 0, n_tries = 0;
    log_set_level(LOG_ERROR + 1);
    cr_assert_eq(intents_drain(s, "card-0000-17-00", true, NULL), 0);
    for (unsigned i = 0; i < 8; i++) {
        char uid[8];
        (void)snprintf(uid, sizeof uid, "u-%u", i);
        struct act_pod pod = pod_of(uid);
        cleanup_with(intent) struct intent *intent = intent_create(&pod);
        cr_assert_eq(intents_put(s, intent, NULL), 0);
    }
    for (long at = 100; at < 100000; at += 3911, n_tries++) {
        char *other = tmpdir_create();
        unsigned n = 0, drained = 0;
        copy_file(dir, other, "", -1);
        copy_file(dir, other, "-mark", -1);
        copy_file(dir, other, "-wal", at);
        struct intents *t = open_at(other);
        cr_assert_eq(intents_each(t, count_intent, &n, NULL), 0);
        cr_assert_eq(intents_each_drained(t, count, &drained, NULL), 0);
        cleanup_free char *aside = xasprintf("%s/intents.db.damaged-1", other);
        bool is_aside = access(aside, F_OK) == 0;
        cr_expect(n == 8 || is_aside, "at %ld: %u", at, n);
        n_aside += is_aside;
        n_drained += drained;
        intents_close(t);
        t = open_at(other);
        cr_expect_neq(access(aside, F_OK) == 0, !is_aside, "once is enough");
        intents_close(t);
        tmpdir_remove(other);
    }
    cr_expect_gt(n_aside, n_tries / 2, "%u of %u", n_aside, n_tries);
    cr_expect_geq(n_drained, n_tries - 1, "%u of %u", n_drained, n_tries);
    intents_close(s);
    tmpdir_remove(dir);
}

Test(act_intents, what_was_deleted_is_not_saved)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    struct act_pod pod = pod_of("u-1");
    struct intent *i = intent_create(&pod);
    struct error err = {0};
    cr_assert_eq(intents_put(s, i, &err), 0, "%s", err.text);
    cr_assert_eq(intents_save(s, i, &err), 0, "%s", err.text);
    cr_assert_eq(intents_delete(s, "u-1", &err), 0, "%s", err.text);
    cr_assert_eq(intents_save(s, i, &err), -ENOENT);
    cr_assert_not_null(strstr(err.text, "u-1"));
    cr_assert_null(only(s));
    cr_assert_eq(intents_put(s, i, &err), 0, "the transaction has ended");
    intent_destroy(i);
    intents_close(s);
    tmpdir_remove(dir);
}

static void put_log(struct intents *s, const char *uid, const char *container,
                    const char *text)
{
    struct error err = {0};
    const struct intent_log log = {.uid = uid,
                                   .container = container,
                                   .owner = "extender",
                                   .namespace = "ns",
                                   .name = "p",
                                   .init = strcmp(container, "init") == 0,
                                   .next = 100,
                                   .text = text,
                                   .size = strlen(text)};
    cr_assert_eq(intents_put_log(s, &log, &err), 0, "%s", err.text);
}

static void expect_log(struct intents *s, const char *container,
                       const char *text)
{
    const struct intent_log names = {
        .namespace = "ns", .name = "p", .container = container};
    cleanup_str struct str out = STR_INIT(INTENT_LOG_MAX);
    uint64_t next = 0;
    struct error err;
    int e = intents_find_log(s, &names, &out, &next, &err);
    cr_expect_eq(e, text ? 0 : -ENOENT);
    cr_expect_str_eq(str_text(&out), text ? text : "");
    cr_expect_eq(next, text ? 100 : 0);
}

Test(act_intents, logs_are_there_again)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    unsigned n = 0;
    put_log(s, "u-2", "init", "i");
    put_log(s, "u-2", "a", "of a");
    put_log(s, "u-2", "b", "of b");
    put_log(s, "u-1", "b", "of another pod, and newer");
    s = again(s, dir);
    expect_log(s, "init", "i");
    expect_log(s, "a", "of a");
    expect_log(s, "b", "of another pod, and newer");
    expect_log(s, "c", NULL);
    cr_expect_eq(intents_each_log(s, "extender", count, &n, NULL), 0);
    cr_expect_eq(n, 2);
    cr_expect_eq(intents_each_log(s, "socket", count, &n, NULL), 0);
    cr_expect_eq(n, 2);
    cr_expect_eq(intents_delete_logs(s, "u-1", NULL), 0);
    expect_log(s, "", "of a");
    cr_expect_eq(intents_delete_logs(s, "u-2", NULL), 0);
    expect_log(s, "", NULL);
    intents_close(s);
    tmpdir_remove(dir);
}

Test(act_intents, the_oldest_logs_go)
{
    struct intents *s = open_at(NULL);
    char uid[16];
    unsigned n = 0;
    for (unsigned i = 0; i < INTENT_LOGS_MAX + 5; i++) {
        (void)snprintf(uid, sizeof uid, "u-%05u", i);
        put_log(s, uid, i == 4 ? "old" : i == 5 ? "kept" : "a", uid);
    }
    cr_expect_eq(intents_each_log(s, "extender", count, &n, NULL), 0);
    cr_expect_eq(n, INTENT_LOGS_MAX);
    expect_log(s, "old", NULL);
    expect_log(s, "kept", "u-00005");
    expect_log(s, "a", uid);
    intents_close(s);
}

/* --- folders that were left ------------------------------------------------ */

static void join(void *ctx, const char *place, const char *uid)
{
    str_addf(ctx, "%s/%s ", place, uid);
}

static void expect_left(struct intents *s, const char *expected)
{
    cleanup_str struct str text = STR_INIT(4096);
    cr_expect_eq(intents_each_leftover_dir(s, join, &text, NULL), 0);
    cr_expect_str_eq(str_text(&text), expected);
}

Test(act_intents, what_was_left_is_there_again)
{
    char *dir = tmpdir_create();
    struct intents *s = open_at(dir);
    cr_expect_eq(intents_put_leftover_dir(s, "host", "u-1", NULL), 0);
    cr_expect_eq(intents_put_leftover_dir(s, "card-0", "u-1", NULL), 0);
    cr_expect_eq(intents_put_leftover_dir(s, "card-0", "u-2", NULL), 0);
    cr_expect_eq(intents_put_leftover_dir(s, "host", "u-1", NULL), 0,
                 "once more");
    s = again(s, dir);
    expect_left(s, "card-0/u-1 card-0/u-2 host/u-1 ");
    cr_expect_eq(intents_delete_leftover_dir(s, "card-0", "u-1", NULL), 0);
    cr_expect_eq(intents_delete_leftover_dir(s, "card-0", "u-1", NULL), 0);
    expect_left(s, "card-0/u-2 host/u-1 ");
    intents_close(s);
    tmpdir_remove(dir);
}

static void count_left(void *ctx, const char *place, const char *uid)
{
    unsigned *n = ctx;
    (void)place;
    cr_expect_str_neq(uid, "u-00000", "the oldest");
    ++*n;
}

Test(act_intents, the_oldest_that_was_left_is_forgotten)
{
    struct intents *s = open_at(NULL);
    char uid[16];
    unsigned n = 0;
    for (unsigned i = 0; i < INTENT_LEFTOVER_DIRS_MAX + 1; i++) {
        (void)snprintf(uid, sizeof uid, "u-%05u", i);
        cr_assert_eq(intents_put_leftover_dir(s, "host", uid, NULL), 0);
    }
    cr_expect_eq(intents_each_leftover_dir(s, count_left, &n, NULL), 0);
    cr_expect_eq(n, INTENT_LEFTOVER_DIRS_MAX);
    intents_close(s);
}
