/* What a remote had last, for a router that starts while it is away. */
#include <criterion/criterion.h>
#include <string.h>

#include "router/remote/remote_private.h"
#include "router/remote/remote_saved.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"

static struct remote_blob *blob(const char *text)
{
    return remote_blob((struct proto_bytes){text, strlen(text)});
}

static struct remote_view *a_view(void)
{
    struct remote_view *v = remote_view_create();
    v->lists[0] = blob("sandboxes");
    v->lists[1] = blob("");
    v->n = 2;
    v->items = xcalloc(2, sizeof *v->items);
    v->items[0] = (struct remote_item){
        .id = "aa", .sandbox = true, .state = 1, .status = blob("status")};
    v->items[1] =
        (struct remote_item){.id = "ab", .sandbox_id = "aa", .state = 3};
    return v;
}

static bool is(struct proto_bytes bytes, const char *text)
{
    return proto_equals(bytes, text);
}

Test(remote_saved, is_the_same_again)
{
    cleanup_str struct str bytes = STR_INIT(1 << 16);
    cleanup_with(remote_view) struct remote_view *v = a_view();
    remote_saved_write(v, &bytes);
    cleanup_with(remote_view) struct remote_view *back =
        remote_saved_read(bytes.data, bytes.size);
    cr_assert_not_null(back);
    cr_assert(is(remote_view_list(back, method_get(METHOD_LIST_POD_SANDBOX)),
                 "sandboxes"));
    cr_assert(
        is(remote_view_list(back, method_get(METHOD_LIST_CONTAINERS)), ""));
    cr_assert(is(remote_view_status(back, "aa"), "status"));
    cr_assert(is(remote_view_status(back, "ab"), ""));
    cr_assert_eq(back->n, 2);
    cr_assert_eq(back->items[1].state, 3);
    cr_assert_str_eq(back->items[1].sandbox_id, "aa");
    cr_assert_eq(remote_view_time(back), 0, "it was not listed now");
}

Test(remote_saved, damage_is_nothing)
{
    cleanup_str struct str bytes = STR_INIT(1 << 16);
    cleanup_with(remote_view) struct remote_view *v = a_view();
    remote_saved_write(v, &bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 4;
        cr_assert_null(remote_saved_read(bytes.data, bytes.size), "byte %zu",
                       i);
        bytes.data[i] ^= 4;
        cr_assert_null(remote_saved_read(bytes.data, i), "%zu bytes", i);
    }
    cr_assert_null(remote_saved_load("/nowhere/at/all"));
}

static size_t list_size(struct remoterig *r)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view(r->remote);
    return remote_view_list(v, method_get(METHOD_LIST_CONTAINERS)).size;
}

Test(remote_saved, a_router_that_starts_while_it_is_away_knows)
{
    struct remoterig r;
    struct error err = {0};
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    remoterig_open_saved(&r);
    const struct kept s = keeprig_sandbox("u-1", 0);
    cr_assert_eq(remoterig_make(&r, &s, sandbox, &err), 0, "%s", err.text);
    const struct kept c = keeprig_container("u-1", sandbox, "c", 0);
    cr_assert_eq(remoterig_make(&r, &c, container, &err), 0, "%s", err.text);
    remoterig_pass(&r, 0, 3000);
    runtimeserver_down(r.server);
    remoterig_restart(&r);
    cr_assert_gt(list_size(&r), 0);
    cr_assert_eq(remoterig_status(&r, container), CRI_CREATED);
    remoterig_pass(&r, 0, 30000);
    cr_assert_eq(remote_health(r.remote, NULL), ACT_LOST);
    cr_assert_gt(list_size(&r), 0);
    cr_assert_eq(keep_count(r.keep, "card-0", KEPT_MADE), 2);
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    runtimeserver_up(r.server);
    remoterig_pass(&r, 0, 30000);
    cr_assert_eq(remoterig_status(&r, container), CRI_EXITED);
    remoterig_close(&r);
}
