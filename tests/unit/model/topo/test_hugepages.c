#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/topo/hugepages.h"

#define KI UINT64_C(1024)

Test(hugepages, sizes_are_what_kubernetes_calls_them)
{
    static const struct {
        const char *text;
        uint64_t page;
    } good[] = {{"4Ki", 4 * KI},
                {"64Ki", 64 * KI},
                {"2Mi", 2 * KI * KI},
                {"512Mi", 512 * KI * KI},
                {"1Gi", KI * KI * KI},
                {"16Gi", 16 * KI * KI * KI},
                {"512Gi", 512 * KI * KI * KI}};
    static const char *const bad[] = {
        "",      "2",    "2M",     "Mi",     "3Mi",          "0Mi", "02Mi",
        "-2Mi",  "2Mi ", "2Mib",   "2048Ki", "2Ki",          "1Ti", "1.5Gi",
        "2MiMi", "+2Mi", "1024Gi", "2mi",    "99999999999Ki"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char text[HUGEPAGES_TEXT_SIZE];
        uint64_t page = 0;
        cr_expect(hugepages_page_parse(good[i].text, &page), "%s",
                  good[i].text);
        cr_expect_eq(page, good[i].page, "%s", good[i].text);
        hugepages_page_text(page, text);
        cr_expect_str_eq(text, good[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t page = 7;
        cr_expect(!hugepages_page_parse(bad[i], &page), "%s", bad[i]);
        cr_expect_eq(page, 7u);
    }
}

Test(hugepages, amounts_are_whole_pages)
{
    uint64_t page = 2 * KI * KI, bytes = 7;
    cr_expect(hugepages_amount_parse("2Mi", page, &bytes));
    cr_expect_eq(bytes, page);
    cr_expect(hugepages_amount_parse("3Gi", page, &bytes));
    cr_expect_eq(bytes, 1536 * page);
    bytes = 7;
    cr_expect(!hugepages_amount_parse("3Mi", page, &bytes));
    cr_expect(!hugepages_amount_parse("0Mi", page, &bytes));
    cr_expect(!hugepages_amount_parse("many", page, &bytes));
    cr_expect_eq(bytes, 7u);
}

Test(hugepages, they_add_up)
{
    struct hugepages h = {.n = 0};
    cr_expect_eq(hugepages_of(&h, KI), 0u);
    cr_expect(hugepages_add(&h, KI, 2) && hugepages_add(&h, KI, 3));
    cr_expect(hugepages_raise(&h, KI, 4) && hugepages_raise(&h, 2 * KI, 6));
    cr_expect_eq(hugepages_of(&h, KI), 5u);
    cr_expect_eq(hugepages_of(&h, 2 * KI), 6u);
    cr_expect(hugepages_add(&h, KI, UINT64_MAX));
    cr_expect_eq(hugepages_of(&h, KI), UINT64_MAX);
    cr_expect(hugepages_add(&h, 4 * KI, 1) && hugepages_add(&h, 8 * KI, 1));
    cr_expect(!hugepages_add(&h, 16 * KI, 1));
    cr_expect(!hugepages_raise(&h, 16 * KI, 1));
    cr_expect(hugepages_raise(&h, 8 * KI, 2));
    cr_expect_eq(h.n, 4u);
}
