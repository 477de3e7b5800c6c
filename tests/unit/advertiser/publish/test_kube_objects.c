#include "advertiser/publish/kube_objects.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

#define META \
    "\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\""

static struct kube_objects read_(const char *json)
{
    struct kube_objects o;
    struct error err;
    cr_assert_eq(kube_objects_read(json, strlen(json), &o, &err), 0, "%s",
                 err.text);
    return o;
}

Test(kube_objects, reads_a_node)
{
    struct kube_objects o = read_(
        "{\"kind\":\"Node\"," META
        ",\"labels\":{\"a\":\"b\"},\"annotations\":{\"x\":\"y\","
        "\"biga.dev/topology\":\"36ca84eee1605ee6\"}},\"spec\":{\"taints\":"
        "[]},\"status\":{\"images\":[{\"names\":[\"a\"]}]}}");
    cr_assert_str_eq(o.name, "n");
    cr_assert_str_eq(o.uid, "u");
    cr_assert_str_eq(o.version, "7");
    cr_assert_str_eq(o.topology, "36ca84eee1605ee6");
    cr_assert_eq(o.generation, 0);
}

Test(kube_objects, reads_owners_and_the_pool)
{
    struct kube_objects o = read_(
        "{" META ",\"ownerReferences\":[{\"kind\":\"Pod\",\"uid\":\"p\"},"
        "{\"uid\":\"q\",\"name\":\"n\",\"kind\":\"Node\"}]},\"spec\":{"
        "\"pool\":{\"name\":\"n\",\"generation\":12}}}");
    cr_assert_str_eq(o.owner, "q");
    cr_assert_eq(o.n_owners, 2);
    cr_assert_eq(o.generation, 12);
    o = read_("{" META ",\"ownerReferences\":null,\"annotations\":null},"
              "\"spec\":null}");
    cr_assert_eq(o.n_owners, 0);
    cr_assert_str_eq(o.owner, "");
}

#define FIELDS(manager, time)                                                \
    "{\"manager\":\"" manager "\",\"operation\":\"Update\",\"time\":\"" time \
    "\",\"fieldsV1\":{\"f:spec\":{\"f:pool\":{}}}}"

Test(kube_objects, reads_who_else_has_changed_it_last)
{
    static const struct {
        const char *fields, *editor;
    } rows[] = {
        {"[" FIELDS("biga", "2026-01-02T03:04:05Z") "]", ""},
        {"[" FIELDS("biga", "2026-01-02T03:04:09Z") "," FIELDS(
             "kubectl-edit", "2026-01-02T03:04:05Z") "]",
         "kubectl-edit"},
        {"[" FIELDS("a\\u0062", "2026-01-02T03:04:07Z") "," FIELDS(
             "c", "2026-01-02T03:04:05Z") "]",
         "ab"},
        {"[{\"manager\":\"timeless\"}]", "timeless"},
        {"[]", ""},
        {"null", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cleanup_str struct str text = STR_INIT(4096);
        str_addf(&text, "{" META ",\"managedFields\":%s}}", rows[i].fields);
        cr_expect_str_eq(read_(str_text(&text)).editor, rows[i].editor, "%s",
                         rows[i].fields);
    }
    cleanup_str struct str text = STR_INIT(4096);
    str_addf(&text, "{" META ",\"managedFields\":[{\"manager\":\"%0129d\"}]}}",
             0);
    cr_expect_str_eq(read_(str_text(&text)).editor, "", "longer than allowed");
}

Test(kube_objects, refuses_what_it_could_not_write_over)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":5,\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{" META "}} x",
        "{" META ",\"uid\":\"0123456789012345678901234567890123456789"
        "0123456789012345678901234\"}}",
        "{" META "},\"spec\":{\"pool\":{\"generation\":\"1\"}}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kube_objects o;
        struct error err = {0};
        cr_expect_eq(kube_objects_read(texts[i], strlen(texts[i]), &o, &err),
                     -EINVAL, "%s", texts[i]);
        cr_expect(*err.text);
    }
}

/* What is no slice of ours is listed all the same, to be replaced. */
Test(kube_objects, lists_what_it_cannot_decode_and_not_without_end)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    str_add(&text, "{\"metadata\":{},\"items\":[");
    for (int i = 0; i < KUBE_OBJECTS_SLICES_MAX + 5; i++)
        str_addf(&text, "%s{" META "},\"spec\":{}}", i ? "," : "");
    str_add(&text, "]}");
    cleanup_with(kube_objects_slices) struct kube_objects_slices *all = NULL;
    struct error err;
    cr_assert_eq(kube_objects_read_slices(text.data, text.size, &all, &err), 0,
                 "%s", err.text);
    cr_assert_eq(all->n, KUBE_OBJECTS_SLICES_MAX);
    cr_assert(all->more);
    cr_assert_null(all->items[0].slice);

    cleanup_with(kube_objects_slices) struct kube_objects_slices *none = NULL;
    const char *empty = "{\"items\":null}";
    cr_assert_eq(kube_objects_read_slices(empty, strlen(empty), &none, &err),
                 0);
    cr_assert_eq(none->n, 0);
    cr_assert_eq(kube_objects_read_slices("{\"items\":[1]}", 13, &none, &err),
                 -EINVAL);
}
