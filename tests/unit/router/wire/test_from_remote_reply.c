/* Small replies of a remote: ids, addresses, and those that are only checked.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/from_remote.h"
#include "tests/lib/router/criwire.h"

Test(from_remote_reply, ids)
{
    static const char upper[] = "0123456789ABCDEF0123456789abcdef"
                                "0123456789abcdef0123456789abcdef";
    static const char *const bad[] = {"", "abc", CRIWIRE_ID "0", upper};
    char id[FROM_REMOTE_ID_SIZE + 1];
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str m = STR_INIT(1024);
        proto_add_text(&m, 1, bad[i]);
        cr_expect_eq(from_remote_id(criwire_of(&m), id, &err), -EPROTO, "%s",
                     bad[i]);
    }
    cleanup_str struct str m = STR_INIT(1024);
    proto_add_text(&m, 1, CRIWIRE_ID);
    cr_assert_eq(from_remote_id(criwire_of(&m), id, &err), 0);
    cr_expect_str_eq(id, CRIWIRE_ID);
}

Test(from_remote_reply, urls)
{
    static char large[FROM_REMOTE_URL_MAX + 2];
    const char *const bad[] = {"", "http://a/ b", "http://a/\r\nHost: b",
                               "http://\xc3\xa4/", large};
    char url[FROM_REMOTE_URL_MAX + 1];
    struct error err = {0};
    memset(large, 'a', sizeof large - 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_str struct str m = STR_INIT(1 << 16);
        proto_add_text(&m, 1, bad[i]);
        cr_expect_eq(from_remote_url(criwire_of(&m), url, &err), -EPROTO, "%zu",
                     i);
    }
    cleanup_str struct str m = STR_INIT(1024);
    proto_add_text(&m, 1, "http://127.0.0.1:10010/exec/t-1");
    cr_assert_eq(from_remote_url(criwire_of(&m), url, &err), 0);
    cr_expect_str_eq(url, "http://127.0.0.1:10010/exec/t-1");
}

Test(from_remote_reply, others_are_checked)
{
    cleanup_str struct str m = STR_INIT(1024), out = STR_INIT(1024);
    struct error err = {0};
    proto_add_text(&m, CRI_PullImageResponse_image_ref, "sha256:1");
    criwire_add_newer(&m, "pull");
    cr_assert_eq(from_remote_checked(method_get(METHOD_PULL_IMAGE),
                                     criwire_of(&m), &out, &err),
                 0);
    cr_expect_eq(out.size, m.size);
    cr_expect_eq(from_remote_checked(method_get(METHOD_STOP_CONTAINER),
                                     criwire_of(&m), &out, &err),
                 0);
    str_reset(&m);
    proto_add_varint(&m, CRI_ExecSyncResponse_stdout, 1);
    cr_expect_eq(from_remote_checked(method_get(METHOD_EXEC_SYNC),
                                     criwire_of(&m), &out, &err),
                 -EPROTO);
}
