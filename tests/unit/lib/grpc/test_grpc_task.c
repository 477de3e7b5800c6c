/* How long a call waits before it looks what has become of it. */
#include <criterion/criterion.h>

#include "lib/grpc/grpc_private.h"
#include "lib/io/clock.h"

enum { SOON_MS = 50, LONG_MS = 60000, RARE_MS = 1000 };

static int wait_of(bool tls, int64_t due_ms)
{
    struct grpc g = {.to.tls = tls};
    const struct grpc_task t = {.g = &g, .due_ms = due_ms};
    return grpc_task_poll_ms(&t);
}

Test(grpc_task, one_that_waits_long_looks_rarely)
{
    cr_expect_geq(wait_of(true, clock_ms() + LONG_MS), RARE_MS);
    cr_expect_geq(wait_of(true, INT64_MAX), RARE_MS);
}

Test(grpc_task, looks_once_it_is_late)
{
    cr_expect_leq(wait_of(true, clock_ms() + SOON_MS), SOON_MS + 1);
    cr_expect_eq(wait_of(true, clock_ms() - LONG_MS), 0);
    cr_expect_eq(wait_of(false, clock_ms() - LONG_MS), 0);
}

Test(grpc_task, cleartext_looks_often)
{
    cr_expect_eq(wait_of(false, INT64_MAX), GRPC_PLAIN_MS);
}
