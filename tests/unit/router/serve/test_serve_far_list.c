#include "router/serve/serve_far_list.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/io/clock.h"
#include "router/serve/serve_guess.h"
#include "router/wire/edit.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"

/* One remote with a pod of one container. */
static struct remoterig r;
static struct serve s;
static struct far *far = &s.fars[0];
static char pod[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];

static void begin(void)
{
    struct error err = {0};
    const struct kept sandbox = keeprig_sandbox("u-1", 0);
    remoterig_open(&r);
    (void)pthread_mutex_init(&s.hearing, NULL);
    s.keep = r.keep;
    s.n_fars = 1;
    s.events = event_feed_create();
    s.exits = exits_create(&s);
    far->s = &s;
    far->remote = r.remote;
    cr_assert_eq(remoterig_make(&r, &sandbox, pod, &err), 0, "%s", err.text);
    const struct kept c = keeprig_container("u-1", pod, "c", 0);
    cr_assert_eq(remoterig_make(&r, &c, container, &err), 0, "%s", err.text);
    remoterig_pass(&r, 0, 50);
}

static void end(void)
{
    exits_destroy(s.exits);
    event_feed_destroy(s.events);
    free(far->made);
    far_list_unref(far->told[0]);
    far_list_unref(far->told[1]);
    (void)pthread_mutex_destroy(&s.hearing);
    remoterig_close(&r);
}

TestSuite(serve_far_list, .init = begin, .fini = end);

/* The caller drops it. */
static struct far_list *list(enum method_id method, size_t expect)
{
    size_t n;
    struct far_list *l = far_list(far, method_get(method));
    (void)far_list_items(l, &n);
    cr_assert_eq(n, expect, "%zu items, %zu expected", n, expect);
    return l;
}

/* As the container is told. */
static uint32_t told_state(struct far_list **ret_list)
{
    size_t n;
    *ret_list = list(METHOD_LIST_CONTAINERS, 1);
    const struct list_item *items = far_list_items(*ret_list, &n);
    cr_assert_str_eq(items[0].id, container);
    cr_assert_str_eq(items[0].sandbox_id, pod);
    return (uint32_t)edit_number(items[0].message, CRI_Container_state);
}

Test(serve_far_list, is_the_same_one_while_nothing_changes)
{
    struct far_list *first = list(METHOD_LIST_CONTAINERS, 1);
    struct far_list *pods = list(METHOD_LIST_POD_SANDBOX, 1);
    struct far_list *again = list(METHOD_STREAM_CONTAINERS, 1);
    struct far_list *pods_again = list(METHOD_STREAM_POD_SANDBOXES, 1);
    cr_assert_eq(first, again);
    cr_assert_eq(pods, pods_again);
    cr_assert_neq(first, pods);
    cr_assert_gt(far_list_size(first), 0);
    far_list_unref(first);
    far_list_unref(again);
    far_list_unref(pods);
    far_list_unref(pods_again);
}

Test(serve_far_list, is_made_anew_when_the_remote_has_changed)
{
    struct far_list *first, *second;
    cr_assert_eq(told_state(&first), CRI_CREATED);
    runtimeserver_set(r.server, container, CRI_RUNNING, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    cr_assert_eq(told_state(&second), CRI_RUNNING);
    far_list_unref(first);
    far_list_unref(second);
}

Test(serve_far_list, has_what_was_made_after_the_remote_was_listed)
{
    struct error err = {0};
    char id[KEPT_ID_MAX + 1];
    const struct kept more = keeprig_container("u-1", pod, "d", 0);
    far_list_unref(list(METHOD_LIST_CONTAINERS, 1));
    runtimeserver_hold(r.server, "ListContainers", true); /* is asked at once */
    cr_assert_eq(remoterig_make(&r, &more, id, &err), 0, "%s", err.text);
    far_list_unref(list(METHOD_LIST_CONTAINERS, 1)); /* nobody was told yet */
    serve_made(far, id);
    far_list_unref(list(METHOD_LIST_CONTAINERS, 2));
    runtimeserver_hold(r.server, "ListContainers", false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    far_list_unref(list(METHOD_LIST_CONTAINERS, 2));
}

/* What says that it runs still must not stay. */
Test(serve_far_list, one_whose_end_is_not_told_yet_is_not_kept)
{
    struct far_list *first, *second, *after;
    runtimeserver_set(r.server, container, CRI_EXITED, false);
    remoterig_pass(&r, 0, REMOTE_LIST_MS + 100);
    cr_assert_eq(told_state(&first), CRI_RUNNING,
                 "its end is seen to from now on, on a thread");
    (void)told_state(&second);
    cr_assert_neq(first, second);
    cleanup_with(remote_view) struct remote_view *v = remote_view(far->remote);
    exits_await(s.exits, far, container, remote_view_status(v, container),
                INT64_MAX);
    cr_assert_eq(told_state(&after), CRI_EXITED);
    far_list_unref(first);
    far_list_unref(second);
    far_list_unref(after);
}

Test(serve_far_list, forgets_what_was_removed)
{
    struct error err = {0};
    far_list_unref(list(METHOD_LIST_CONTAINERS, 1));
    cr_assert_eq(keep_forget(s.keep, container, &err), 0, "%s", err.text);
    far_list_unref(list(METHOD_LIST_CONTAINERS, 0));
    far_list_unref(list(METHOD_LIST_POD_SANDBOX, 1));
}
