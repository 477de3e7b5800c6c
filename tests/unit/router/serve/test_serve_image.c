/* Images of a remote, through the router. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"
#include "router/wire/method.h"
#include "tests/lib/router/serverig.h"

/* Its disk as biga-card tells it. */
static void set_disk(struct serverig *r, unsigned available)
{
    cleanup_free char *text =
        xasprintf("size=100000000000\navailable=%u000000000\n", available);
    cardserver_exec(r->cards[0], 0, text, "");
}

/* Until it was asked for its images `n` times more. */
static void await_looks(struct serverig *r, unsigned n)
{
    unsigned begun = cardserver_calls(r->cards[0], "ListImages");
    while (cardserver_calls(r->cards[0], "ListImages") < begun + n)
        (void)sched_yield();
}

Test(serve_image, images_that_no_container_has_go_when_the_disk_is_full)
{
    struct serverig r;
    char pod[CRI_ID_MAX + 1], id[CRI_ID_MAX + 1];
    serverig_open(&r);
    serverig_make(&r, pod, id);
    set_disk(&r, 16);
    cardserver_image(r.cards[0], "busybox"); /* the container's */
    cardserver_image(r.cards[0], "old");
    cardserver_image(r.cards[0], "docker.io/library/pause");
    await_looks(&r, 2);
    cr_assert(cardserver_has_image(r.cards[0], "old"), "there is room");
    set_disk(&r, 14);
    while (cardserver_has_image(r.cards[0], "old"))
        (void)sched_yield();
    await_looks(&r, 2);
    cr_assert(cardserver_has_image(r.cards[0], "busybox"));
    cr_assert(cardserver_has_image(r.cards[0], "docker.io/library/pause"));
    cr_assert_eq(cardserver_calls(r.home, "RemoveImage"), 0);
    serverig_close(&r);
}

/* As a kubelet does it for a pod of the first card; both requests begin with
 * the image. */
static int ask_image(struct serverig *r, enum method_id method,
                     struct error *err)
{
    struct serverig_asked a;
    struct cri_bytes reply;
    cleanup_str struct str request = STR_INIT(4096);
    *err = (struct error){0};
    serverig_asked_init(&a, "a", "xpu", "card-0000-10-00");
    size_t at = proto_open(&request, CRI_PullImageRequest_image);
    proto_add_text(&request, CRI_ImageSpec_image, "new");
    proto_add_pair(&request, CRI_ImageSpec_annotations, a.annotation.key,
                   a.annotation.value);
    proto_close(&request, at);
    int e = cri_call(r->kubelet_side, method_get(method)->path,
                     (struct cri_bytes){request.data, request.size},
                     SERVERIG_CALL_MS, &reply, err);
    serverig_asked_fini(&a);
    return e;
}

static int pull(struct serverig *r, struct error *err)
{
    return ask_image(r, METHOD_PULL_IMAGE, err);
}

Test(serve_image, a_pull_that_finds_the_disk_full_makes_room)
{
    struct serverig r;
    struct error err;
    serverig_open(&r);
    set_disk(&r, 50);
    cardserver_image(r.cards[0], "old");
    cardserver_fail(r.cards[0], "PullImage", GRPC_RESOURCE_EXHAUSTED, 1);
    cr_assert_eq(pull(&r, &err), 0, "%s", err.text);
    cr_assert_not(cardserver_has_image(r.cards[0], "old"));
    cr_assert_eq(cardserver_calls(r.cards[0], "PullImage"), 2);
    cardserver_fail(r.cards[0], "PullImage", GRPC_RESOURCE_EXHAUSTED, 1);
    cr_assert_eq(pull(&r, &err), -ENOSPC, "nothing is left that could go");
    serverig_close(&r);
}

/* The servers' images are for arm64.  It is there afterwards, and the kubelet
 * asks for its status then: that is refused as well. */
Test(serve_image, an_image_for_another_architecture_is_refused_with_both_names)
{
    struct serverig r;
    struct error err;
    serverig_open(&r);
    cr_assert_eq(pull(&r, &err), 0, "%s", err.text);
    serverig_stop(&r);
    (void)snprintf(r.places[0].arch, sizeof r.places[0].arch, "riscv64");
    serverig_start(&r);
    const enum method_id methods[] = {METHOD_PULL_IMAGE, METHOD_IMAGE_STATUS};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        cr_assert_lt(ask_image(&r, methods[i], &err), 0);
        cr_expect_eq(cri_end(r.kubelet_side)->code, GRPC_FAILED_PRECONDITION);
        cr_expect(strstr(err.text, "ImageArch: image new is for arm64, and "
                                   "card-0000-10-00 is riscv64"),
                  "%s", err.text);
    }
    serverig_close(&r);
}
