/* A claim book that is told of slices, templates, classes and claims by one
 * thread, while others read what pods ask, which devices they may have, and
 * how claims fare.  What is told ends as it began.  ThreadSanitizer says the
 * rest. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/claims/claim_book.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simclaims.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"

enum { ASKERS = 3, TURNS = 1500 };

static struct claim_book *book;
static struct snapshot *fleet;
static atomic_bool over;
static atomic_uint n_read, n_allowed;
static int n_used; /* the teller's alone */

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "race_claim_book: %s\n", what);
    exit(1);
}

static void on_used(void *ctx, struct claim_use *use, bool gone)
{
    (void)ctx;
    (void)use;
    n_used += gone ? -1 : 1;
}

static void tell(enum claim_book_kind kind, char *json, bool gone)
{
    void *ctx = claim_book_ctx(book, kind);
    if (gone)
        claim_book_handler.gone(ctx, json, strlen(json));
    else
        claim_book_handler.put(ctx, json, strlen(json));
    free(json);
}

static void tell_all(unsigned turn, bool gone)
{
    const struct topo *topo = snapshot_node(fleet, 0)->topo;
    tell(CLAIM_BOOK_OWN_SLICES,
         simclaims_cards(topo, turn + 1, turn % 2 ? "card-0000-12-00" : ""),
         gone && turn % 3 == 0);
    tell(CLAIM_BOOK_SLICES, simclaims_gpus(topo, turn + 1, ""),
         gone && turn % 3 == 1);
    tell(CLAIM_BOOK_CLASSES,
         simclaims_class("xpu.biga.dev", SIMCLAIMS_CARD_CEL),
         gone && turn % 7 == 0);
    tell(CLAIM_BOOK_TEMPLATES,
         simclaims_template("t",
                            "{\"name\":\"card\",\"exactly\":{"
                            "\"deviceClassName\":\"xpu.biga.dev\"}}",
                            "[]"),
         gone && turn % 5 == 0);
    tell(CLAIM_BOOK_CLAIMS,
         simclaims_claim("c", turn + 1, "uid-p",
                         "{\"request\":\"gpu\",\"driver\":\"xpu.biga.dev\","
                         "\"pool\":\"n0\",\"device\":\"card-0000-12-00\"}"),
         gone);
}

static void *asker(void *arg)
{
    cleanup_free char *pod = simclaims_pod(
        "p", "{\"name\":\"pair\",\"resourceClaimTemplateName\":\"t\"}");
    (void)arg;
    while (!atomic_load(&over)) {
        cleanup_with(claim_needs) struct claim_needs *needs = NULL;
        struct demand d = sim_pod("p", ROLE_HOST, "j", 0);
        struct claim_fate fate;
        struct error err = {0}, why = {0};
        struct claim_allowed allowed;
        (void)claim_book_find(book, "ns", "c", &fate);
        (void)claim_book_version(book);
        if (claim_book_read(book, fleet, pod, strlen(pod), true, &d, &needs,
                            &err) < 0)
            continue;
        atomic_fetch_add(&n_read, 1);
        if (claim_book_allows(book, needs, snapshot_node(fleet, 0), &allowed,
                              &why))
            atomic_fetch_add(&n_allowed, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[ASKERS];
    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    cleanup_with(topo) struct topo *topo = simhost_topo("n0", 4);
    struct draft *d = draft_create(empty);
    log_set_level(LOG_ERROR + 1);
    simfleet_put(d, topo);
    fleet = draft_commit(d);
    book = claim_book_create(&(struct claim_book_config){.used = on_used});
    for (size_t i = 0; i < ASKERS; i++)
        must(pthread_create(&threads[i], NULL, asker, NULL) == 0, "no thread");
    for (unsigned turn = 0;
         turn < TURNS || !atomic_load(&n_read) || !atomic_load(&n_allowed);
         turn++)
        tell_all(turn, turn % 4 == 3);
    atomic_store(&over, true);
    for (size_t i = 0; i < ASKERS; i++)
        (void)pthread_join(threads[i], NULL);
    tell(CLAIM_BOOK_CLAIMS, simclaims_claim("c", 0, "", ""), true);
    must(n_used == 0, "claims are not told as often as they end");
    claim_book_destroy(book);
    snapshot_unref(fleet);
    return 0;
}
