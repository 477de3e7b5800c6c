/* What stands before a message, and the names of codes. */
#include "lib/h2/grpc_prefix.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/h2/grpc_code.h"

Test(grpc_prefix, sizes_there_and_back)
{
    static const size_t sizes[] = {0, 1, 255, 256, 65537, 16 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char prefix[GRPC_PREFIX];
        size_t size = 77;
        struct error err = {0};
        grpc_prefix(sizes[i], prefix);
        cr_expect_eq(grpc_prefix_read(prefix, 16 << 20, &size, &err), 0);
        cr_expect_eq(size, sizes[i]);
    }
}

Test(grpc_prefix, what_is_wrong_is_told)
{
    struct error err = {0};
    size_t size = 77;
    cr_expect_eq(
        grpc_prefix_read((const unsigned char *)"\1\0\0\0\1", 10, &size, &err),
        -ENOTSUP);
    cr_expect_eq(
        grpc_prefix_read((const unsigned char *)"\2\0\0\0\1", 10, &size, &err),
        -EPROTO);
    cr_expect_eq(
        grpc_prefix_read((const unsigned char *)"\0\0\0\0\13", 10, &size, &err),
        -EMSGSIZE);
    cr_expect(strstr(err.text, "11 bytes"), "%s", err.text);
    cr_expect_eq(size, 77);
}

Test(grpc_prefix, codes_have_names)
{
    cr_expect_str_eq(grpc_code_name(GRPC_OK), "OK");
    cr_expect_str_eq(grpc_code_name(GRPC_UNAUTHENTICATED), "UNAUTHENTICATED");
    cr_expect_str_eq(grpc_code_name(17), "code 17");
    cr_expect_str_eq(grpc_code_name(-1), "code -1");
}
