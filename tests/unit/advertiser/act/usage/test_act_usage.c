#include "advertiser/act/usage/usage.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <string.h>

#include "advertiser/act/api/status_json.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/card/actrig.h"

enum { SECOND = 1000000000, MIB = 1 << 20 };

static struct actrig r;
static struct usage *usage;
static sem_t told;

static void on_changed(void *ctx)
{
    (void)ctx;
    (void)sem_post(&told);
}

static void use(size_t card, int64_t at_s, uint64_t cpu_s, uint64_t mib)
{
    cardserver_use(r.cards[card],
                   &(struct cardserver_used){.cpu_ns = cpu_s * SECOND,
                                             .memory = mib * MIB,
                                             .at_ns = at_s * SECOND});
}

/* Until another look at that card has begun. */
static void until_looked(size_t card)
{
    unsigned before = cardserver_calls(r.cards[card], "ListContainerStats");
    while (cardserver_calls(r.cards[card], "ListContainerStats") < before + 2)
        (void)actuator_wait(r.a, UINT64_MAX - 1, 1);
}

static void look(int64_t old_ms)
{
    const struct usage_config config = {
        .look_ms = 1, .after_ms = 1, .old_ms = old_ms, .changed = on_changed};
    struct error err;
    cr_assert_eq(usage_start(r.a, &config, &usage, &err), 0, "%s", err.text);
    until_looked(0);
}

static void begin(void)
{
    cr_assert_eq(sem_init(&told, 0, 0), 0);
    actrig_init(&r, 2);
    use(0, 10, 0, 100);
    actrig_open(&r);
    cr_assert_eq(actrig_want(&r, "x", "card-0"), 0);
    cr_assert(actrig_reach(&r, "x", ACT_RUNNING));
    look(0);
}

static void end(void)
{
    usage_stop(usage);
    actrig_fini(&r);
    (void)sem_destroy(&told);
}

TestSuite(act_usage, .init = begin, .fini = end, .timeout = 180);

/* Once it is shown so. */
static void until_used(const char *uid, uint64_t millicores, uint64_t mib)
{
    struct usage_now now = {0};
    while (!usage_find(usage, "card-0", uid, &now) ||
           now.cpu_millicores != millicores || now.memory_mib != mib)
        (void)sem_wait(&told);
}

Test(act_usage, of_pods_and_places_is_told)
{
    struct usage_now now;
    cleanup_str struct str out = STR_INIT(1 << 16);
    struct act_pod_status pod;
    use(0, 20, 15, 300);
    until_used("x", 1500, 300);
    until_used(NULL, 1500, 300);
    cr_expect_not(usage_find(usage, "card-0", "y", &now));
    cr_expect_not(usage_find(usage, "card-9", NULL, &now));
    cr_expect_not(usage_find(NULL, "card-0", "x", &now));
    cr_expect_eq(now.version, 0);
    cr_assert(usage_find(usage, "card-0", "x", &now));
    cr_expect(now.version > 0 && now.version <= usage_version(usage));
    cr_expect(now.at_s <= clock_wall_s() && now.at_s > clock_wall_s() - 600);
    now.at_s = 0;
    cr_assert_eq(actuator_find(r.a, "lab", "x", &pod), 0);
    status_json_pod_report(&pod, &now, &out);
    cr_expect(strstr(str_text(&out),
                     "\"usage\":{\"cpuMillicores\":1500,\"memoryMib\":300,"
                     "\"at\":\"1970-01-01T00:00:00Z\"}}"),
              "%s", str_text(&out));
}

Test(act_usage, of_a_card_that_hangs_keeps_nobody_waiting)
{
    cardserver_freeze(r.cards[1], true);
    use(0, 20, 15, 300);
    until_used("x", 1500, 300);
    use(0, 30, 15, 300);
    until_used("x", 0, 300);
    cardserver_freeze(r.cards[1], false);
}

Test(act_usage, of_a_card_that_does_not_answer_is_not_known)
{
    struct usage_now now;
    usage_stop(usage);
    look(1); /* also when it only was slow to answer */
    uint64_t before = usage_version(usage);
    use(0, 20, 15, 300);
    until_used("x", 1500, 300);
    cardserver_freeze(r.cards[0], true);
    while (usage_find(usage, "card-0", "x", &now) ||
           usage_find(usage, "card-0", NULL, &now))
        (void)sem_wait(&told);
    cr_expect(now.version > before && now.version <= usage_version(usage));
    cardserver_freeze(r.cards[0], false);
    use(0, 30, 30, 300);
    until_used("x", 1500, 300);
}

Test(act_usage, that_a_runtime_does_not_tell_is_asked_again_later)
{
    enum { UNIMPLEMENTED = 12 };
    cardserver_fail(r.cards[0], "ListContainerStats", UNIMPLEMENTED, 2);
    use(0, 20, 15, 300);
    until_used("x", 1500, 300);
}
