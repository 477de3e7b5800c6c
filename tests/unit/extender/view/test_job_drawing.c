#include "extender/view/job_drawing.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "tests/lib/sim/simfabric.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/xml.h"

static struct draft *draft;
static struct str out;

static void start(void)
{
    cleanup_with(fabric) struct fabric *f = simfabric_read(
        "SwitchName=l<1> Nodes=node000,node001\n"
        "SwitchName=l2 Nodes=node002\nSwitchName=s Switches=l<1>,l2\n");
    draft = simfleet_draft(simhost_topo, 4, 2);
    draft_set_fabric(draft, f);
    out = STR_INIT(64 << 20);
}

static void stop(void)
{
    draft_destroy(draft);
    str_fini(&out);
}

TestSuite(job_drawing, .init = start, .fini = stop);

static void place(int pair, int size, unsigned node, bool held)
{
    char name[32], host[32];
    (void)snprintf(name, sizeof name, "ring-%d", pair);
    (void)snprintf(host, sizeof host, "node%03u", node);
    struct demand d = sim_pod(name, ROLE_HOST, "ring", pair);
    d.size = size;
    struct allocation *a = allocation_create(&d, host);
    a->held = held;
    a->n_cards = 1;
    a->cards = xcalloc(1, sizeof *a->cards);
    (void)snprintf(a->cards[0], sizeof a->cards[0], "card-%d", pair % 2);
    draft_allocate(draft, a);
}

static void draw(enum drawing_form form)
{
    struct snapshot *s = draft_peek(draft);
    struct job_view v;
    size_t n;
    cleanup_free const struct allocation **members =
        alloc_index_find_job(s->allocations, "ns", "ring", &n);
    const struct job_parts parts = {.members = members, .n = n};
    job_view_init(&v, s, NULL, &parts);
    str_reset(&out);
    job_drawing_write(&v, form, &out);
    job_view_fini(&v);
    snapshot_unref(s);
    cr_assert(xml_is_well_formed(&out), "%s", str_text(&out));
}

static size_t count(const char *what)
{
    size_t n = 0;
    for (const char *p = str_text(&out); (p = strstr(p, what));
         p += strlen(what))
        n++;
    return n;
}

#define EXPECT(n, what) \
    cr_expect_eq(count(what), n, "%s in %s", what, str_text(&out))

Test(job_drawing, has_a_line_for_every_pair)
{
    place(0, 6, 0, false);
    place(1, 6, 1, false);
    place(2, 6, 1, false);
    place(3, 6, 2, true);
    place(5, 6, 3, false); /* whose leaf nobody knows */
    draw(DRAWING_FILE);
    EXPECT(1, ">ns/ring</text>");
    EXPECT(1, ">4 of 6 pairs bound, 1 held; ");
    EXPECT(3, "data-leaf=");
    EXPECT(1, "data-leaf=\"l&lt;1&gt;\"");
    EXPECT(1, ">leaf unknown</text>");
    EXPECT(1, ">3 pairs on 2 nodes, 3 not aligned; ranks 0-2</text>");
    EXPECT(4, "data-node=\"node");
    EXPECT(5, "data-pair=");
    EXPECT(3, ">card-1</text>");
    EXPECT(1, " held</text>\n</g>");
    EXPECT(1, "<rect class=\"kept\" x=\"6"); /* beside the legend's */
    EXPECT(1, ">without a place: ranks 4</text>");
    draw(DRAWING_INLINE);
    EXPECT(0, "style");
}

/* As a ring goes through them, whatever they are called. */
Test(job_drawing, is_in_the_order_of_ranks)
{
    place(0, 4, 2, false);
    place(1, 4, 1, false);
    place(2, 4, 1, false);
    place(3, 4, 0, false);
    draw(DRAWING_FILE);
    const char *svg = str_text(&out);
    cr_expect_lt(strstr(svg, "data-leaf=\"l2\""),
                 strstr(svg, "data-leaf=\"l&lt;1&gt;\""));
    cr_expect_lt(strstr(svg, "data-node=\"node001\""),
                 strstr(svg, "data-node=\"node000\""));
    EXPECT(1, ">3 pairs on 2 nodes, 3 not aligned; ranks 1-3</text>");
}

Test(job_drawing, has_a_cell_for_every_pair_of_a_large_job)
{
    for (int i = 0; i < JOB_DRAWING_LINES + 1; i++)
        place(i, JOB_DRAWING_LINES + 1, (unsigned)i % 3, false);
    draw(DRAWING_FILE);
    EXPECT(JOB_DRAWING_LINES + 1, "data-pair=");
    EXPECT(0, ">card-");
    EXPECT(1, ">256</text>");
}

Test(job_drawing, has_the_leaves_of_a_very_large_one)
{
    for (int i = 0; i < JOB_DRAWING_CELLS + 1; i++)
        place(i, JOB_DRAWING_CELLS + 1, (unsigned)i % 2 * 2, false);
    draw(DRAWING_FILE);
    EXPECT(0, "data-pair=");
    EXPECT(1,
           ">l&lt;1&gt;: 2049 pairs on 1 node, 2049 not aligned; ranks 0,2,");
    EXPECT(2, "data-leaf=");
    cr_expect_lt(out.size, 16384);
}
