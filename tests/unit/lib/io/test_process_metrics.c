#include "lib/io/process_metrics.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As proc(5) has it: fields 3 to 52 behind the name. */
#define STAT                                                                   \
    "4711 (a) b (c)) S 1 4711 4711 0 -1 4194304 1 2 3 4 250 150 5 6 20 0 7 0 " \
    "12345 104857600 2560 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0" \
    " 0 0 0 0 0 0 0 0 0 0 0 0\n"

Test(process_metrics, reads_what_proc_says_of_a_process)
{
    double ticks = (double)sysconf(_SC_CLK_TCK);
    struct process_facts f;
    cr_assert(process_facts_read(STAT, 1000, &f));
    cr_assert_float_eq(f.cpu_s, 400 / ticks, 1e-9);
    cr_assert_float_eq(f.started_s, 1000 + 12345 / ticks, 1e-9);
    cr_assert_eq(f.n_threads, 7);
    cr_assert_eq(f.virtual_bytes, 104857600);
    cr_assert_eq(f.resident_bytes, 2560 * (uint64_t)sysconf(_SC_PAGESIZE));
}

Test(process_metrics, takes_nothing_from_another_text)
{
    struct process_facts f;
    cr_assert_not(process_facts_read("", 0, &f));
    cr_assert_not(process_facts_read("1 (x) S 1 2 3", 0, &f));
    cr_assert_not(process_facts_read("no bracket", 0, &f));
}

static double value_of(const char *text, const char *name)
{
    cr_assert_not_null(strstr(text, name), "%s", text);
    return strtod(strstr(text, name) + strlen(name), NULL);
}

Test(process_metrics, tells_of_this_process)
{
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    process_metrics_write(&out);
    const char *text = str_text(&out);
    double began = value_of(text, "\nprocess_start_time_seconds ");
    cr_assert_leq(began, (double)time(NULL) + 2);
    cr_assert_gt(began, (double)time(NULL) - 86400);
    cr_assert_gt(value_of(text, "\nprocess_resident_memory_bytes "), 100000);
    cr_assert_geq(value_of(text, "\nprocess_open_fds "), 3);
    str_fini(&out);
}

Test(process_metrics, tells_the_version)
{
    struct str out = STR_INIT(STR_MAX_DEFAULT);
    process_metrics_build("biga_x_build_info", &out);
    cr_assert_str_eq(str_text(&out),
                     "# HELP biga_x_build_info The version of the program; "
                     "always 1.\n# TYPE biga_x_build_info gauge\n"
                     "biga_x_build_info{version=\"" BIGA_VERSION "\"} 1\n");
    str_fini(&out);
}
