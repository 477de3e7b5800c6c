/* Labels of a pod's JSON. */
#include "extender/pods/pod_labels.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

Test(pod_labels, are_found_where_they_stand)
{
    static const char *const cases[][2] = {
        {"{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{\"labels\":\"x\"},"
         "\"labels\":{\"a\": \"b\"}},\"spec\":{}}",
         "{\"a\": \"b\"}"},
        {"{\"metadata\":{\"labels\":{}}}", "{}"},
        {"{\"metadata\":{\"labels\":null}}", ""},
        {"{\"metadata\":{\"name\":\"x\"},\"labels\":{\"a\":\"b\"}}", ""},
        {"{\"spec\":{\"metadata\":{\"labels\":{\"a\":\"b\"}}}}", ""},
        {"{\"metadata\":7}", ""},
        {"[]", ""},
        {"{\"metadata\":{\"labels\":{\"a\":", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jtext got = pod_labels_find(cases[i][0], strlen(cases[i][0]));
        cr_expect_eq(got.size, strlen(cases[i][1]), "%s", cases[i][0]);
        cr_expect_eq(memcmp(got.data, cases[i][1], got.size), 0, "%s",
                     cases[i][0]);
    }
}
