/* A card that lies to the router, before a kubelet that hears every byte of
 * the answers: what it says of itself is checked, and of others it cannot say
 * anything. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"
#include "tests/lib/router/lyingrig.h"

TestSuite(lying, .timeout = 600);

/* --- ids -----------------------------------------------------------------------
 */

Test(lying, an_id_of_another_is_refused)
{
    struct lyingrig r;
    char id[LYINGRIG_ID];
    lyingrig_open(&r);
    const char *const taken[] = {r.host, r.other, r.pod, r.container};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        cleanup_free char *name = xasprintf("n%zu", i);
        lyingrig_lie_id(&r, "RunPodSandbox", taken[i], 64);
        cr_assert_neq(lyingrig_run(&r, name, r.places[0].name, id), 0, "%zu",
                      i);
        cr_assert(strstr(r.text, r.places[0].name), "%s", r.text);
        lyingrig_be_honest(&r);
        lyingrig_lie_id(&r, "CreateContainer", taken[i], 64);
        cr_assert_neq(lyingrig_create(&r, name, id), 0, "%zu", i);
        lyingrig_be_honest(&r);
    }
    cr_assert(lyingrig_check_others(&r));
    unsigned n = runtimeserver_calls(r.cards[0], "StopPodSandbox");
    cr_assert_eq(lyingrig_call_id(&r, "StopPodSandbox", r.host), 0, "%s",
                 r.text);
    cr_assert_eq(lyingrig_call_id(&r, "StopPodSandbox", r.other), 0, "%s",
                 r.text);
    cr_assert_eq(runtimeserver_calls(r.cards[0], "StopPodSandbox"), n,
                 "calls of others never are its own");
    lyingrig_close(&r);
}

struct swap {
    char from[LYINGRIG_ID], to[LYINGRIG_ID];
};

/* What it has under one id it lists under another. */
static int swap_id(void *ctx, const char *method, int code, struct str *reply)
{
    const struct swap *s = ctx;
    char *at = memmem(str_text(reply), reply->size, s->from, 64);
    if (at && strcmp(method, "ListPodSandbox") == 0)
        memcpy(at, s->to, 64);
    return code;
}

/* The one way to be written down without an answer: its seal is genuine. */
Test(lying, an_id_of_another_is_not_adopted)
{
    struct lyingrig r;
    struct swap swap;
    char id[LYINGRIG_ID];
    lyingrig_open(&r);
    /* the third that it makes */
    (void)snprintf(swap.from, sizeof swap.from, "%.63s3", r.pod);
    (void)snprintf(swap.to, sizeof swap.to, "%s", r.host);
    runtimeserver_lie(r.cards[0], swap_id, &swap);
    /* carried out, and the answer is lost: the call stays announced */
    runtimeserver_fail(r.cards[0], "RunPodSandbox", -4, 1);
    cr_assert_neq(lyingrig_run(&r, "late", r.places[0].name, id), 0);
    cr_assert_eq(runtimeserver_count(r.cards[0], "late"), 1);
    lyingrig_wait_asked(&r, "ListPodSandbox");
    unsigned n = runtimeserver_calls(r.home, "StopPodSandbox");
    cr_assert_eq(lyingrig_call_id(&r, "StopPodSandbox", r.host), 0, "%s",
                 r.text);
    cr_assert_eq(runtimeserver_calls(r.home, "StopPodSandbox"), n + 1);
    cr_assert_neq(lyingrig_run(&r, "late", r.places[0].name, id), 0,
                  "nor when asked");
    cr_assert(strstr(r.text, "which is this machine's"), "%s", r.text);
    lyingrig_be_honest(&r);
    lyingrig_close(&r);
}

Test(lying, an_id_that_is_none_is_refused)
{
    static const char digits[] = "0123456789abcdef0123456789abcdef"
                                 "0123456789abcdef0123456789abcde";
    char odd[][64] = {"", "../../../../../../etc/shadow", "/", "\x1b[2J"};
    struct lyingrig r;
    char id[LYINGRIG_ID];
    lyingrig_open(&r);
    for (size_t i = 0; i < ARRAY_LEN(odd) + 3; i++) {
        char last[65] = "";
        cleanup_free char *name = xasprintf("n%zu", i);
        (void)snprintf(last, sizeof last, "%s%c", digits,
                       i == ARRAY_LEN(odd) ? 'G' : '/');
        if (i == ARRAY_LEN(odd) + 2)
            last[63] = '\0';
        lyingrig_lie_id(&r, "RunPodSandbox", i < ARRAY_LEN(odd) ? odd[i] : last,
                        i < ARRAY_LEN(odd) ? strlen(odd[i]) : 64);
        cr_assert_neq(lyingrig_run(&r, name, r.places[0].name, id), 0, "%zu",
                      i);
        cr_assert(strstr(r.text, "must be 64 of 0-9 and a-f"), "%s", r.text);
        cr_assert_null(strchr(r.text, '\x1b'));
        lyingrig_be_honest(&r);
    }
    cleanup_free char *large = xmalloc(1 << 20);
    memset(large, 'a', 1 << 20);
    lyingrig_lie_id(&r, "RunPodSandbox", large, 1 << 20);
    cr_assert_neq(lyingrig_run(&r, "n", r.places[0].name, id), 0);
    cr_assert_lt(strlen(r.text), 512);
    lyingrig_be_honest(&r);
    cr_assert(lyingrig_check_others(&r));
    lyingrig_close(&r);
}

/* --- lists -----------------------------------------------------------------------
 */

enum list_lie { HUGE, CUT, DEEP, TWICE, FOREIGN, NO_TEXT, LIST_LIES };

static void add_item(struct str *out, const char *id)
{
    size_t item = proto_open(out, 1);
    proto_add_text(out, CRI_PodSandbox_id, id);
    size_t metadata = proto_open(out, CRI_PodSandbox_metadata);
    proto_add_text(out, CRI_PodSandboxMetadata_name, "forged");
    proto_add_text(out, CRI_PodSandboxMetadata_uid, "forged");
    proto_add_text(out, CRI_PodSandboxMetadata_namespace, "kube-system");
    proto_close(out, metadata);
    proto_add_pair(out, CRI_PodSandbox_labels, "io.kubernetes.pod.uid",
                   "forged");
    proto_add_pair(out, CRI_PodSandbox_labels, "biga.dev/cluster", "c");
    proto_add_pair(out, CRI_PodSandbox_labels, "biga.dev/node", "n1");
    proto_close(out, item);
}

static void add_deep(struct str *out, unsigned depth)
{
    size_t *opened = xcalloc(depth, sizeof *opened);
    for (unsigned i = 0; i < depth; i++)
        opened[i] = proto_open(out, 1);
    while (depth > 0)
        proto_close(out, opened[--depth]);
    free(opened);
}

static void add_list(const struct lyingrig *r, enum list_lie which,
                     struct str *out)
{
    char id[LYINGRIG_ID];
    add_item(out, r->pod);
    if (which == HUGE)
        for (unsigned i = 0; i < 20000; i++) {
            (void)snprintf(id, sizeof id, "%064x", i);
            add_item(out, id);
        }
    if (which == CUT)
        out->size -= 3;
    if (which == DEEP)
        add_deep(out, 2000);
    if (which == TWICE)
        add_item(out, r->pod);
    if (which == FOREIGN) {
        add_item(out, r->host);
        add_item(out, r->other);
    }
    if (which == NO_TEXT)
        proto_add_bytes(out, 1, (struct proto_bytes){"\x0a\x02\xff\xfe", 4});
}

/* As lyingrig_wait_asked(); where something was changed, the router looks at
 * once. */
static void have_it_listed(struct lyingrig *r)
{
    unsigned from = runtimeserver_calls(r->cards[0], "ListPodSandbox");
    while (runtimeserver_calls(r->cards[0], "ListPodSandbox") < from + 2) {
        (void)lyingrig_call_id(r, "StartContainer", r->container);
        (void)poll(NULL, 0, 2);
    }
}

Test(lying, lists_tell_of_others_nothing)
{
    struct lyingrig r;
    for (enum list_lie i = 0; i < LIST_LIES; i++) {
        lyingrig_open(&r); /* one that lies often is asked seldom */
        add_list(&r, i, &r.lie.reply);
        lyingrig_lie(&r, "ListPodSandbox", 0);
        have_it_listed(&r);
        for (int k = 0; k < 2; k++) {
            size_t n = lyingrig_count(&r, "ListPodSandbox");
            cr_assert(n == 3 || (n == 2 && !lyingrig_says(&r, r.pod)),
                      "%d: %zu", i, n);
            cr_assert(lyingrig_says(&r, r.host) && lyingrig_says(&r, r.other),
                      "%d", i);
            cr_assert_not(lyingrig_says(&r, "forged"), "%d", i);
            cr_assert_eq(lyingrig_call_id(&r, "PodSandboxStatus", r.host), 0,
                         "%s", r.text);
        }
        lyingrig_close(&r);
    }
}

/* --- statuses --------------------------------------------------------------------
 */

static void add_status(struct str *out, const char *id)
{
    static const uint32_t times[] = {CRI_ContainerStatus_created_at,
                                     CRI_ContainerStatus_started_at,
                                     CRI_ContainerStatus_finished_at};
    size_t status = proto_open(out, CRI_ContainerStatusResponse_status);
    proto_add_text(out, CRI_ContainerStatus_id, id);
    proto_add_varint(out, CRI_ContainerStatus_state, 99);
    proto_add_varint(out, CRI_ContainerStatus_exit_code, UINT64_MAX / 2);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        proto_add_varint(out, times[i], (uint64_t)INT64_MAX + i);
    proto_add_text(out, CRI_ContainerStatus_log_path, "/etc/shadow");
    proto_add_text(out, CRI_ContainerStatus_reason, "a\x1b[2Jb");
    proto_add_text(out, CRI_ContainerStatus_message, "c\x1b]0;d\xe2\x80\xae");
    proto_add_pair(out, CRI_ContainerStatus_labels, "io.kubernetes.pod.name",
                   "forged");
    proto_add_pair(out, CRI_ContainerStatus_annotations,
                   "io.kubernetes.container.terminationMessagePath",
                   "/etc/shadow");
    size_t mount = proto_open(out, CRI_ContainerStatus_mounts);
    proto_add_text(out, CRI_Mount_container_path, "/dev/termination-log");
    proto_add_text(out, CRI_Mount_host_path, "/etc/shadow");
    proto_close(out, mount);
    proto_close(out, status);
}

Test(lying, a_status_is_what_was_asked_for)
{
    static const char *const never[] = {"/etc/shadow", "forged", "\x1b",
                                        "\xe2\x80\xae"};
    struct lyingrig r;
    lyingrig_open(&r);
    add_status(&r.lie.reply, r.container);
    lyingrig_lie(&r, "ContainerStatus", 0);
    lyingrig_wait_asked(&r, "ListContainers");
    runtimeserver_set(r.cards[0], r.container, 1, false);
    while (lyingrig_call_id(&r, "ContainerStatus", r.container) == 0 &&
           !lyingrig_says(&r, "[2J"))
        (void)poll(NULL, 0, 2);
    cr_assert(lyingrig_says(&r, "[2J"), "%s", r.text);
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        cr_assert_not(lyingrig_says(&r, never[i]), "%zu", i);
    lyingrig_be_honest(&r);
    add_status(&r.lie.reply, r.other);
    lyingrig_lie(&r, "ContainerStatus", 0);
    runtimeserver_set(r.cards[0], r.container, 2, false);
    while (lyingrig_call_id(&r, "ContainerStatus", r.container) == 0)
        (void)poll(NULL, 0, 2);
    cr_assert(strstr(r.text, "asked was for"), "%s", r.text);
    cr_assert_not(lyingrig_says(&r, "forged"));
    cr_assert(lyingrig_check_others(&r));
    lyingrig_close(&r);
}

/* --- words, URLs, images -----------------------------------------------------------
 */

Test(lying, words_of_errors_are_printable)
{
    struct lyingrig r;
    lyingrig_open(&r);
    str_add(&r.lie.reply, "no%1B[2J%00%0Ahost%E2%80%AE%FF");
    lyingrig_lie(&r, "StartContainer", 13);
    cr_assert_eq(lyingrig_call_id(&r, "StartContainer", r.container), 13);
    cr_assert_str_eq(r.text, "no?[2J? host??");
    lyingrig_close(&r);
}

Test(lying, streams_lead_to_the_card_alone)
{
    static const char *const urls[] = {
        "http://169.254.169.254/latest", "http://10.0.0.1:10250/exec",
        "http://localhost:1/",           "http://[::1]:1/",
        "http://127.0.0.1@10.0.0.1/",    "file:///etc/shadow",
        "unix:///run/biga/cri.sock",     "http://127.0.0.1:1/\x1b[2J",
        "http://127.0.0.1:99999/",       "",
    };
    struct lyingrig r;
    lyingrig_open(&r);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        lyingrig_lie_id(&r, "Exec", urls[i], strlen(urls[i]));
        cr_assert_neq(lyingrig_call_id(&r, "Exec", r.container), 0, "%s",
                      urls[i]);
        cr_assert_not(lyingrig_says(&r, "http"), "%s", urls[i]);
        cr_assert_null(strchr(r.text, '\x1b'));
        lyingrig_be_honest(&r);
    }
    lyingrig_lie_id(&r, "Exec", "http://127.0.0.1:1/exec/token", 29);
    cr_assert_eq(lyingrig_call_id(&r, "Exec", r.container), 0, "%s", r.text);
    cr_assert_not(lyingrig_says(&r, "/exec/token"),
                  "the kubelet calls the relay");
    lyingrig_close(&r);
}

Test(lying, an_image_has_a_short_name)
{
    struct lyingrig r;
    lyingrig_open(&r);
    cleanup_str struct str request = STR_INIT(4096);
    size_t image = proto_open(&request, CRI_PullImageRequest_image);
    proto_add_text(&request, CRI_ImageSpec_image, "busybox");
    proto_add_text(&request, CRI_ImageSpec_runtime_handler, "xpu");
    proto_close(&request, image);
    cleanup_free char *large = xmalloc(1 << 20);
    memset(large, 'a', 1 << 20);
    lyingrig_lie_id(&r, "PullImage", large, 1 << 20);
    cr_assert_neq(lyingrig_call(&r, "PullImage", &request), 0);
    cr_assert(strstr(r.text, "image_ref"), "%s", r.text);
    cr_assert(lyingrig_check_others(&r));
    lyingrig_close(&r);
}

/* As containerd says it of an index without the card's own. */
Test(lying, an_image_without_the_cards_architecture_is_refused)
{
    struct lyingrig r;
    cleanup_str struct str request = STR_INIT(1024);
    lyingrig_open(&r);
    size_t image = proto_open(&request, CRI_PullImageRequest_image);
    proto_add_text(&request, CRI_ImageSpec_image, "busybox");
    proto_add_text(&request, CRI_ImageSpec_runtime_handler, "xpu");
    proto_close(&request, image);
    lyingrig_lie(&r, "PullImage", GRPC_NOT_FOUND);
    str_reset(&r.lie.reply);
    str_add(&r.lie.reply, "failed to pull: no match for platform in manifest "
                          "sha256:12: not found");
    cr_assert_eq(lyingrig_call(&r, "PullImage", &request),
                 GRPC_FAILED_PRECONDITION);
    cr_assert(strstr(r.text, "ImageArch: image busybox has nothing for"), "%s",
              r.text);
    cr_assert(strstr(r.text, r.places[0].name), "%s", r.text);
    lyingrig_close(&r);
}

/* --- frames --------------------------------------------------------------------- */

/* Whatever they are, lists do not wait for them. */
Test(lying, ill_frames_cost_that_card_alone)
{
    struct lyingrig r;
    lyingrig_open(&r);
    for (enum h2_fault f = H2_WELL + 1; f < H2_FAULTS; f++) {
        runtimeserver_fault(r.cards[0], f);
        /* some of these lists are whole, and empty */
        (void)lyingrig_check_others(&r);
    }
    /* what it owes an answer ends, and it is well again */
    runtimeserver_down(r.cards[0]);
    runtimeserver_up(r.cards[0]);
    while (lyingrig_call_id(&r, "StartContainer", r.container) != 0)
        (void)poll(NULL, 0, 10);
    cr_assert(lyingrig_check_others(&r));
    lyingrig_close(&r);
}
