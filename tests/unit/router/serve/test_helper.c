#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "router/serve/helper.h"
#include "tests/lib/card/cardserver.h"
#include "tests/lib/tmpdir.h"

#define UID "biga-helper-card-0"

/* A card and a connection to it. */
struct rig {
    char *dir, *endpoint;
    struct cardserver *card;
    struct grpc_config config;
    struct cri *cri;
};

static void open_rig(struct rig *r)
{
    static const struct cardserver_times quick = {0};
    struct error err = {0};
    r->dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/card.sock", r->dir);
    const struct h2_config config = {.socket = path};
    r->endpoint = xasprintf("unix://%s", path);
    r->card = cardserver_start(&config, &quick);
    r->config = (struct grpc_config){.endpoint = r->endpoint};
    cr_assert_eq(cri_create(&r->config, &r->cri, &err), 0, "%s", err.text);
}

static void close_rig(struct rig *r)
{
    cri_destroy(r->cri);
    cardserver_stop(r->card);
    tmpdir_remove(r->dir);
    free(r->endpoint);
}

static struct helper *helper_of(const char *image)
{
    const struct helper_config config = {.image = image,
                                         .card_dir = "/var/lib/biga",
                                         .cluster = "c",
                                         .node = "n",
                                         .remote = "card-0"};
    return helper_create(&config);
}

static void ready(struct rig *r, struct helper *h, char *ret_id)
{
    struct error err = {0};
    cr_assert_eq(helper_ready(h, r->cri, ret_id, &err), 0, "%s", err.text);
}

Test(helper, is_made_once)
{
    struct rig r;
    char id[CRI_ID_MAX + 1], again[CRI_ID_MAX + 1];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    cr_assert_not(helper_known(h, id));
    ready(&r, h, id);
    ready(&r, h, again);
    cr_assert_str_eq(id, again);
    cr_assert(helper_known(h, again));
    cr_assert_str_eq(id, again);
    cr_assert_eq(cardserver_calls(r.card, "RunPodSandbox"), 1);
    cr_assert_eq(cardserver_live(r.card, UID), 2, "a sandbox, a container");
    helper_destroy(h);
    close_rig(&r);
}

Test(helper, is_found_again_by_who_comes_after)
{
    struct rig r;
    char id[CRI_ID_MAX + 1], again[CRI_ID_MAX + 1];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    ready(&r, h, id);
    helper_destroy(h);
    h = helper_of("biga-card:1");
    ready(&r, h, again);
    cr_assert_str_eq(id, again);
    cr_assert_eq(cardserver_calls(r.card, "RunPodSandbox"), 1);
    helper_destroy(h);
    close_rig(&r);
}

Test(helper, of_another_image_is_replaced)
{
    struct rig r;
    char id[CRI_ID_MAX + 1], again[CRI_ID_MAX + 1];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    ready(&r, h, id);
    helper_destroy(h);
    h = helper_of("biga-card:2");
    ready(&r, h, again);
    cr_assert_str_neq(id, again);
    cr_assert_eq(cardserver_live(r.card, UID), 2, "the old one is gone");
    helper_destroy(h);
    close_rig(&r);
}

Test(helper, that_was_lost_is_looked_for)
{
    struct rig r;
    char id[CRI_ID_MAX + 1], again[CRI_ID_MAX + 1];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    ready(&r, h, id);
    helper_lost(h, "another");
    cr_assert(helper_known(h, again));
    cr_assert_eq(cardserver_exit(r.card, UID), 1);
    helper_lost(h, id);
    cr_assert_not(helper_known(h, again));
    ready(&r, h, again);
    cr_assert_str_neq(id, again);
    helper_destroy(h);
    close_rig(&r);
}

Test(helper, a_fault_is_the_callers_and_is_not_kept)
{
    struct rig r;
    struct error err = {0};
    char id[CRI_ID_MAX + 1];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    cardserver_fail(r.card, "RunPodSandbox", GRPC_UNAVAILABLE, 1);
    cr_assert_eq(helper_ready(h, r.cri, id, &err), -EAGAIN);
    cr_assert(strstr(err.text, "Biga's helper on card-0: "), "%s", err.text);
    ready(&r, h, id);
    helper_destroy(h);
    close_rig(&r);
}

struct waiter {
    struct rig *rig;
    struct helper *h;
    char id[CRI_ID_MAX + 1];
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    struct cri *own = NULL;
    struct error err = {0};
    cr_assert_eq(cri_create(&w->rig->config, &own, &err), 0);
    cr_assert_eq(helper_ready(w->h, own, w->id, &err), 0, "%s", err.text);
    cri_destroy(own);
    return NULL;
}

Test(helper, many_need_it_and_one_makes_it)
{
    enum { N = 8 };
    struct rig r;
    struct waiter waiters[N];
    pthread_t threads[N];
    open_rig(&r);
    struct helper *h = helper_of("biga-card:1");
    for (int i = 0; i < N; i++) {
        waiters[i] = (struct waiter){.rig = &r, .h = h};
        cr_assert_eq(
            pthread_create(&threads[i], NULL, wait_for_it, &waiters[i]), 0);
    }
    for (int i = 0; i < N; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 1; i < N; i++)
        cr_assert_str_eq(waiters[i].id, waiters[0].id);
    cr_assert_eq(cardserver_calls(r.card, "RunPodSandbox"), 1);
    helper_destroy(h);
    close_rig(&r);
}
