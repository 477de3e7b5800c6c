/* While the state cannot be written the extender is not ready, and says why;
 * once it can, it is. */
#include <criterion/criterion.h>

#include "extender/serve/routes_read.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/file_limit.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/extender.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

static char *dir;
static struct test_extender x;
static struct raw_reply reply;

static void set_up(void)
{
    log_set_level(LOG_ERROR + 1);
    dir = tmpdir_create();
    test_extender_start(&x, read_routes, n_read_routes, NULL);
    atomic_store(&x.app.ready, true);
    writer_stop(x.app.writer);
    test_extender_write(&x, sim_writer(dir));
    cr_assert_eq(sim_publish(x.app.writer, "n1", 4, "boot", 1), 0);
}

static void tear_down(void)
{
    test_extender_stop(&x);
    raw_reply_fini(&reply);
    tmpdir_remove(dir);
}

TestSuite(trouble, .init = set_up, .fini = tear_down);

static int bind_pod(const char *name)
{
    struct demand d = sim_pod(name, ROLE_HOST, "", 0);
    return sim_bind(x.app.writer, &d, "n1", NULL, NULL);
}

static int readyz(void)
{
    return raw_call(x.port, "GET", "/readyz", "", NULL, &reply);
}

Test(trouble, makes_it_not_ready_until_it_is_over)
{
    cr_assert_eq(bind_pod("p1"), 0);
    cr_expect_eq(readyz(), 200);
    file_limit_set(dir);
    cr_expect_lt(bind_pod("p2"), 0);
    cr_expect_eq(readyz(), 503);
    cr_expect(strstr(reply.body.data, "the state cannot be written: "), "%s",
              reply.body.data);
    writer_sweep(x.app.writer);
    cr_expect_eq(readyz(), 503, "it is tried, and fails");
    cr_expect_eq(raw_call(x.port, "GET", "/metrics", "", NULL, &reply), 200);
    cr_expect(strstr(reply.body.data, "\nbiga_store_writable 0\n"));

    file_limit_lift();
    writer_sweep(x.app.writer);
    cr_expect_eq(readyz(), 200, "nobody had to want anything");
    cr_expect_eq(raw_call(x.port, "GET", "/metrics", "", NULL, &reply), 200);
    cr_expect(strstr(reply.body.data, "\nbiga_store_writable 1\n"));
    cr_expect_eq(bind_pod("p2"), 0);
}

/* A change that succeeds is as good as one that is tried. */
Test(trouble, is_over_with_the_next_change)
{
    file_limit_set(dir);
    cr_expect_lt(bind_pod("p1"), 0);
    file_limit_lift();
    cr_expect_eq(readyz(), 503);
    cr_expect_eq(bind_pod("p1"), 0);
    cr_expect_eq(readyz(), 200);
}

/* A refusal is no trouble, and neither is a question. */
Test(trouble, is_none_when_something_is_refused)
{
    struct demand d = sim_pod("p", ROLE_HOST, "", 0);
    cr_expect_lt(sim_bind(x.app.writer, &d, "n9", NULL, NULL), 0);
    cr_expect_eq(readyz(), 200);
}

/* What silent nodes leave to be written fails, too. */
Test(trouble, is_seen_in_what_nobody_waits_for)
{
    file_limit_set(dir);
    clock_set_fake(clock_ms() + 20000);
    writer_sweep(x.app.writer);
    cr_expect_eq(readyz(), 503);
    file_limit_lift();
    writer_sweep(x.app.writer);
    cr_expect_eq(readyz(), 200);
    clock_set_fake(-1);
}
