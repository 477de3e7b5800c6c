#include "extender/app/policy_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "extender/app/app_metrics.h"
#include "extender/app/reload.h"
#include "lib/base/mem.h"
#include "tests/lib/await.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static char *dir, *path;
static struct writer *writer;
static struct metrics *metrics;
static struct policy_file *file;

static void put(const char *text)
{
    cleanup_free char *fresh = xasprintf("%s/new", dir);
    FILE *f = fopen(fresh, "we");
    cr_assert(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(rename(fresh, path), 0);
}

static void set_up(void)
{
    dir = tmpdir_create();
    path = xasprintf("%s/policy.json", dir);
    writer = sim_writer(NULL);
    metrics = app_metrics_create();
}

static void tear_down(void)
{
    writer_stop(writer);
    metrics_destroy(metrics);
    policy_file_close(file);
    file = NULL;
    free(path);
    tmpdir_remove(dir);
}

TestSuite(policy_file, .init = set_up, .fini = tear_down);

#define QUOTA(n) "{\"quotas\":[{\"namespace\":\"a\",\"cards\":" n "}]}"

/* The quota that is in force, -1 when there is none. */
static int64_t in_force(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    const struct policy_quota *q = policy_find_quota(s->policy, "a");
    return q ? (int64_t)q->cards : -1;
}

static const char *error_now(void)
{
    static char words[ERROR_TEXT_MAX + 1];
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    policy_file_error(file, &text);
    (void)snprintf(words, sizeof words, "%s", str_text(&text));
    return words;
}

static int64_t reads(const char *result)
{
    return metrics_get(metrics, APP_POLICY_READS, &result);
}

static void open_file(void)
{
    cleanup_with(policy) struct policy *policy = NULL;
    struct error err = {0};
    cr_assert_eq(policy_file_open(path, &file, &policy, &err), 0, "%s",
                 err.text);
    struct writer_op op = {.kind = WRITER_SET_POLICY, .policy = policy};
    cr_assert_eq(writer_run(writer, &op), 0);
    policy_file_serve(file, writer, metrics);
}

Test(policy_file, refuses_a_wrong_or_missing_one)
{
    struct policy *policy = NULL;
    struct error err = {0};
    cr_expect_lt(policy_file_open(path, &file, &policy, &err), 0);
    cr_expect(strstr(err.text, path), "%s", err.text);
    put("{\"quotas\":1}");
    cr_expect_eq(policy_file_open(path, &file, &policy, &err), -EINVAL);
    cr_expect(strstr(err.text, path) && strstr(err.text, "quotas"), "%s",
              err.text);
    cr_expect_null(policy);
    cr_expect_null(file);
}

Test(policy_file, follows_its_file)
{
    put(QUOTA("1"));
    open_file();
    cr_expect_eq(in_force(), 1);
    policy_file_poll(file);
    cr_expect_eq(reads("accepted"), 1, "it is as it was");

    put(QUOTA("22"));
    policy_file_poll(file);
    cr_expect_eq(in_force(), 22);
    cr_expect_eq(reads("accepted"), 2);

    put(QUOTA("-3"));
    policy_file_poll(file);
    policy_file_poll(file);
    cr_expect_eq(in_force(), 22);
    cr_expect_eq(reads("refused"), 1, "told once");
    cr_expect(strstr(error_now(), "quotas[0].cards: is -3"), "%s", error_now());

    cr_assert_eq(unlink(path), 0);
    policy_file_poll(file);
    cr_expect_eq(in_force(), 22);
    cr_expect(strstr(error_now(), "No such file"), "%s", error_now());

    put(QUOTA("4"));
    policy_file_poll(file);
    cr_expect_eq(in_force(), 4);
    cr_expect_str_eq(error_now(), "");
}

Test(policy_file, is_looked_after)
{
    put(QUOTA("1"));
    open_file();
    struct reload_item item = {policy_file_poll, file};
    struct reload *reload = NULL;
    struct error err = {0};
    cr_assert_eq(reload_start(&item, 1, 5, &reload, &err), 0, "%s", err.text);
    put(QUOTA("7"));
    AWAIT(in_force() == 7);
    reload_stop(reload);
    cr_expect_eq(in_force(), 7);
}
