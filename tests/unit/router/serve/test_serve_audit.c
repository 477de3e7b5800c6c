/* The line of the log for each call that changed something on a card. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "router/wire/method.h"
#include "tests/lib/router/lyingrig.h"
#include "tests/lib/testdata.h"

TestSuite(audit, .timeout = 600);

static struct lyingrig r;
static int saved, file;
static char path[] = "/tmp/biga-audit-XXXXXX";

/* From now on the log goes to a file. */
static void begin(void)
{
    lyingrig_open(&r);
    file = mkostemp(path, O_APPEND);
    saved = dup(2);
    cr_assert(file >= 0 && saved >= 0);
    (void)dup2(file, 2);
    log_set_level(LOG_INFO);
}

static void end(void)
{
    (void)dup2(saved, 2);
    (void)close(saved);
    (void)close(file);
    (void)unlink(path);
    lyingrig_close(&r);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* All of the log since the last time; what answers has written it before, and
 * of another's last line the end may not be there yet. */
static char *take_log(void)
{
    char *text = testdata_read(path, NULL), *last = strrchr(text, '\n');
    cr_assert_eq(ftruncate(file, 0), 0);
    text[last ? last + 1 - text : 0] = '\0';
    return text;
}

static void expect_line(const char *method, const char *pod)
{
    cleanup_free char *text = take_log();
    cleanup_free char *what = xasprintf(
        "event=routed call=%s remote=card-0000-10-00 namespace=ns pod=%s "
        "container=",
        method, pod);
    cr_expect_eq(count(text, "event=routed"), 1, "%s: %s", method, text);
    cr_expect_eq(count(text, what), 1, "%s: %s", method, text);
    cr_expect_eq(count(text, " code="), 1, "%s: %s", method, text);
}

static void expect_by_id(const char *method, const char *id)
{
    (void)lyingrig_call_id(&r, method, id);
    expect_line(method, "a");
}

/* Whether it succeeds or not. */
Test(audit, each_change_has_one_line, .init = begin, .fini = end)
{
    char id[LYINGRIG_ID];
    for (enum method_id i = 0; i < METHOD_COUNT; i++) {
        const struct method *m = method_get(i);
        bool container = m->key == METHOD_BY_CONTAINER;
        if (!m->changes || (!container && m->key != METHOD_BY_SANDBOX) ||
            strncmp(method_name(m), "Remove", 6) == 0 ||
            i == METHOD_CREATE_CONTAINER)
            continue;
        expect_by_id(method_name(m), container ? r.container : r.pod);
    }
    cr_assert_eq(lyingrig_run(&r, "b", r.places[0].name, id), 0, "%s", r.text);
    expect_line("RunPodSandbox", "b");
    cr_assert_neq(lyingrig_run(&r, "c", "card-0000-99-00", id), 0);
    cleanup_free char *text = take_log();
    cr_expect_eq(count(text, "event=routed call=RunPodSandbox"), 1, "%s", text);
    cr_expect_eq(count(text, "NoSuchCard"), 1, "%s", text);
    (void)lyingrig_create(&r, "more", id);
    expect_line("CreateContainer", "a");
    expect_by_id("RemoveContainer", r.container);
    expect_by_id("RemovePodSandbox", r.pod);
}

Test(audit, what_looks_has_none, .init = begin, .fini = end)
{
    (void)lyingrig_call_id(&r, "ContainerStatus", r.container);
    (void)lyingrig_call_id(&r, "PodSandboxStatus", r.pod);
    (void)lyingrig_count(&r, "ListPodSandbox");
    (void)lyingrig_call_id(&r, "StopPodSandbox", r.host); /* is the home's */
    cleanup_free char *text = take_log();
    cr_expect_eq(count(text, "event=routed"), 0, "%s", text);
}

Test(audit, no_name_forges_a_line, .init = begin, .fini = end)
{
    char id[LYINGRIG_ID];
    (void)lyingrig_run(&r, "x\\n\\u001b[2J event=routed", r.places[0].name, id);
    str_add(&r.lie.reply, "no%0Ats=0 level=info event=routed call=Forged");
    lyingrig_lie(&r, "StartContainer", 13);
    (void)lyingrig_call_id(&r, "StartContainer", r.container);
    cleanup_free char *text = take_log();
    cr_expect_eq(count(text, "\n"), count(text, "ts=2"), "%s", text);
    cr_expect_eq(count(text, "\nts=0"), 0, "%s", text);
    cr_expect_eq(count(text, "call=Forged"), 1, "it is in an error");
    cr_expect_null(strchr(text, '\x1b'));
}
