/* The table of calls: each once, and where those go that must not go wrong. */
#include <criterion/criterion.h>
#include <string.h>

#include "router/wire/method.h"

Test(method, has_each_call_once)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        const struct method *m = method_get((enum method_id)i);
        cr_assert_not_null(m->path, "%d", i);
        cr_expect_eq((int)m->id, i);
        cr_expect_eq(method_find(m->path), m, "%s", m->path);
    }
    cr_expect_eq(METHOD_COUNT, 43);
}

Test(method, what_is_newer_is_the_homes)
{
    cr_expect_null(method_find("/runtime.v1.RuntimeService/Freeze"));
    cr_expect_null(method_find("/runtime.v2.RuntimeService/Version"));
    cr_expect_null(method_find("/runtime.v1.ImageService/Version"));
    cr_expect_null(method_find(""));
    cr_expect_null(method_find(NULL));
}

Test(method, names)
{
    cr_expect_str_eq(method_name(method_get(METHOD_RUN_POD_SANDBOX)),
                     "RunPodSandbox");
    cr_expect_str_eq(method_name(method_get(METHOD_IMAGE_FS_INFO)),
                     "ImageFsInfo");
}

/* A list that a remote answers waits for it, a call by id that goes home by
 * mistake ends with NotFound, which reads as gone. */
Test(method, ways)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        const struct method *m = method_get((enum method_id)i);
        const char *name = method_name(m);
        if (m->key == METHOD_BY_FILTER)
            cr_expect_eq(m->way, METHOD_MERGE, "%s", name);
        if (m->key == METHOD_BY_SANDBOX || m->key == METHOD_BY_CONTAINER)
            cr_expect_neq(m->way, METHOD_HOME, "%s", name);
        if (strncmp(name, "Stream", 6) == 0)
            cr_expect(m->stream, "%s", name);
        if (m->changes)
            cr_expect(m->way != METHOD_KNOWN && m->way != METHOD_MERGE, "%s",
                      name);
    }
    cr_expect_eq(method_get(METHOD_IMAGE_FS_INFO)->way, METHOD_HOME);
    cr_expect_eq(method_get(METHOD_RESTORE_POD)->way, METHOD_REFUSE);
}
