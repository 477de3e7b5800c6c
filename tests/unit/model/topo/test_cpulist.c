#include "model/topo/cpulist.h"

#include <criterion/criterion.h>

#include "lib/base/mem.h"

static struct cpulist parsed(const char *text)
{
    struct cpulist list = {0};
    struct error err = {0};
    cr_assert_eq(cpulist_parse(text, &list, &err), 0, "%s: %s", text, err.text);
    return list;
}

Test(cpulist, texts_come_back)
{
    static const char *const texts[] = {
        "",
        "0",
        "0-15",
        "0-15;32-47",
        "0-30:2;1-31:2",
        "0-7,16-23;8-15",
        "0,4,2,6,1,5,3,7",
        "0,2",
        "0-46:2;48-94:2",
        "65535",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct cpulist list = parsed(texts[i]);
        char text[CPULIST_TEXT_MAX + 1];
        cr_assert(cpulist_format(&list, text));
        cr_expect_str_eq(text, texts[i]);
    }
}

Test(cpulist, rows_are_threads)
{
    struct cpulist list = parsed("0-3,8-11;16-19");
    cr_expect_eq(list.n_rows, 2);
    cr_expect_eq(list.n_cpus, 12);
    cr_expect_eq(list.sizes[0], 8);
    cr_expect_eq(list.sizes[1], 4);
    cr_expect_eq(list.cpus[4], 8);
    cr_expect_eq(list.cpus[8], 16);
}

Test(cpulist, what_is_no_list_is_refused)
{
    static const char *const texts[] = {
        " ",
        "-",
        "1-",
        "3-2",
        "1-1",
        "0-15;",
        ";0",
        "0,",
        ",0",
        "0;1-2",
        "0-4:3",
        "0-4:1",
        "0-4:0",
        "01",
        "65536",
        "0-65535",
        "0;1;2;3;4;5;6;7;8",
        "x",
        "0-3 ",
        "0-3;4-8",
        "123456",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct cpulist list = {.n_cpus = 77};
        struct error err = {0};
        cr_expect_eq(cpulist_parse(texts[i], &list, &err), -EINVAL, "%s",
                     texts[i]);
        cr_expect(strstr(err.text, "must be CPUs like"), "%s", err.text);
        cr_expect_eq(list.n_cpus, 77);
    }
}

Test(cpulist, a_cpu_is_there_once)
{
    struct cpulist list;
    struct error err = {0};
    cr_expect_eq(cpulist_parse("0-7;4-11", &list, &err), -EINVAL);
    cr_expect(strstr(err.text, "which has CPU 4 twice"), "%s", err.text);
}

Test(cpulist, a_long_text_is_not_cut)
{
    struct cpulist list = {.n_rows = 1, .n_cpus = 40, .sizes = {40}};
    char text[CPULIST_TEXT_MAX + 1] = "untouched";
    for (uint16_t i = 0; i < 40; i++)
        list.cpus[i] = (uint16_t)(i * i);
    cr_expect_not(cpulist_format(&list, text));
    cr_expect_str_eq(text, "untouched");
}

static void expect_parts(const char *text, size_t n, const char *const *parts)
{
    struct cpulist list = parsed(text);
    for (size_t i = 0; i < n; i++) {
        cleanup_str struct str out = STR_INIT(4096);
        cr_assert(cpulist_part(&list, i, n, &out));
        cr_expect_str_eq(str_text(&out), parts[i], "%s %zu/%zu: %s", text, i, n,
                         str_text(&out));
    }
}

Test(cpulist, parts_are_whole_cores)
{
    expect_parts("0-15;32-47", 1, (const char *const[]){"0-15,32-47"});
    expect_parts("0-15;32-47", 2,
                 (const char *const[]){"0-7,32-39", "8-15,40-47"});
    expect_parts("0-30:2;1-31:2", 2, (const char *const[]){"0-15", "16-31"});
    expect_parts("0-6:2", 3, (const char *const[]){"0", "2", "4,6"});
    expect_parts("0-1;2", 2, (const char *const[]){"0,2", "1"});
}

Test(cpulist, threads_are_parted_when_cores_are_too_few)
{
    struct cpulist list = parsed("0;1");
    cleanup_str struct str out = STR_INIT(64);
    expect_parts("0;1", 2, (const char *const[]){"0", "1"});
    cr_expect_not(cpulist_part(&list, 0, 3, &out));
    cr_expect_eq(out.size, 0);
}

/* No CPU is in two parts, and none is lost. */
Test(cpulist, parts_are_disjoint_and_whole)
{
    static const char *const texts[] = {"0-6", "0-15;32-47", "0-9,20-22;40-45"};
    for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
        struct cpulist list = parsed(texts[t]);
        for (size_t n = 1; n <= list.n_cpus; n++) {
            uint8_t seen[64] = {0};
            size_t total = 0;
            for (size_t i = 0; i < n; i++) {
                cleanup_str struct str out = STR_INIT(4096);
                struct cpulist part;
                cr_assert(cpulist_part(&list, i, n, &out));
                part = parsed(str_text(&out));
                cr_expect_gt(part.n_cpus, 0);
                for (size_t k = 0; k < part.n_cpus; k++)
                    cr_expect_eq(seen[part.cpus[k]]++, 0);
                total += part.n_cpus;
            }
            cr_expect_eq(total, list.n_cpus);
        }
    }
}
