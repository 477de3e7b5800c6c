/* Claims in whose place pinned ones are, against an API server that is played
 * here; time stands still but where it is moved. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "extender/gate/gate_controller_private.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simclaims.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

#define CLAIMS "/apis/resource.k8s.io/v1/namespaces/:/resourceclaims"
enum { BEGIN_MS = 1000000, CARDS = 4, LATER_MS = 5000, BODY_MAX = 1 << 20 };

static struct httpd *api;
static struct kube_config kube;
static struct writer *w;
static struct claim_book *book;
static struct gate_controller g;
static struct gate_placed placed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static struct str calls; /* "DELETE NAME\n"; others without a name */
static bool is_gone;     /* the claim that is to be deleted */

/* --- the API server ------------------------------------------------------- */

static void on_post(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    hold_lock(&lock);
    str_add(&calls, "POST\n");
    httpd_status(rq, 201);
    str_add(httpd_reply(rq), "{}");
}

static void on_patch(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    hold_lock(&lock);
    str_add(&calls, "PATCH\n");
    str_add(httpd_reply(rq), "{}");
}

static void on_delete(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    hold_lock(&lock);
    str_addf(&calls, "DELETE %s\n", httpd_arg(rq, 1));
    if (is_gone)
        httpd_status(rq, 404);
    str_add(httpd_reply(rq), "{}");
    is_gone = true;
}

static void start_api(void)
{
    static const struct httpd_route routes[] = {
        {HTTPD_POST, CLAIMS, on_post, BODY_MAX, "post"},
        {HTTPD_DELETE, CLAIMS "/:", on_delete, BODY_MAX, "delete"},
        {HTTPD_PATCH, "/api/v1/namespaces/:/pods/:/status", on_patch, BODY_MAX,
         "patch"},
    };
    const struct httpd_config config = {.listen = "127.0.0.1:0",
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .threads = 1};
    struct error err = {0};
    cr_assert_eq(httpd_start(&config, &api, &err), 0, "%s", err.text);
    kube.server = xasprintf("http://127.0.0.1:%u", httpd_port(api));
}

static void expect_calls(const char *wanted)
{
    hold_lock(&lock);
    cr_expect_str_eq(str_text(&calls), wanted);
    str_reset(&calls);
}

/* --- the pod, whose claim "old" is to be replaced ------------------------------- */

#define GPUS                                                               \
    "{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.example.com" \
    "\"}}"

static void put(enum claim_book_kind kind, char *json)
{
    claim_book_handler.put(claim_book_ctx(book, kind), json, strlen(json));
    free(json);
}

static void gone(enum claim_book_kind kind, char *json)
{
    claim_book_handler.gone(claim_book_ctx(book, kind), json, strlen(json));
    free(json);
}

static void publish(void)
{
    cleanup_with(topo) struct topo *topo = simhost_topo("n1", CARDS);
    cr_assert_eq(sim_publish(w, "n1", CARDS, "boot", 1), 0);
    put(CLAIM_BOOK_SLICES, simclaims_gpus(topo, 1, ""));
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("gpu.example.com", "device.driver == "
                                           "\"gpu.example.com\""));
    put(CLAIM_BOOK_TEMPLATES, simclaims_template("t", GPUS, "[]"));
}

/* It claims a GPU and has a place on n1. */
static void place_pod(void)
{
    static const char pod[] =
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"uid-p\"},"
        "\"spec\":{\"resourceClaims\":[{\"name\":\"pair\","
        "\"resourceClaimTemplateName\":\"t\"}],\"containers\":[{\"name\":"
        "\"c\"}]},\"status\":{\"resourceClaimStatuses\":[{\"name\":\"pair\","
        "\"resourceClaimName\":\"old\"}]}}";
    struct error err = {0};
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(w);
    placed = (struct gate_placed){.demand = sim_pod("p", ROLE_HOST, "j", 0),
                                  .node = "n1"};
    cr_assert_eq(claim_book_read(book, s, pod, strlen(pod), true,
                                 &placed.demand, &placed.needs, &err),
                 0, "%s", err.text);
    cr_assert_eq(sim_bind(w, &placed.demand, "n1", NULL, &err), 0, "%s",
                 err.text);
}

static void on_used(void *ctx, struct claim_use *use, bool no_more)
{
    (void)ctx;
    (void)use;
    (void)no_more;
}

static void set_up(void)
{
    struct writer_config c = {.store = STORE_KUBERNETES, .fresh_ms = 15000};
    struct error err = {0};
    log_set_level((enum log_level)(LOG_ERROR + 1));
    clock_set_fake(BEGIN_MS);
    str_init(&calls, 1 << 20);
    is_gone = false;
    start_api();
    cr_assert_eq(writer_start(&c, &w, &err), 0, "%s", err.text);
    book = claim_book_create(&(struct claim_book_config){.used = on_used});
    publish();
    place_pod();
    g = (struct gate_controller){
        .config = {.kube = &kube, .writer = w, .claims = book},
        .answer = {.body = STR_INIT(KUBE_ANSWER_MAX)}};
    cr_assert_eq(kube_client_create(&kube, GATE_CALL_MS, &g.client, &err), 0,
                 "%s", err.text);
}

static void tear_down(void)
{
    kube_client_destroy(g.client);
    str_fini(&g.answer.body);
    gate_unnamed_fini(&g);
    gate_placed_fini(&placed);
    claim_book_destroy(book);
    writer_stop(w);
    httpd_stop(api);
    free(kube.server);
    str_fini(&calls);
    clock_set_fake(-1);
}

TestSuite(gate_controller_claims, .init = set_up, .fini = tear_down);

static void pin(void)
{
    struct error err = {0};
    cr_assert_eq(gate_pin_claims(&g, &placed, &err), 0, "%s", err.text);
}

/* --- the tests -------------------------------------------------------------- */

/* The watch is late, and may stay so. */
Test(gate_controller_claims, deletes_by_its_name_what_it_has_never_heard_of)
{
    pin();
    expect_calls("POST\nPATCH\nDELETE old\n");
    clock_set_fake(BEGIN_MS + LATER_MS);
    cr_expect_eq(gate_delete_unnamed(&g), INT64_MAX);
    expect_calls(""); /* once is enough */
}

Test(gate_controller_claims, what_is_gone_already_is_deleted)
{
    is_gone = true;
    pin();
    expect_calls("POST\nPATCH\nDELETE old\n");
}

Test(gate_controller_claims, deletes_once_what_it_has_heard_of)
{
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("old", 1, "uid-p", ""));
    pin();
    expect_calls("POST\nPATCH\nDELETE old\n");
    gone(CLAIM_BOOK_CLAIMS, simclaims_claim("old", 1, "uid-p", ""));
    clock_set_fake(BEGIN_MS + LATER_MS);
    cr_expect_eq(gate_delete_unnamed(&g), INT64_MAX);
    expect_calls("");
}

/* A controller that is slow makes another, which is heard of later. */
Test(gate_controller_claims, deletes_what_comes_later)
{
    pin();
    expect_calls("POST\nPATCH\nDELETE old\n");
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("late", 1, "uid-p", ""));
    cr_expect_eq(gate_delete_unnamed(&g), BEGIN_MS + LATER_MS);
    expect_calls("");
    clock_set_fake(BEGIN_MS + LATER_MS);
    cr_expect_eq(gate_delete_unnamed(&g), INT64_MAX);
    expect_calls("DELETE late\n");
}
