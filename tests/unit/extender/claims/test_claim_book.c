#include "extender/claims/claim_book.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simclaims.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum { CARDS = 4, TOLD_MAX = 64 };

static struct claim_book *book;
static struct snapshot *fleet;
static struct {
    struct claim_use *use;
    bool gone;
} told[TOLD_MAX];
static size_t n_told;
static char changes[4096];   /* "ns/name(owner) …" */
static char resources[1024]; /* "name …", of classes */

static void on_used(void *ctx, struct claim_use *use, bool gone)
{
    (void)ctx;
    cr_assert_lt(n_told, TOLD_MAX);
    told[n_told].use = claim_use_ref(use);
    told[n_told++].gone = gone;
}

static void on_changed(void *ctx, const char *namespace, const char *name,
                       const char *owner)
{
    struct claim_fate fate;
    size_t at = strlen(changes);
    (void)ctx;
    (void)claim_book_find(book, namespace, name, &fate); /* it may be asked */
    (void)snprintf(changes + at, sizeof changes - at, "%s/%s(%s) ", namespace,
                   name, owner);
}

static void on_classes(void *ctx, const char *const *names, size_t n)
{
    (void)ctx;
    resources[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(resources);
        (void)snprintf(resources + at, sizeof resources - at, "%s ", names[i]);
    }
}

static void set_up(void)
{
    struct snapshot *empty = snapshot_create_empty();
    struct draft *d = draft_create(empty);
    for (unsigned i = 0; i < 2; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%u", i);
        cleanup_with(topo) struct topo *topo = simhost_topo(name, CARDS);
        simfleet_put(d, topo);
    }
    fleet = draft_commit(d);
    snapshot_unref(empty);
    book = claim_book_create(&(struct claim_book_config){
        .used = on_used, .changed = on_changed, .classes = on_classes});
    n_told = 0;
    changes[0] = '\0';
}

static void tear_down(void)
{
    claim_book_destroy(book);
    snapshot_unref(fleet);
    for (size_t i = 0; i < n_told; i++)
        claim_use_unref(told[i].use);
}

TestSuite(claim_book, .init = set_up, .fini = tear_down);

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

static const struct node *node_of(const char *name)
{
    return snapshot_node(fleet,
                         (size_t)snapshot_find(fleet, name, strlen(name)));
}

/* Both nodes' cards and GPUs, and the classes for them. */
static void publish(void)
{
    for (size_t i = 0; i < fleet->n_nodes; i++) {
        const struct node *n = snapshot_node(fleet, i);
        put(CLAIM_BOOK_OWN_SLICES, simclaims_cards(n->topo, 1, ""));
        put(CLAIM_BOOK_SLICES, simclaims_gpus(n->topo, 1, ""));
    }
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("xpu.biga.dev", SIMCLAIMS_CARD_CEL));
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("gpu.example.com", "device.driver == "
                                           "\"gpu.example.com\""));
}

/* --- what claims have ------------------------------------------------------ */

#define GPU_RESULT(device)                                                 \
    "{\"request\":\"gpu\",\"driver\":\"gpu.example.com\",\"pool\":\"n0\"," \
    "\"device\":\"" device "\"}"
#define CARD_RESULT(rest)                                                \
    "{\"request\":\"card\",\"driver\":\"xpu.biga.dev\",\"pool\":\"n0\"," \
    "\"device\":\"card-0000-12-00\"" rest "}"

Test(claim_book, tells_of_a_gpu_when_its_slice_comes)
{
    const struct node *n = node_of("n0");
    put(CLAIM_BOOK_CLAIMS,
        simclaims_claim("c", 1, "uid-p", GPU_RESULT("gpu-1")));
    cr_assert_eq(n_told, 0, "nobody has said where it is");
    put(CLAIM_BOOK_SLICES, simclaims_gpus(n->topo, 1, ""));
    cr_assert_eq(n_told, 1);
    cr_expect_str_eq(told[0].use->key, "ns/c");
    cr_expect_str_eq(told[0].use->node, "n0");
    cr_expect_eq(told[0].use->n_gpus, 1);
    cr_expect_eq(told[0].use->gpus[0].pci.bus, 0x13);
    cr_expect(claim_use_is_of(told[0].use, "uid-p"));
    gone(CLAIM_BOOK_SLICES, simclaims_gpus(n->topo, 1, ""));
    cr_expect_eq(n_told, 1, "a driver that starts anew frees nothing");
    put(CLAIM_BOOK_CLAIMS,
        simclaims_claim("c", 2, "uid-q", GPU_RESULT("gpu-1")));
    cr_assert_eq(n_told, 2);
    cr_expect(claim_use_is_of(told[1].use, "uid-q"));
    gone(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 2, "uid-q", ""));
    cr_assert_eq(n_told, 3);
    cr_expect(told[2].gone);
}

Test(claim_book, tells_how_much_of_a_card)
{
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 1, "", CARD_RESULT("")));
    put(CLAIM_BOOK_CLAIMS,
        simclaims_claim("c", 2, "",
                        CARD_RESULT(",\"consumedCapacity\":{"
                                    "\"biga.dev/cores\":\"4\","
                                    "\"biga.dev/memory\":\"1Gi\"}")));
    put(CLAIM_BOOK_CLAIMS,
        simclaims_claim("c", 3, "", CARD_RESULT(",\"adminAccess\":true")));
    cr_assert_eq(n_told, 3);
    cr_expect(told[0].use->cards[0].whole);
    cr_expect_not(told[1].use->cards[0].whole);
    cr_expect_eq(told[1].use->cards[0].cores, 4);
    cr_expect_eq(told[1].use->cards[0].memory_mib, 1024);
    cr_expect(told[2].gone, "who only looks takes nothing");
}

Test(claim_book, forgets_what_is_not_listed_any_more)
{
    void *claims = claim_book_ctx(book, CLAIM_BOOK_CLAIMS);
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 1, "", CARD_RESULT("")));
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("d", 2, "", CARD_RESULT("")));
    claim_book_handler.list(claims);
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("d", 2, "", CARD_RESULT("")));
    cr_expect_eq(n_told, 2);
    claim_book_handler.listed(claims);
    cr_assert_eq(n_told, 3);
    cr_expect(told[2].gone);
    cr_expect_str_eq(told[2].use->key, "ns/c");
}

Test(claim_book, says_how_a_claim_fares)
{
    struct claim_fate fate;
    char names[2][DEMAND_NAME_MAX + 1];
    cr_expect_not(claim_book_find(book, "ns", "c", &fate));
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 7, "uid-p", CARD_RESULT("")));
    cr_assert(claim_book_find(book, "ns", "c", &fate));
    cr_expect(fate.allocated);
    cr_expect_eq(fate.n_reserved, 1);
    cr_expect_str_eq(fate.uid, "uid-of-c");
    cr_expect_str_eq(fate.owner, "uid-p");
    cr_expect_str_eq(fate.pod_claim, "pair");
    cr_expect_str_eq(fate.node, "n0");
    cr_expect_str_eq(fate.version, "7");
    cr_expect_str_eq(changes, "ns/c(uid-p) ");
    cr_expect_eq(claim_book_owned(book, "uid-p", names, 2), 1);
    cr_expect_str_eq(names[0], "c");
}

Test(claim_book, refuses_what_is_no_object)
{
    static const char *const texts[] = {"", "[]", "{}", "{\"metadata\":{}}",
                                        "{\"metadata\":{\"name\":\"x\"}}"};
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 1, "", CARD_RESULT("")));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (int k = 0; k < CLAIM_BOOK_KINDS; k++)
            put((enum claim_book_kind)k, xstrdup(texts[i]));
    cr_expect_eq(n_told, 1);
    put(CLAIM_BOOK_CLAIMS,
        xstrdup("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"c\"},"
                "\"spec\":7}"));
    cr_assert_leq(n_told, 2);
}

Test(claim_book, keeps_of_our_slices_those_with_cards_by_claims)
{
    uint64_t version = claim_book_version(book);
    put(CLAIM_BOOK_OWN_SLICES,
        xstrdup("{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":"
                "\"xpu.biga.dev\"}}"));
    cr_expect_eq(claim_book_version(book), version, "not even looked at");
    put(CLAIM_BOOK_OWN_SLICES, simclaims_cards(node_of("n0")->topo, 1, ""));
    cr_expect_gt(claim_book_version(book), version);
}

/* --- what a pod asks -------------------------------------------------------- */

static struct claim_needs *needs;

static bool at_gate = true;

static int read_pod(const char *claims, struct demand *d, struct error *err)
{
    cleanup_free char *json = simclaims_pod(d->name, claims);
    claim_needs_unref(needs);
    needs = NULL;
    return claim_book_read(book, fleet, json, strlen(json), at_gate, d, &needs,
                           err);
}

static void expect_refused(const char *claims, enum pod_role role,
                           const char *text)
{
    struct demand d = sim_pod("p", role, "j", 0), before = d;
    struct error err = {0};
    cr_expect_eq(read_pod(claims, &d, &err), -EDOM, "%s", claims);
    cr_expect(strstr(err.text, text), "%s: %s", claims, err.text);
    cr_expect_eq(memcmp(&d, &before, sizeof d), 0);
    cr_expect_null(needs);
}

#define CARD(more)                                                    \
    "{\"name\":\"card\",\"exactly\":{\"deviceClassName\":\"xpu.biga." \
    "dev\"" more "}}"
#define GPU(more)                                                       \
    "{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.example." \
    "com\"" more "}}"
#define SHARE                                                \
    ",\"capacity\":{\"requests\":{\"biga.dev/cores\":\"4\"," \
    "\"biga.dev/memory\":\"2Gi\"}}"
#define MATCH(attribute) "[{\"matchAttribute\":\"" attribute "\"}]"
#define ROOT "resource.kubernetes.io/pcieRoot"
#define FROM(template) \
    "{\"name\":\"pair\",\"resourceClaimTemplateName\":\"" template "\"}"

static void put_template(const char *requests, const char *constraints)
{
    put(CLAIM_BOOK_TEMPLATES, simclaims_template("t", requests, constraints));
}

Test(claim_book, joins_claims_into_the_demand)
{
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
    struct error err = {0};
    publish();
    put_template(CARD(SHARE) "," GPU(""), MATCH(ROOT));
    cr_assert_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    cr_expect_eq(d.cards, 1);
    cr_expect_eq(d.pair_cards, 1);
    cr_expect_eq(d.gpus, 1);
    cr_expect_eq(d.pair_gpus, 1);
    cr_expect(d.by_claim);
    cr_expect(d.has_card_need);
    cr_expect_not(d.exclusive);
    cr_expect_eq(d.card_cores, 4);
    cr_expect_eq(d.card_memory_mib, 2048);
    cr_expect_eq(d.align, RELATION_PHB);
    cr_expect_eq(claim_needs_cards(needs), 1);
    cr_expect_eq(claim_needs_gpus(needs), 1);
}

Test(claim_book, takes_a_card_whole_when_no_amount_is_stated)
{
    struct demand d = sim_pod("p", ROLE_XPU, "j", 0);
    struct error err = {0};
    publish();
    put_template(CARD(",\"count\":2"), MATCH("biga.dev/switch"));
    cr_assert_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    cr_expect_eq(d.cards, 2);
    cr_expect_eq(d.pair_cards, 2);
    cr_expect(d.exclusive);
    cr_expect_not(d.has_card_need);
    cr_expect_eq(d.align, RELATION_PIX);
    cr_assert_eq(read_pod("", &d, &err), 0);
    cr_expect_null(needs, "a pod without claims");
}

Test(claim_book, joins_no_constraint_that_binds_one_device)
{
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
    struct error err = {0};
    publish();
    put_template(CARD("") "," GPU(""),
                 "[{\"requests\":[\"card\"],\"matchAttribute\":\"" ROOT
                 "\"},{\"requests\":[\"card\",\"gpu\"],\"matchAttribute\":"
                 "\"resource.kubernetes.io/numaNode\"}]");
    d.align = RELATION_SYS;
    cr_assert_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    cr_expect_eq(d.align, RELATION_NODE);
    d.align = RELATION_PIX;
    cr_assert_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    cr_expect_eq(d.align, RELATION_PIX, "what the pod says itself is closer");
}

Test(claim_book, refuses_with_the_request_and_what_would_help)
{
    expect_refused(FROM("t"), ROLE_HOST,
                   "spec.resourceClaims[\"pair\"]: ResourceClaimTemplate \"t\" "
                   "is not there: create it");
    put_template(CARD(""), "[]");
    expect_refused(FROM("t"), ROLE_HOST,
                   "request \"card\": DeviceClass \"xpu.biga.dev\" is not "
                   "there: create it");
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("xpu.biga.dev", SIMCLAIMS_CARD_CEL));
    expect_refused(FROM("t"), ROLE_HOST,
                   "request \"card\": selects no card of any node: cards are "
                   "given by claims where biga-advertiser runs with --claims");
    publish();
    put_template(CARD(",\"allocationMode\":\"All\""), "[]");
    expect_refused(FROM("t"), ROLE_HOST, "has allocationMode All");
    put_template(CARD(",\"adminAccess\":true"), "[]");
    expect_refused(FROM("t"), ROLE_HOST, "has adminAccess");
    put_template(CARD(",\"count\":17"), "[]");
    expect_refused(FROM("t"), ROLE_HOST, "more than 16 cards");
    put_template(GPU(""), "[]");
    expect_refused(FROM("t"), ROLE_XPU, "they go to the host pod");
    put_template("{\"name\":\"odd\",\"firstAvailable\":[{\"name\":\"a\","
                 "\"deviceClassName\":\"xpu.biga.dev\"}]}",
                 "[]");
    expect_refused(FROM("t"), ROLE_HOST, "odd");
    put(CLAIM_BOOK_CLASSES, simclaims_class("gpu.example.com", "1 +"));
    put_template(GPU(""), "[]");
    expect_refused(FROM("t"), ROLE_HOST,
                   "DeviceClass \"gpu.example.com\" cannot be read: ");
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("gpu.example.com", "device.driver == \"other\""));
    expect_refused(FROM("t"), ROLE_HOST, "has to publish");
}

Test(claim_book, leaves_other_devices_to_kube_scheduler_without_a_gate)
{
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0), before = d;
    struct error err = {0};
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("xpu.biga.dev", SIMCLAIMS_CARD_CEL));
    put_template(GPU(",\"allocationMode\":\"All\""), "[]");
    at_gate = false;
    cr_expect_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    cr_expect_eq(claim_needs_cards(needs) + claim_needs_gpus(needs), 0);
    cr_expect_eq(memcmp(&d, &before, sizeof d), 0);
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("gpu.example.com", "device.driver == \"other\""));
    cr_expect_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
    put_template(CARD(""), "[]");
    expect_refused(FROM("t"), ROLE_HOST, "selects no card of any node");
}

Test(claim_book, refuses_claims_that_differ_or_stand_alone)
{
    publish();
    put(CLAIM_BOOK_TEMPLATES, simclaims_template("t", CARD(""), "[]"));
    put(CLAIM_BOOK_TEMPLATES, simclaims_template("u", CARD(SHARE), "[]"));
    expect_refused(FROM("t") ",{\"name\":\"b\",\"resourceClaimTemplateName\":"
                             "\"u\"}",
                   ROLE_HOST,
                   "spec.resourceClaims[\"b\"]: request \"card\": asks another "
                   "amount");
    put(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 1, "", ""));
    expect_refused("{\"name\":\"own\",\"resourceClaimName\":\"c\"}", ROLE_HOST,
                   "use a resourceClaimTemplateName");
    expect_refused("{\"name\":\"own\",\"resourceClaimName\":\"d\"}", ROLE_HOST,
                   "ResourceClaim \"d\" is not there");
}

Test(claim_book, lets_one_of_a_pair_claim)
{
    struct demand host = sim_pod("h", ROLE_HOST, "j", 0);
    struct error err = {0};
    publish();
    put_template(CARD(""), "[]");
    cr_assert_eq(read_pod(FROM("t"), &host, &err), 0, "%s", err.text);
    cr_expect_eq(claim_needs_check_pair(needs, NULL, &err), 0);
    cr_expect_eq(claim_needs_check_pair(needs, needs, &err), -EDOM);
}

/* --- which devices ------------------------------------------------------------ */

static void expect_allowed(const char *node, unsigned cards, unsigned gpus)
{
    struct claim_allowed is;
    struct error why = {0};
    bool any = claim_book_allows(book, needs, node_of(node), &is, &why);
    cr_expect_eq(is.cards, cards, "%s: cards %x: %s", node, is.cards, why.text);
    cr_expect_eq(is.gpus, gpus, "%s: gpus %x: %s", node, is.gpus, why.text);
    cr_expect_eq(any, cards && gpus);
}

static void ask(const char *requests, const char *constraints)
{
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
    struct error err = {0};
    put_template(requests, constraints);
    cr_assert_eq(read_pod(FROM("t"), &d, &err), 0, "%s", err.text);
}

Test(claim_book, allows_what_selectors_and_taints_leave)
{
    const struct node *n = node_of("n0");
    publish();
    ask(CARD("") "," GPU(""), "[]");
    expect_allowed("n0", 0xf, 0xf);
    put(CLAIM_BOOK_OWN_SLICES, simclaims_cards(n->topo, 2, "card-0000-13-00"));
    expect_allowed("n0", 0xd, 0xf);
    expect_allowed("n1", 0xf, 0xf);
    put(CLAIM_BOOK_SLICES, simclaims_gpus(n->topo, 2, "gpu-0"));
    expect_allowed("n0", 0xd, 0xe);
    ask(CARD(",\"selectors\":[{\"cel\":{\"expression\":\"device.attributes["
             "\\\"resource.kubernetes.io\\\"].pciBusID == "
             "\\\"0000:22:00.0\\\"\"}}]"),
        "[]");
    expect_allowed("n0", 4, UINT16_MAX);
    gone(CLAIM_BOOK_OWN_SLICES, simclaims_cards(n->topo, 2, ""));
    expect_allowed("n0", 0, UINT16_MAX);
    expect_allowed("n1", 4, UINT16_MAX);
}

Test(claim_book, follows_classes)
{
    publish();
    ask(CARD(""), "[]");
    expect_allowed("n0", 0xf, UINT16_MAX);
    uint64_t version = claim_book_version(book);
    put(CLAIM_BOOK_CLASSES,
        simclaims_class("xpu.biga.dev", SIMCLAIMS_CARD_CEL
                        " && device.attributes[\"biga.dev\"].node == "
                        "\"n1\""));
    cr_expect_gt(claim_book_version(book), version);
    expect_allowed("n0", 0, UINT16_MAX);
    expect_allowed("n1", 0xf, UINT16_MAX);
}

Test(claim_book, wants_the_attributes_that_constraints_compare)
{
    struct claim_allowed allowed;
    struct error why = {0};
    publish();
    ask(CARD("") "," GPU(""), MATCH("biga.dev/switch"));
    cr_expect_not(
        claim_book_allows(book, needs, node_of("n0"), &allowed, &why));
    cr_expect(strstr(why.text, "request \"gpu\""), "%s", why.text);
    cr_expect(strstr(why.text, "has no attribute \"biga.dev/switch\""), "%s",
              why.text);
}

/* --- pins ------------------------------------------------------------------------ */

/* An allocation of these cards and GPUs of n0. */
static struct allocation *place(unsigned cards, unsigned gpus)
{
    const struct node *n = node_of("n0");
    struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
    struct allocation *a = allocation_create(&d, "n0");
    size_t first;
    a->cards = xcalloc(CARDS, sizeof *a->cards);
    a->card_pci = xcalloc(CARDS, sizeof *a->card_pci);
    a->gpus = xcalloc(CARDS, sizeof *a->gpus);
    a->gpu_pci = xcalloc(CARDS, sizeof *a->gpu_pci);
    for (size_t i = 0; i < CARDS; i++) {
        (void)topo_count(n->topo, DEVICE_CARD, &first);
        const struct device *card = topo_device(n->topo, first + i);
        (void)topo_count(n->topo, DEVICE_GPU, &first);
        const struct device *gpu = topo_device(n->topo, first + i);
        if (cards >> i & 1) {
            memcpy(a->cards[a->n_cards], card->id, strlen(card->id));
            pci_addr_format(&card->pci, a->card_pci[a->n_cards++]);
        }
        if (gpus >> i & 1) {
            memcpy(a->gpus[a->n_gpus], gpu->id, strlen(gpu->id));
            pci_addr_format(&gpu->pci, a->gpu_pci[a->n_gpus++]);
        }
    }
    return a;
}

static int pin(unsigned cards, unsigned gpus, struct claim_book_pins *pins,
               struct error *err)
{
    cleanup_with(allocation) struct allocation *a = place(cards, gpus);
    return claim_book_pin(book, needs, node_of("n0"), a, pins, err);
}

Test(claim_book, pins_each_request_to_its_device)
{
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    struct error err = {0};
    publish();
    ask(CARD(SHARE) "," GPU(""), MATCH(ROOT));
    cr_assert_eq(pin(4, 8, &pins, &err), 0, "%s", err.text);
    cr_assert_eq(pins.n, 1);
    cr_expect_str_eq(pins.items[0].name, "pair");
    cr_expect(pins.items[0].pinned);
    const char *spec = str_text(&pins.items[0].spec);
    cr_expect(strstr(spec, "0000:22:00.0"), "%s", spec);
    cr_expect(strstr(spec, "0000:23:01.0"), "%s", spec);
    cr_expect(strstr(spec, "\\\"n0\\\""), "%s", spec);
    claim_book_pins_fini(&pins);
    cr_expect_eq(pin(1, 8, &pins, &err), -EDOM, "of another root");
    cr_expect(strstr(err.text, "request \"gpu\""), "%s", err.text);
}

Test(claim_book, gives_devices_so_that_constraints_hold)
{
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    struct error err = {0};
    publish();
    /* the first card asks for the second GPU's root by its own constraint */
    ask("{\"name\":\"a\",\"exactly\":{\"deviceClassName\":\"xpu.biga.dev\","
        "\"selectors\":[{\"cel\":{\"expression\":\"device.attributes["
        "\\\"resource.kubernetes.io\\\"].pcieRoot == "
        "\\\"pci0000:20\\\"\"}}]}},"
        "{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"}"
        "}",
        MATCH(ROOT));
    cr_assert_eq(pin(4, 9, &pins, &err), 0, "%s", err.text);
    const char *spec = str_text(&pins.items[0].spec);
    cr_expect(strstr(spec, "0000:23:01.0"), "%s", spec);
    cr_expect_null(strstr(spec, "0000:12:01.0"), "%s", spec);
}

/* kube-scheduler looks for devices where pods ask for these. */
Test(claim_book, tells_which_resources_classes_give)
{
    char *named = xstrdup("{\"metadata\":{\"name\":\"big\"},\"spec\":{"
                          "\"extendedResourceName\":\"example.com/big\"}}");
    put(CLAIM_BOOK_CLASSES, named);
    cr_expect(strstr(resources, "deviceclass.resource.kubernetes.io/big "));
    cr_expect(strstr(resources, "example.com/big "), "%s", resources);
    put(CLAIM_BOOK_CLASSES, simclaims_class("big", "true"));
    cr_expect_str_eq(resources, "deviceclass.resource.kubernetes.io/big ");
    gone(CLAIM_BOOK_CLASSES, simclaims_class("big", "true"));
    cr_expect_str_eq(resources, "");
}

#define LIKE(name)      \
    "{\"name\":\"" name \
    "\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"}}"

/* What they are allowed is kept once for both. */
Test(claim_book, names_each_of_requests_that_are_alike)
{
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    struct error err = {0};
    publish();
    ask(LIKE("first"), "[]");
    ask(LIKE("g") "," LIKE("h"), "[]");
    cr_assert_eq(pin(0, 3, &pins, &err), 0, "%s", err.text);
    const char *spec = str_text(&pins.items[0].spec);
    size_t n = 0;
    for (const char *at = spec; (at = strstr(at, "\"selectors\"")); at++)
        n++;
    cr_expect_eq(n, 2, "%s", spec);
}

/* --- as long as it is asked ------------------------------------------------------ */

Test(claim_book, needs_outlive_their_template)
{
    cleanup_claim_book_pins struct claim_book_pins pins = {0};
    struct error err = {0};
    publish();
    ask(CARD(""), "[]");
    gone(CLAIM_BOOK_TEMPLATES, simclaims_template("t", CARD(""), "[]"));
    expect_allowed("n0", 0xf, UINT16_MAX);
    cr_expect_eq(pin(1, 0, &pins, &err), 0, "%s", err.text);
    claim_needs_unref(needs);
    needs = NULL;
}
