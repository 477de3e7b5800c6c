#include "lib/io/footprint.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"

/* Pages of files that this process has mapped and in memory. */
static long file_pages(void)
{
    long size, resident, shared = -1;
    cleanup_file FILE *f = fopen("/proc/self/statm", "re");
    cr_assert(f && fscanf(f, "%ld %ld %ld", &size, &resident, &shared) == 3);
    return shared;
}

Test(footprint, pages_that_nobody_uses_are_given_back)
{
    long before = file_pages();
    footprint_trim();
    cr_expect_lt(file_pages(), before);
}

static atomic_bool stopping;

static void *work(void *arg)
{
    atomic_ulong *n = arg;
    while (!atomic_load(&stopping)) {
        cleanup_free char *text = xasprintf("%lu and %s", *n, "more");
        cr_assert_gt(strlen(text), 8);
        atomic_fetch_add(n, 1);
    }
    return NULL;
}

/* The program under everybody's feet. */
Test(footprint, threads_go_on, .timeout = 180)
{
    pthread_t threads[4];
    atomic_ulong n[4] = {0};
    footprint_limit();
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &n[i]), 0);
    for (int i = 0; i < 200; i++)
        footprint_trim();
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        for (unsigned long seen = atomic_load(&n[i]);
             atomic_load(&n[i]) == seen;)
            (void)sched_yield();
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        (void)pthread_join(threads[i], NULL);
}
