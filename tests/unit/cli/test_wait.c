#include "cli/verb/wait.h"

#include <criterion/criterion.h>
#include <string.h>

#include "cli/base/settings.h"
#include "lib/base/mem.h"

#define JOB(state, placed, running, ready)                   \
    "{\"state\":\"" state "\",\"size\":2,\"placed\":" placed \
    ",\"running\":" running ",\"ready\":" ready "}"
#define POD(state, ready) "{\"state\":\"" state "\",\"ready\":" ready "}"

/* By state: placed, running, ready, done, deleted. */
static void expect(bool job, const char *answer, const char *verdicts)
{
    cleanup_with(json) cJSON *json = NULL;
    struct error err = {0};
    if (answer)
        cr_assert_eq(json_parse(answer, strlen(answer), &json, &err), 0, "%s",
                     err.text);
    for (size_t i = 0; i < WAIT_STATES; i++) {
        int want = verdicts[i] == '+' ? 1 : verdicts[i] == '-' ? -1 : 0;
        cr_expect_eq(wait_judge(json, job, (enum wait_for)i), want,
                     "%s: %zu: want %d", answer ? answer : "none", i, want);
    }
}

Test(wait, judges_jobs)
{
    expect(true, NULL, "----+");
    expect(true, JOB("Pending", "0", "0", "0"), ".....");
    expect(true, JOB("Pending", "1", "0", "0"), ".....");
    expect(true, JOB("Planned", "2", "0", "0"), "+....");
    expect(true, JOB("Running", "2", "1", "0"), "+....");
    expect(true, JOB("Running", "2", "2", "1"), "++...");
    expect(true, JOB("Running", "2", "2", "2"), "+++..");
    expect(true, JOB("Succeeded", "0", "0", "0"), "++++.");
    expect(true, JOB("Failed", "0", "0", "0"), "----.");
    expect(true, "{\"state\":\"Succeeded\",\"deleted\":true}", "+++++");
    expect(true, "{\"state\":\"Failed\",\"deleted\":true}", "----+");
}

Test(wait, judges_pods)
{
    expect(false, NULL, "----+");
    expect(false, POD("pending", "false"), ".....");
    expect(false, POD("creating", "false"), "+....");
    expect(false, POD("running", "false"), "++...");
    expect(false, POD("running", "true"), "+++..");
    expect(false, POD("gone", "false"), "++++.");
    expect(false, POD("failed", "false"), "----.");
}

Test(wait, times_are_seconds_or_have_a_unit)
{
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {{"", 7},      {"90", 90}, {"90s", 90},         {"5m", 300},
                 {"2h", 7200}, {"0", -1},  {"3h", -1},          {"s", -1},
                 {"1d", -1},   {"-1", -1}, {"99999999999", -1}, {"1 s", -1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cli c = {.set = {.timeout = cases[i].text}};
        int64_t seconds = 0;
        int rc = settings_seconds(&c, "wait", 7, 7200, &seconds);
        cr_expect_eq(rc, cases[i].seconds < 0 ? CLI_USAGE : 0, "%s",
                     cases[i].text);
        if (rc == 0)
            cr_expect_eq(seconds, cases[i].seconds, "%s", cases[i].text);
    }
}
