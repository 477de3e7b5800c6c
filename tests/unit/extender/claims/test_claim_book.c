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
