#include "extender/view/node_drawing_private.h"

#include <inttypes.h>
#include <string.h>

#include "extender/judge/alignment.h"
#include "extender/view/views.h"
#include "lib/base/text.h"

enum {
    INNER = DEVICE_BOX_WIDTH - 2 * DRAWING_PAD,
    BAR = 8,
    STRIPE = 4, /* at the left of what somebody has */
    TEXT_MAX = 4096,
};

static const struct device *device(const struct device_box *b)
{
    return topo_device(b->node->topo, b->device);
}

/* --- who has it ----------------------------------------------------------- */

struct holder {
    const struct allocation *pod; /* or: */
    const struct claim_use *claim;
};

static bool has(const struct allocation *a, const struct device *d)
{
    char(*ids)[TOPO_ID_MAX + 1] = d->kind == DEVICE_CARD  ? a->cards
                                  : d->kind == DEVICE_GPU ? a->gpus
                                                          : a->nics;
    size_t n = d->kind == DEVICE_CARD  ? a->n_cards
               : d->kind == DEVICE_GPU ? a->n_gpus
                                       : a->n_nics;
    for (size_t i = 0; i < n; i++)
        if (strcmp(ids[i], d->id) == 0)
            return true;
    return false;
}

/* By which the decision knows it; -1: it does not. */
static int bit_of(const struct device_box *b)
{
    size_t list[TOPO_KIND_MAX];
    size_t n = topo_considered(b->node->topo, device(b)->kind, list);
    for (size_t i = 0; i < n; i++)
        if (list[i] == b->device)
            return (int)i;
    return -1;
}

static bool claim_has(const struct claim_rest *r, enum device_kind kind,
                      int bit)
{
    unsigned bits = kind == DEVICE_CARD  ? r->cards
                    : kind == DEVICE_GPU ? r->gpus
                                         : r->nics;
    return bit >= 0 && (bits >> bit & 1);
}

/* How many; the first ones into `ret`. */
static size_t find_holders(const struct device_box *b,
                           struct holder ret[NODE_DRAWING_PODS])
{
    const struct device *d = device(b);
    int bit = b->node->n_rests ? bit_of(b) : -1;
    size_t n = 0;
    for (size_t i = 0; i < b->node->n_allocations; i++) {
        if (!has(b->node->allocations[i], d))
            continue;
        if (n++ < NODE_DRAWING_PODS)
            ret[n - 1] = (struct holder){.pod = b->node->allocations[i]};
    }
    for (size_t i = 0; i < b->node->n_rests; i++) {
        if (!claim_has(&b->node->rests[i], d->kind, bit))
            continue;
        if (n++ < NODE_DRAWING_PODS)
            ret[n - 1] = (struct holder){.claim = b->node->rests[i].claim};
    }
    return n;
}

bool device_box_is_held(const struct device_box *b)
{
    struct holder ignored[NODE_DRAWING_PODS];
    return find_holders(b, ignored) > 0;
}

/* --- what it is ----------------------------------------------------------- */

static size_t card_of(const struct device_box *b)
{
    size_t first = 0;
    (void)topo_count(b->node->topo, DEVICE_CARD, &first);
    return b->device - first;
}

/* For GPUs and NICs. */
static const char *given_word(const struct device_box *b)
{
    const struct node_state *s = &b->node->state;
    bool is_gpu = device(b)->kind == DEVICE_GPU;
    int bit = bit_of(b);
    if (bit < 0)
        return device(b)->set_aside ? "set aside" : "";
    if ((is_gpu ? s->gpus_used : s->nics_used) >> bit & 1)
        return "given";
    return b->node->status == NODE_READY ? "free" : "unavailable";
}

static const char *state_word(const struct device_box *b)
{
    return device(b)->kind == DEVICE_CARD
               ? card_state_name(card_state(b->node, card_of(b)))
               : given_word(b);
}

/* Its frame, which tells what its word says. */
static const char *box_class(const char *state)
{
    if (strcmp(state, "unhealthy") == 0 || strcmp(state, "drained") == 0)
        return "ill";
    return strcmp(state, "unavailable") == 0 ? "out" : "c";
}

static const char *stripe_class(const char *state)
{
    if (strcmp(state, "held") == 0)
        return "whole";
    return strcmp(state, "used") == 0 || strcmp(state, "given") == 0 ? "has"
                                                                     : NULL;
}

static void add_name(const struct device *d, struct str *out)
{
    char pci[PCI_ADDR_TEXT_MAX];
    if (d->has_pci)
        pci_addr_format(&d->pci, pci);
    str_addf(out, "%s %s", device_kind_name(d->kind), d->has_pci ? pci : d->id);
}

static void add_part(struct str *out, const char *text)
{
    if (*text)
        str_addf(out, "%s%s", out->size ? ", " : "", text);
}

static void add_model(const struct device *d, struct str *out)
{
    add_part(out, d->model);
    add_part(out, d->arch);
    if (d->kind == DEVICE_NIC || !out->size)
        add_part(out, d->interface);
    if (d->kind == DEVICE_NIC)
        add_part(out, d->rdma);
    if (d->link_mbps && d->kind == DEVICE_NIC)
        str_addf(out, ", %" PRIu32 " Gbit/s", d->link_mbps / 1000);
}

/* What is the matter with it; nothing when all is well. */
static void add_trouble(const struct device_box *b, struct str *out)
{
    const struct device *d = device(b);
    cleanup_str struct str told = STR_INIT(TEXT_MAX);
    if (d->kind != DEVICE_CARD)
        return;
    if (*d->barred) {
        str_add(out, d->barred);
        return;
    }
    if (b->of->add_health)
        b->of->add_health(b->of->ctx, b->node, card_of(b), &told);
    if (*d->health ? strcmp(d->health, "ready") != 0 : d->unhealthy)
        str_add(out, *d->health ? d->health : "withdrawn by its node");
    if (told.size)
        str_addf(out, "%s%s", out->size ? ": " : "", str_text(&told));
}

/* --- the tooltip ---------------------------------------------------------- */

static void add_tip(const struct device_box *b, struct str *out)
{
    const struct device *d = device(b);
    const struct identity own = topo_identity(b->node->topo, d);
    const struct {
        const char *name, *text;
    } rows[] = {{"id", d->id},
                {"vendor", d->vendor},
                {"model", d->model},
                {"serial number", own.serial},
                {"architecture", d->arch},
                {"interface", d->interface},
                {"RDMA device", d->rdma},
                {"fabric port", own.fabric_port},
                {"runtime", own.endpoint},
                {"link", d->link},
                {"device sets", d->devices}};
    cleanup_str struct str text = STR_INIT(TEXT_MAX * 4);
    add_name(d, &text);
    str_addf(&text, " is %s", *state_word(b) ? state_word(b) : "a NIC");
    text_escape(str_text(&text), out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!*rows[i].text)
            continue;
        str_addf(out, "\n%s: ", rows[i].name);
        text_escape(rows[i].text, out);
    }
    str_reset(&text);
    add_trouble(b, &text);
    if (text.size) {
        str_add(out, "\n");
        text_escape(str_text(&text), out);
    }
}

/* --- lines ---------------------------------------------------------------- */

/* Where the next line goes. */
struct pen {
    const struct device_box *box;
    int x, y;
    struct str *out; /* NULL: it is only measured */
};

static void write_line(struct pen *p, const char *class, const char *text,
                       const char *right)
{
    /* bold ones are wider */
    size_t room = drawing_letters(strcmp(class, "bad") == 0 ? INNER * 9 / 10
                                                            : INNER);
    size_t taken = right && *right ? strlen(right) + 2 : 0;
    p->y += DRAWING_LINE;
    if (!p->out)
        return;
    drawing_text(p->out, class, p->x, p->y, text,
                 room > taken ? room - taken : 1);
    if (taken)
        drawing_text(p->out, "d e", p->x + INNER, p->y, right, room);
}

/* `of_one`: of how many the unit is. */
static void write_amount(struct pen *p, uint64_t free, uint64_t total,
                         const char *unit, double of_one)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    if (total == 0)
        return;
    str_addf(&text, "%.4g/%.4g %s free", (double)free / of_one,
             (double)total / of_one, unit);
    write_line(p, "d", str_text(&text), NULL);
    const struct box bar = {p->x + INNER / 2 + 10, p->y - BAR, INNER / 2 - 10,
                            BAR};
    if (p->out)
        drawing_bar(p->out, &bar, free, total);
}

static void write_size(struct pen *p, const struct device *d)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    if (d->cores)
        str_addf(&text, "%" PRIu32 " cores", d->cores);
    if (d->memory_mib)
        str_addf(&text, "%s%.4g GiB", text.size ? ", " : "",
                 (double)d->memory_mib / 1024);
    if (text.size)
        write_line(p, "d", str_text(&text), NULL);
}

static void write_amounts(struct pen *p)
{
    const struct device *d = device(p->box);
    const struct node_state *s = &p->box->node->state;
    size_t card;
    if (d->kind != DEVICE_CARD || (card = card_of(p->box)) >= TOPO_CARDS_MAX)
        return;
    if (d->unhealthy) { /* nothing of it can be had, whoever is there */
        write_size(p, d);
        return;
    }
    write_amount(p, d->cores ? s->free_cores[card] : 0, d->cores, "cores", 1);
    write_amount(p, d->memory_mib ? s->free_memory_mib[card] : 0, d->memory_mib,
                 "GiB", 1024);
}

static void write_holder(struct pen *p, const struct holder *h)
{
    const struct allocation *a = h->pod;
    cleanup_str struct str name = STR_INIT(TEXT_MAX), text = STR_INIT(TEXT_MAX);
    if (a)
        str_addf(&name, "%s/%s", a->demand.namespace, a->demand.name);
    else
        str_add(&name, h->claim->key);
    str_addf(&text, "%s %s",
             !a        ? "claim"
             : a->held ? "kept for"
                       : pod_role_name(a->demand.role),
             str_text(&name));
    if (p->out) {
        drawing_group(p->out,
                      !a        ? "claim"
                      : a->held ? "place"
                                : "pod",
                      str_text(&name));
        cleanup_str struct str tip = STR_INIT(TEXT_MAX);
        str_add(&tip, str_text(&text));
        if (a && *a->demand.job)
            str_addf(&tip, ", pair %" PRId32 " of job %s", a->demand.pair,
                     a->demand.job);
        if (a)
            alignment_explain(p->box->of->snapshot, a, &tip);
        text_escape(str_text(&tip), p->out);
        drawing_told(p->out);
    }
    write_line(p, "", str_text(&text),
               a && a->demand.role == ROLE_HOST
                   ? alignment_word(p->box->of->snapshot, a)
                   : NULL);
    if (p->out)
        drawing_group_end(p->out);
}

static void write_holders(struct pen *p)
{
    struct holder list[NODE_DRAWING_PODS];
    size_t n = find_holders(p->box, list);
    for (size_t i = 0; i < n && i < NODE_DRAWING_PODS; i++)
        write_holder(p, &list[i]);
    if (n > NODE_DRAWING_PODS) {
        cleanup_str struct str text = STR_INIT(TEXT_MAX);
        str_addf(&text, "and %zu more", n - NODE_DRAWING_PODS);
        write_line(p, "d", str_text(&text), NULL);
    }
}

static void write_lines(struct pen *p)
{
    const struct device *d = device(p->box);
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    add_name(d, &text);
    write_line(p, "b", str_text(&text), state_word(p->box));
    str_reset(&text);
    add_model(d, &text);
    if (text.size)
        write_line(p, "d", str_text(&text), NULL);
    write_amounts(p);
    str_reset(&text);
    const struct card_bar *drain = card_bars_drain(p->box->node->bars, d->id);
    if (drain && *d->barred)
        str_addf(&text, "drained: %s", drain->reason); /* the tooltip has all */
    else
        add_trouble(p->box, &text);
    if (text.size)
        write_line(p, "bad", str_text(&text), NULL);
    write_holders(p);
}

/* --- the box -------------------------------------------------------------- */

int device_box_height(const struct device_box *b)
{
    struct pen pen = {.box = b};
    write_lines(&pen);
    return pen.y + DRAWING_PAD;
}

void device_box_write(const struct device_box *b, int x, int y, struct str *out)
{
    const struct box box = {x, y, DEVICE_BOX_WIDTH, device_box_height(b)};
    const struct box stripe = {x, y, STRIPE, box.h};
    const char *state = state_word(b), *class = stripe_class(state);
    struct pen pen = {.box = b, .x = x + DRAWING_PAD, .y = y, .out = out};
    drawing_group(out, "device", device(b)->id);
    add_tip(b, out);
    drawing_told(out);
    drawing_rect(out, box_class(state), &box, 4);
    if (class)
        drawing_rect(out, class, &stripe, 2);
    write_lines(&pen);
    drawing_group_end(out);
}
