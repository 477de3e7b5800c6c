#include "extender/view/node_drawing.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/state/draft.h"
#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/xml.h"

static struct draft *draft;
static struct str out;

static void start(void)
{
    struct snapshot *empty = snapshot_create_empty();
    draft = draft_create(empty);
    snapshot_unref(empty);
    out = STR_INIT(64 << 20);
}

static void stop(void)
{
    draft_destroy(draft);
    str_fini(&out);
}

TestSuite(node_drawing, .init = start, .fini = stop);

static void put(struct topo *topo)
{
    simfleet_put(draft, topo);
    topo_unref(topo);
}

/* A pod with these devices of node "n" (NULL: none). */
static void give(const char *name, enum pod_role role, const char *card,
                 const char *gpu)
{
    struct demand d = sim_pod(name, role, "ring", 3);
    struct allocation *a = allocation_create(&d, "n");
    if (card) {
        a->n_cards = 1;
        a->cards = xcalloc(1, sizeof *a->cards);
        (void)snprintf(a->cards[0], sizeof a->cards[0], "%s", card);
    }
    if (gpu) {
        a->n_gpus = 1;
        a->gpus = xcalloc(1, sizeof *a->gpus);
        (void)snprintf(a->gpus[0], sizeof a->gpus[0], "%s", gpu);
    }
    draft_allocate(draft, a);
}

static void add_health(void *ctx, const struct node *node, size_t card,
                       struct str *text)
{
    (void)node;
    if (card == 1)
        str_add(text, ctx);
}

static void draw(enum drawing_form form)
{
    static char told[] = "no answer <for> 9 s";
    struct snapshot *s = draft_peek(draft);
    const struct node_drawing drawing = {
        .snapshot = s, .form = form, .add_health = add_health, .ctx = told};
    str_reset(&out);
    node_drawing_write(&drawing, &out);
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

Test(node_drawing, shows_every_device_and_who_has_it)
{
    put(simhost_board("n", 1, 2));
    draw(DRAWING_FILE);
    EXPECT(2, ">NUMA node ");
    EXPECT(4, "data-device=\"card-");
    EXPECT(8, "data-device=\"gpu-");
    EXPECT(10,
           "data-device=\"nic-"); /* one of each package is no compute NIC */
    EXPECT(8, ">PCIe switch below ");
    EXPECT(1, ">ready; 4/4 cards idle, 8/8 GPUs free, 0 pods</text>");
    const struct topo *topo = draft_node(draft, "n")->topo;
    size_t gpu;
    (void)topo_count(topo, DEVICE_GPU, &gpu);
    give("a<b", ROLE_HOST, topo_device(topo, 0)->id,
         topo_device(topo, gpu)->id);
    give("x", ROLE_XPU, topo_device(topo, 0)->id, NULL);
    draw(DRAWING_FILE);
    EXPECT(2, ">host ns/a&lt;b</text>");
    EXPECT(1, ">xpu ns/x</text>");
    EXPECT(2, "host ns/a&lt;b, pair 3 of job ring");
    EXPECT(1, "; 3/4 cards idle, 7/8 GPUs free, 2 pods</text>");
    EXPECT(2, ">given</text>"); /* and in the legend */
    cr_expect(strstr(str_text(&out), "prefers-color-scheme:dark"));
}

Test(node_drawing, tells_what_is_the_matter)
{
    put(simhost_topo("n", 3));
    struct card_bars *bars = card_bars_create(1);
    const struct device *card = topo_device(draft_node(draft, "n")->topo, 0);
    bars->items[0] = (struct card_bar){.has_pci = true, .pci = card->pci};
    (void)snprintf(bars->items[0].why, sizeof bars->items[0].why, "%s",
                   "drained: \"firmware\" & \x01 \xef\xbf\xbf <new>");
    draft_set_bars(draft, "n", bars);
    card_bars_unref(bars);
    draw(DRAWING_FILE);
    EXPECT(1, ">unhealthy</text>");
    EXPECT(1, ">16 cores, 32 GiB</text>"); /* of which nothing can be had */
    EXPECT(1, "class=\"ill\" x=\"40");     /* beside the legend's */
    EXPECT(2, "drained: &quot;firmware&quot; &amp; ? ? &lt;new&gt;");
    EXPECT(2, "no answer &lt;for&gt; 9 s"); /* in its box and its tooltip */
    draft_set_status(draft, "n", NODE_STALE);
    draw(DRAWING_FILE);
    EXPECT(1, "class=\"bad\" x=\"20\" y=\"50\">stale; 0/3 cards idle");
    EXPECT(6, ">unavailable</text>"); /* 2 cards, 3 GPUs, the legend */
}

/* A page has the rules in its own style sheet. */
Test(node_drawing, goes_into_a_page)
{
    put(simhost_topo("n", 1));
    draw(DRAWING_INLINE);
    EXPECT(0, "<style>");
    EXPECT(0, "style=");
    EXPECT(1, "class=\"biga-drawing\"");
    cr_expect(strncmp(drawing_rules, ".biga-drawing ", 14) == 0);
}

Test(node_drawing, counts_what_is_too_much)
{
    struct topo *topo = simhost_nics("n", 900, "ConnectX <7>");
    put(topo);
    draw(DRAWING_FILE);
    EXPECT(NODE_DRAWING_NICS, "data-device=\"nic-");
    EXPECT(1, ">and 896 more NICs that pods cannot have</text>");
    cr_expect_lt(out.size, 16384);
    put(simhost_topo("n", 1));
    for (int i = 0; i < 9; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        give(name, ROLE_SERVICE,
             topo_device(draft_node(draft, "n")->topo, 0)->id, NULL);
    }
    draw(DRAWING_FILE);
    EXPECT(NODE_DRAWING_PODS, "data-pod=\"ns/p");
    EXPECT(1, ">and 3 more</text>");
}

Test(node_drawing, frames_packages_of_several_numa_nodes)
{
    struct topo_builder *b = topo_builder_create("n");
    struct topo *topo = NULL;
    struct error err;
    for (int i = 0; i < 4; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "numa-%d", i);
        const struct device d = {.kind = DEVICE_NUMA,
                                 .id = id,
                                 .numa = i,
                                 .package = i / 2,
                                 .cpus = 8};
        topo_builder_add(b, &d, NULL);
    }
    const struct device odd = {.kind = DEVICE_GPU,
                               .id = "gpu-0",
                               .numa = 9,
                               .package = -1,
                               .has_pci = true};
    const struct device lost = {.kind = DEVICE_GPU,
                                .id = "gpu-1",
                                .numa = -1,
                                .package = -1,
                                .has_pci = true,
                                .pci = {.bus = 1}};
    topo_builder_add(b, &odd, NULL);
    topo_builder_add(b, &lost, NULL);
    cr_assert_eq(topo_build(b, &topo, &err), 0, "%s", err.text);
    topo_builder_destroy(b);
    put(topo);
    draw(DRAWING_FILE);
    EXPECT(2, "<rect class=\"p\"");
    EXPECT(1, ".biga-drawing .p{fill:none;"); /* else it is filled with black */
    EXPECT(1, ">package 1</text>\n<rect class=\"f\"");
    EXPECT(1, ">NUMA node 9</text>");
    EXPECT(1, ">NUMA node unknown</text>");
    EXPECT(2, "data-device=\"gpu-");
}

Test(node_drawing, is_there_without_a_topology)
{
    const struct node_update update = {
        .name = "n", .status = NODE_INCOMPLETE, .hash = ""};
    draft_put_node(draft, &update);
    draw(DRAWING_FILE);
    EXPECT(1, ">incomplete; 0/0 cards idle, 0/0 GPUs free, 0 pods</text>");
}
