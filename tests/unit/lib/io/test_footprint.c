#include "lib/io/footprint.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

enum { PAGE = 4096, PAGES = 64 };
static const unsigned char table[PAGES * PAGE] = {1}; /* as in the file */
static const char *const names[] = {"one", "two"};    /* by the loader */

/* Is the page there, for this process? */
static bool is_present(const volatile unsigned char *at)
{
    uint64_t entry = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    off_t pos =
        (off_t)((uintptr_t)at / (uintptr_t)getpagesize() * sizeof entry);
    cr_assert_eq(pread(fd, &entry, sizeof entry, pos), (ssize_t)sizeof entry);
    (void)close(fd); /* read only */
    return entry >> 63;
}

Test(footprint, tables_that_nobody_reads_are_given_back)
{
    const volatile unsigned char *first = table,
                                 *middle = &table[PAGES / 2 * PAGE];
    cr_assert_eq(*middle, 0);
    cr_assert(is_present(middle));
    footprint_trim();
    cr_expect_not(is_present(middle));
    cr_expect_eq(*first, 1);
    cr_expect_str_eq(names[*first], "two");
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
