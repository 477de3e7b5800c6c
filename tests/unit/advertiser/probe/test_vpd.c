#include "advertiser/probe/vpd.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* "BF" as name; PN=P1, SN="MT01 ", then a writable part with another SN. */
static const unsigned char sample[] = "\x82\x02\x00"
                                      "BF"
                                      "\x90\x10\x00"
                                      "PN\x02"
                                      "P1"
                                      "SN\x05"
                                      "MT01 "
                                      "RV\x00"
                                      "\x91\x05\x00"
                                      "SN\x02"
                                      "XX"
                                      "\x78";

static int find(size_t size, const char *keyword, char *value)
{
    /* on the heap, so that a sanitizer sees a read beyond the end */
    unsigned char *copy = malloc(size ? size : 1);
    cr_assert(copy);
    memcpy(copy, sample, size);
    int rc = vpd_find(copy, size, keyword, value);
    free(copy);
    return rc;
}

Test(vpd, keywords_are_found)
{
    char value[VPD_VALUE_MAX + 1] = "";
    cr_expect_eq(find(sizeof(sample) - 1, "SN", value), 0);
    cr_expect_str_eq(value, "MT01");
    cr_expect_eq(find(sizeof(sample) - 1, "PN", value), 0);
    cr_expect_str_eq(value, "P1");
    cr_expect_eq(find(sizeof(sample) - 1, "RV", value), 0);
    cr_expect_str_eq(value, "");
    cr_expect_eq(find(sizeof(sample) - 1, "EC", value), -ENOENT);
}

Test(vpd, cut_data_is_no_crash)
{
    char value[VPD_VALUE_MAX + 1] = "before";
    for (size_t size = 0; size < 5 + 3 + 16; size++) {
        int rc = find(size, "SN", value);
        cr_expect(rc == -ENOENT || rc == -EINVAL, "%zu bytes: %d", size, rc);
    }
    cr_expect_str_eq(value, "before");
    static const unsigned char damaged[] = "\x90\x05\x00SN\x09MT";
    cr_expect_eq(vpd_find(damaged, sizeof(damaged) - 1, "SN", value), -EINVAL);
    static const unsigned char erased[] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    cr_expect_eq(vpd_find(erased, sizeof(erased) - 1, "SN", value), -EINVAL);
}
