#include "extender/judge/alignment.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "extender/state/draft.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

/* On node000 of a fleet, with the first card, near NUMA node 0, and (if `gpu`)
 * the first GPU. */
static struct allocation *place(enum pod_role role, int numa, bool gpu,
                                enum relation relation)
{
    const struct demand d = {.name = "p", .namespace = "ns", .role = role};
    struct allocation *a = allocation_create(&d, "node000");
    a->cards = xcalloc(1, sizeof *a->cards);
    (void)snprintf(a->cards[0], sizeof a->cards[0], "card-0000-12-00");
    a->n_cards = 1;
    if (gpu) {
        a->gpus = xcalloc(1, sizeof *a->gpus);
        (void)snprintf(a->gpus[0], sizeof a->gpus[0], "gpu-0000-12-01-0");
        a->n_gpus = 1;
    }
    a->numa = numa;
    a->relation = relation;
    return a;
}

Test(alignment, is_of_what_the_pod_has)
{
    static const struct {
        int numa;
        bool gpu;
        enum relation relation;
        const char *word, *event;
    } cases[] = {
        {0, true, RELATION_PIX, "PIX",
         "on node000: card card-0000-12-00, GPU gpu-0000-12-01-0, PIX"},
        {0, false, RELATION_PIX, "NODE",
         "on node000: card card-0000-12-00, PIX to the GPU of its host pod"},
        {1, false, RELATION_PXB, "SYS",
         "on node000: card card-0000-12-00, PXB to the GPU of its host pod"},
        {0, false, RELATION_NODE, "NODE",
         "on node000: card card-0000-12-00, NODE"},
        {7, false, RELATION_PIX, "SYS",
         "on node000: card card-0000-12-00, PIX to the GPU of its host pod"},
        {-1, false, RELATION_SYS, "-", "on node000: card card-0000-12-00, SYS"},
    };
    struct snapshot *s = draft_commit(simfleet_draft(simhost_topo, 1, 4));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(allocation) struct allocation *a =
            place(cases[i].gpu ? ROLE_HOST : ROLE_XPU, cases[i].numa,
                  cases[i].gpu, cases[i].relation);
        cleanup_str struct str event = STR_INIT(1024), json = STR_INIT(8192);
        cr_expect_str_eq(alignment_word(s, a), cases[i].word, "%zu", i);
        alignment_tell(a, &event);
        cr_expect_str_eq(str_text(&event), cases[i].event);
        alignment_encode(s, a, &json);
        cr_expect(strstr(str_text(&json), *cases[i].word == '-'
                                              ? ",\"alignment\":null}"
                                              : ",\"alignment\":{\"relation\""),
                  "%s", str_text(&json));
    }
    snapshot_unref(s);
}

/* Nobody can tell before which GPU a device plugin gives. */
Test(alignment, says_who_chooses_the_gpus)
{
    static const char by[] = ",\"gpusChosenBy\":\"device-plugin\"}";
    cleanup_with(snapshot) struct snapshot *s =
        draft_commit(simfleet_draft(simhost_topo, 1, 4));
    for (int plugin = 0; plugin < 2; plugin++) {
        cleanup_with(allocation) struct allocation *a =
            place(ROLE_HOST, 0, true, RELATION_PIX);
        cleanup_str struct str json = STR_INIT(8192), why = STR_INIT(1024);
        a->demand.gpus_by_plugin = plugin;
        alignment_encode(s, a, &json);
        cr_expect_eq(strstr(str_text(&json), by) != NULL, plugin, "%s",
                     str_text(&json));
        alignment_explain(s, a, &why);
        cr_expect_eq(strstr(str_text(&why), "chosen by the device plugin") !=
                         NULL,
                     plugin, "%s", str_text(&why));
        str_reset(&json);
        allocation_encode(a, &json); /* which older replicas read, too */
        cr_expect_null(strstr(str_text(&json), "gpusChosenBy"));
    }
}

/* What is not known is not near. */
Test(alignment, on_a_node_that_is_gone)
{
    cleanup_with(snapshot) struct snapshot *none = snapshot_create_empty();
    cleanup_with(allocation) struct allocation *xpu = place(ROLE_XPU, 0, false,
                                                            RELATION_PIX);
    cleanup_with(allocation) struct allocation *host = place(ROLE_HOST, 0, true,
                                                             RELATION_PIX);
    cr_expect_str_eq(alignment_word(none, xpu), "SYS");
    cr_expect_str_eq(alignment_word(none, host), "PIX");
}
