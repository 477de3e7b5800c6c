/* What the router itself tells the kubelet. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/told.h"
#include "tests/lib/router/criwire.h"

enum { HANDLERS = CRI_StatusResponse_runtime_handlers };

static void add_handler(struct str *m, const char *name)
{
    size_t handler = proto_open(m, HANDLERS);
    proto_add_text(m, CRI_RuntimeHandler_name, name);
    proto_close(m, proto_open(m, CRI_RuntimeHandler_features));
    proto_close(m, handler);
}

/* The names of all handlers, each in brackets. */
static const char *handlers(const struct str *m, struct str *names)
{
    struct proto_reader r;
    struct proto_field f, name;
    str_reset(names);
    proto_reader_init(&r, criwire_of(m));
    while (proto_next(&r, &f, NULL) > 0) {
        if (f.number != HANDLERS)
            continue;
        bool has = proto_find(f.bytes, CRI_RuntimeHandler_name, PROTO_BYTES,
                              &name, NULL) > 0;
        str_addf(names, "[%.*s]", has ? (int)name.bytes.size : 0,
                 has ? name.bytes.data : "");
    }
    return str_text(names);
}

Test(told, status_has_our_handler_and_the_default)
{
    static const struct {
        const char *home[3]; /* NULL: the end */
        const char *told;
    } all[] = {
        {{NULL}, "[][xpu]"}, /* containerd 1.6 lists none */
        {{"", "runc"}, "[][runc][xpu]"},
        {{"runc"}, "[runc][][xpu]"},
        {{"xpu", ""}, "[][xpu]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        cleanup_str struct str home = STR_INIT(1024), out = STR_INIT(1024),
                               names = STR_INIT(1024);
        struct error err = {0};
        proto_close(&home, proto_open(&home, CRI_StatusResponse_status));
        for (size_t k = 0; k < 3 && all[i].home[k]; k++)
            add_handler(&home, all[i].home[k]);
        criwire_add_newer(&home, "status");
        cr_assert_eq(told_status(criwire_of(&home), "xpu", &out, &err), 0);
        cr_expect_str_eq(handlers(&out, &names), all[i].told);
        cr_expect_eq(criwire_count(criwire_of(&out), CRI_StatusResponse_status),
                     1);
        cr_expect_eq(criwire_newer(criwire_of(&out), "status"), 1);
    }
}

/* A pod that needs user namespaces is refused by the kubelet. */
Test(told, our_handler_has_no_features)
{
    cleanup_str struct str home = STR_INIT(1024), out = STR_INIT(1024);
    struct error err = {0};
    add_handler(&home, "xpu");
    cr_assert_eq(told_status(criwire_of(&home), "xpu", &out, &err), 0);
    struct proto_bytes handler = CRIWIRE_IN(&out, HANDLERS);
    cr_expect_eq(criwire_count(handler, CRI_RuntimeHandler_features), 0);
}

Test(told, a_status_that_is_none)
{
    cleanup_str struct str out = STR_INIT(1024);
    struct error err = {0};
    cr_expect_eq(
        told_status((struct proto_bytes){"\x08", 1}, "xpu", &out, &err),
        -EPROTO);
    cr_expect(strstr(err.text, "the home's reply to Status"), "%s", err.text);
}

Test(told, values)
{
    cleanup_str struct str out = STR_INIT(1024);
    told_id(&out, CRIWIRE_ID);
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), CRIWIRE_ID));
    str_reset(&out);
    told_url(&out, "http://a");
    cr_expect(proto_equals(CRIWIRE_IN(&out, 1), "http://a"));
}

/* --- lists ---------------------------------------------------------------- */

static struct list_item item_of(const struct str *m)
{
    return (struct list_item){CRIWIRE_ID, CRIWIRE_ID, criwire_of(m)};
}

Test(told, an_end_is_the_state_and_its_times_alone)
{
    cleanup_str struct str reply = STR_INIT(1024), out = STR_INIT(1024),
                           must = STR_INIT(1024);
    size_t status = proto_open(&reply, CRI_ContainerStatusResponse_status);
    proto_add_text(&reply, CRI_ContainerStatus_id, "ab");
    proto_add_text(&reply, CRI_ContainerStatus_log_path, "/var/log/x");
    for (int i = 0; i < 2; i++) {
        struct str *m = i ? &must : &reply;
        proto_add_varint(m, CRI_ContainerStatus_state, 2);
        proto_add_varint(m, CRI_ContainerStatus_finished_at, 7);
        proto_add_varint(m, CRI_ContainerStatus_exit_code, 137);
        proto_add_text(m, CRI_ContainerStatus_reason, "OOMKilled");
    }
    criwire_add_newer(&reply, "status");
    proto_close(&reply, status);
    cr_assert_eq(told_end(criwire_of(&reply), &out, NULL), 0);
    cr_assert_eq(out.size, must.size);
    cr_assert_eq(memcmp(out.data, must.data, must.size), 0);
}

Test(told, a_list_has_the_homes_and_the_remotes)
{
    cleanup_str struct str home = STR_INIT(1024), out = STR_INIT(TOLD_MAX),
                           item = STR_INIT(1024);
    struct error err = {0};
    size_t size = 1000;
    struct told_list l = {.method = method_get(METHOD_LIST_CONTAINERS),
                          .filter = NULL,
                          .out = &out};
    proto_close(&home, proto_open(&home, LIST_ITEMS));
    criwire_add_newer(&home, "list");
    proto_add_text(&item, CRI_Container_id, CRIWIRE_ID);
    struct list_item it = item_of(&item);
    cr_assert_eq(told_list_begin(&l, criwire_of(&home), &size, 1, &err), 0);
    told_list_remote(&l);
    told_list_add(&l, &it);
    told_list_add(&l, &it);
    cr_expect_eq(criwire_count(criwire_of(&out), LIST_ITEMS), 3);
    cr_expect_eq(criwire_newer(criwire_of(&out), "list"), 1);
    cr_expect_eq(l.n_left_out, 0);
}

Test(told, a_list_has_what_passes)
{
    static const struct cri_pair label = {"k", "v"};
    const struct request_filter filter = {
        .id = "", .sandbox_id = "", .labels = {&label, 1}};
    cleanup_str struct str out = STR_INIT(TOLD_MAX), item = STR_INIT(1024);
    struct error err = {0};
    size_t size = 1000;
    struct told_list l = {.method = method_get(METHOD_LIST_POD_SANDBOX),
                          .filter = &filter,
                          .out = &out};
    struct list_item it = item_of(&item);
    cr_assert_eq(
        told_list_begin(&l, (struct proto_bytes){"", 0}, &size, 1, &err), 0);
    told_list_remote(&l);
    told_list_add(&l, &it);
    cr_expect_eq(out.size, 0);
    proto_add_pair(&item, CRI_PodSandbox_labels, "k", "v");
    it = item_of(&item);
    told_list_add(&l, &it);
    cr_expect_eq(criwire_count(criwire_of(&out), LIST_ITEMS), 1);
    cr_expect_eq(l.n_left_out, 0);
}

/* How many of a remote's items are told, each of 1 MiB and what it takes. */
static size_t tell(const size_t *counts, size_t n, size_t home,
                   size_t *ret_last)
{
    static char large[1 << 20];
    static char *homes;
    cleanup_str struct str out = STR_INIT(TOLD_MAX);
    struct told_list l = {.method = method_get(METHOD_LIST_CONTAINERS),
                          .filter = NULL,
                          .out = &out};
    struct list_item it = {CRIWIRE_ID, CRIWIRE_ID, {large, sizeof large}};
    struct error err = {0};
    size_t sizes[8];
    homes = xcalloc(home + 1, 1);
    for (size_t i = 0; i < n; i++)
        sizes[i] = counts[i] * told_list_size(sizeof large);
    cr_assert_eq(
        told_list_begin(&l, (struct proto_bytes){homes, home}, sizes, n, &err),
        0, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        size_t before = l.n_left_out;
        told_list_remote(&l);
        for (size_t k = 0; k < counts[i]; k++)
            told_list_add(&l, &it);
        *ret_last = counts[i] - (l.n_left_out - before);
    }
    cr_expect_not(out.overflow);
    cr_expect_leq(out.size, TOLD_MAX);
    free(homes);
    return l.n_left_out;
}

Test(told, a_remote_that_tells_much_takes_nothing_from_others)
{
    size_t last;
    /* all fit, however unequal they are */
    cr_expect_eq(tell((const size_t[]){14, 1}, 2, 0, &last), 0);
    cr_expect_eq(last, 1);
    /* the first is cut, the others are whole */
    cr_expect_eq(tell((const size_t[]){100, 3, 2}, 3, 0, &last), 90);
    cr_expect_eq(last, 2);
    /* two are cut alike */
    cr_expect_eq(tell((const size_t[]){100, 100, 1}, 3, 0, &last), 200 - 14);
    cr_expect_eq(last, 1);
    cr_expect_eq(tell((const size_t[]){4, 4}, 2, 8 << 20, &last), 2);
    cr_expect_eq(last, 3);
    cr_expect_eq(tell((const size_t[]){1}, 1, TOLD_MAX, &last), 1);
}

Test(told, a_home_that_is_too_large_is_relayed)
{
    cleanup_free char *large = xcalloc(TOLD_MAX + 1, 1);
    cleanup_str struct str out = STR_INIT(TOLD_MAX);
    struct told_list l = {.method = method_get(METHOD_LIST_CONTAINERS),
                          .filter = NULL,
                          .out = &out};
    struct error err = {0};
    cr_expect_eq(told_list_begin(&l, (struct proto_bytes){large, TOLD_MAX + 1},
                                 NULL, 0, &err),
                 -EMSGSIZE);
    cr_expect_eq(out.size, 0);
}
