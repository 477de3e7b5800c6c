#include "extender/view/node_drawing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "extender/view/node_drawing_private.h"
#include "extender/view/numa_rows.h"
#include "extender/view/views.h"
#include "lib/base/mem.h"

enum {
    COLUMNS = 4, /* at most, beside each other */
    TITLE = 24,  /* of a frame */
    COLUMN = DEVICE_BOX_WIDTH + 2 * DRAWING_PAD,
    TEXT_MAX = 4096,
    BAR_WIDTH = 120,
};

/* Devices below one switch, as a part of the list. */
struct group {
    size_t begin, n;
    int h;
};

struct sheet {
    const struct node_drawing *of;
    const struct node *node;
    const struct topo *topo;
    bool *done;   /* by device: drawn, or not to be */
    size_t *list; /* devices, group by group */
    struct group *groups;
    size_t n_groups;
    int columns;
    struct str body;
};

static struct device_box box_of(const struct sheet *s, size_t device)
{
    return (struct device_box){s->of, s->node, device};
}

/* --- which devices -------------------------------------------------------- */

/* Of NICs that pods cannot have only the first few of a NUMA node are shown:
 * hosts have hundreds of virtual ones.  How many are not. */
static size_t hide_nics(struct sheet *s, int numa)
{
    size_t shown = 0, hidden = 0;
    for (size_t i = 0; i < topo_n_devices(s->topo); i++) {
        const struct device *d = topo_device(s->topo, i);
        const struct device_box box = box_of(s, i);
        if (d->kind != DEVICE_NIC || d->numa != numa ||
            topo_is_compute_nic(d) || device_box_is_held(&box))
            continue;
        if (shown++ < NODE_DRAWING_NICS)
            continue;
        s->done[i] = true;
        hidden++;
    }
    return hidden;
}

static bool is_together(const struct sheet *s, size_t first, size_t i)
{
    const struct device *d = topo_device(s->topo, i);
    return !s->done[i] && d->kind != DEVICE_NUMA &&
           d->numa == topo_device(s->topo, first)->numa &&
           (i == first || topo_relation(s->topo, first, i) <= RELATION_PXB);
}

static void add_group(struct sheet *s, size_t first)
{
    size_t end = s->n_groups ? s->groups[s->n_groups - 1].begin +
                                   s->groups[s->n_groups - 1].n
                             : 0;
    struct group g = {.begin = end};
    int h = 0;
    for (size_t i = first; i < topo_n_devices(s->topo); i++) {
        if (!is_together(s, first, i))
            continue;
        const struct device_box box = box_of(s, i);
        h += device_box_height(&box) + DRAWING_GAP;
        s->list[g.begin + g.n++] = i;
    }
    for (size_t i = 0; i < g.n; i++)
        s->done[s->list[g.begin + i]] = true;
    g.h = TITLE + h;
    s->groups[s->n_groups++] = g;
}

static void find_groups(struct sheet *s, int numa)
{
    s->n_groups = 0;
    for (size_t i = 0; i < topo_n_devices(s->topo); i++)
        if (!s->done[i] && topo_device(s->topo, i)->kind != DEVICE_NUMA &&
            topo_device(s->topo, i)->numa == numa)
            add_group(s, i);
}

/* --- groups --------------------------------------------------------------- */

/* "PCIe switch", or what a device that is alone hangs on. */
static void write_group_title(struct sheet *s, const struct group *g, int x,
                              int y)
{
    const struct device *d = topo_device(s->topo, s->list[g->begin]);
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    str_add(&text, g->n > 1 ? "PCIe switch" : "PCIe");
    if (d->has_pci && d->root_domain != TOPO_ROOT_NONE)
        str_addf(&text, " below pci%04x:%02x", (unsigned)d->root_domain,
                 d->root_bus);
    drawing_text(&s->body, "d", x, y, str_text(&text), 64);
}

static void write_group(struct sheet *s, const struct group *g, int x, int y)
{
    const struct box frame = {x, y, COLUMN, g->h};
    drawing_rect(&s->body, "s", &frame, 6);
    write_group_title(s, g, x + DRAWING_PAD, y + 16);
    y += TITLE;
    for (size_t i = 0; i < g->n; i++) {
        const struct device_box box = box_of(s, s->list[g->begin + i]);
        device_box_write(&box, x + DRAWING_PAD, y, &s->body);
        y += device_box_height(&box) + DRAWING_GAP;
    }
}

static int row_height(const struct sheet *s, size_t first)
{
    int h = 0;
    for (size_t i = first; i < s->n_groups && i < first + (size_t)s->columns;
         i++)
        h = s->groups[i].h > h ? s->groups[i].h : h;
    return h;
}

static int groups_height(const struct sheet *s)
{
    int h = 0;
    for (size_t i = 0; i < s->n_groups; i += (size_t)s->columns)
        h += row_height(s, i) + DRAWING_GAP;
    return h;
}

static void write_groups(struct sheet *s, int x, int y)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        size_t column = i % (size_t)s->columns;
        if (i && column == 0)
            y += row_height(s, i - (size_t)s->columns) + DRAWING_GAP;
        write_group(s, &s->groups[i], x + (int)column * (COLUMN + DRAWING_GAP),
                    y);
    }
}

/* --- NUMA nodes ----------------------------------------------------------- */

static int inner_width(const struct sheet *s)
{
    return s->columns * (COLUMN + DRAWING_GAP) - DRAWING_GAP;
}

/* What of its CPUs no host pod has asked for, in thousandths; false when
 * nobody knows. */
static bool free_cpus(const struct node *node, int numa, uint32_t *ret_milli)
{
    for (size_t i = 0; node->shape && i < node->shape->n_numas; i++) {
        if (node->shape->numa_id[i] != numa)
            continue;
        *ret_milli = node->state.free_cpu_milli[i];
        return *ret_milli != UINT32_MAX;
    }
    return false;
}

static void write_cpus(struct sheet *s, const struct device *d, int right,
                       int y)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    const struct box bar = {right - BAR_WIDTH, y - 9, BAR_WIDTH, 8};
    uint32_t milli;
    if (!d->cpus || !free_cpus(s->node, d->numa, &milli))
        return;
    str_addf(&text, "%.4g/%" PRIu32 " CPUs free", milli / 1000.0, d->cpus);
    drawing_text(&s->body, "d e", bar.x - 10, y, str_text(&text), 64);
    drawing_bar(&s->body, &bar, milli, (uint64_t)d->cpus * 1000);
}

static void write_numa_title(struct sheet *s, const struct numa_row *row, int x,
                             int y)
{
    const struct device *d = row->device;
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    if (row->numa < 0)
        str_add(&text, "NUMA node unknown");
    else
        str_addf(&text, "NUMA node %d", row->numa);
    drawing_text(&s->body, "b", x, y, str_text(&text), 64);
    if (!d)
        return;
    str_reset(&text);
    if (d->package >= 0)
        str_addf(&text, "package %d", d->package);
    if (d->numa_memory_mib)
        str_addf(&text, "%s%.4g GiB of memory", text.size ? ", " : "",
                 (double)d->numa_memory_mib / 1024);
    drawing_text(&s->body, "d", x + 110, y, str_text(&text), 64);
    write_cpus(s, d, x + inner_width(s), y);
}

static int write_numa(struct sheet *s, const struct numa_row *row, int x, int y)
{
    size_t hidden = hide_nics(s, row->numa);
    find_groups(s, row->numa);
    struct box frame = {x, y, inner_width(s) + 2 * DRAWING_PAD,
                        TITLE + DRAWING_GAP + groups_height(s)};
    frame.h += hidden ? DRAWING_LINE : 0;
    drawing_rect(&s->body, "f", &frame, 8);
    write_numa_title(s, row, x + DRAWING_PAD, y + 20);
    write_groups(s, x + DRAWING_PAD, y + TITLE + DRAWING_GAP);
    if (hidden) {
        cleanup_str struct str text = STR_INIT(TEXT_MAX);
        str_addf(&text, "and %zu more NIC%s that pods cannot have", hidden,
                 hidden == 1 ? "" : "s");
        drawing_text(&s->body, "d", x + DRAWING_PAD, y + frame.h - DRAWING_PAD,
                     str_text(&text), 64);
    }
    return frame.h;
}

/* --- the whole ------------------------------------------------------------ */

/* As many as the fullest NUMA node has groups: this runs through them once
 * before they are drawn. */
static int find_columns(struct sheet *s, const struct numa_row *rows, size_t n)
{
    size_t most = 2;
    for (size_t i = 0; i < n; i++) {
        (void)hide_nics(s, rows[i].numa);
        find_groups(s, rows[i].numa);
        most = s->n_groups > most ? s->n_groups : most;
    }
    memset(s->done, 0, topo_n_devices(s->topo) * sizeof *s->done);
    return most > COLUMNS ? COLUMNS : (int)most;
}

/* The rows of one package below each other; where they end. */
static int write_rows(struct sheet *s, const struct numa_row *rows, size_t n,
                      int y)
{
    for (size_t i = 0; i < n; i++)
        y += write_numa(s, &rows[i], DRAWING_MARGIN, y) + DRAWING_GAP;
    return y;
}

static int write_package(struct sheet *s, const struct numa_row *rows, size_t n,
                         int y)
{
    struct str before = s->body;
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    s->body = STR_INIT(STR_MAX_DEFAULT);
    int end = write_rows(s, rows, n, y + TITLE);
    const struct box frame = {DRAWING_MARGIN - DRAWING_PAD, y,
                              inner_width(s) + 4 * DRAWING_PAD, end - y};
    str_addf(&text, "package %d", rows[0].package);
    drawing_rect(&before, "p", &frame, 10);
    drawing_text(&before, "b", DRAWING_MARGIN, y + 17, str_text(&text), 64);
    str_move(&before, &s->body);
    str_fini(&s->body);
    s->body = before;
    return end + DRAWING_GAP;
}

/* Packages get a frame of their own where one has several NUMA nodes. */
static int write_packages(struct sheet *s, const struct numa_row *rows,
                          size_t n, int y)
{
    bool framed = false;
    for (size_t i = 0; i < n; i = numa_rows_end(rows, n, i))
        framed |= rows[i].package >= 0 && numa_rows_end(rows, n, i) > i + 1;
    for (size_t i = 0, end; i < n; i = end) {
        end = numa_rows_end(rows, n, i);
        y = framed && rows[i].package >= 0
                ? write_package(s, rows + i, end - i, y)
                : write_rows(s, rows + i, end - i, y);
    }
    return y;
}

static void add_room(const struct sheet *s, struct str *text)
{
    const struct host_room room = snapshot_room_left(s->of->snapshot,
                                                     s->of->index);
    if (room.cpu_milli != INT64_MAX)
        str_addf(text, "; host has %.4g CPUs", (double)room.cpu_milli / 1000);
    if (room.cpu_milli != INT64_MAX && room.memory_mib != INT64_MAX)
        str_addf(text, " and %.4g GiB left", (double)room.memory_mib / 1024);
}

static void write_head(struct sheet *s)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    size_t first, cards = view_count(s->node, DEVICE_CARD, &first), idle = 0;
    size_t gpus = view_count(s->node, DEVICE_GPU, &first), free = 0;
    for (size_t i = 0; i < cards; i++)
        idle += card_state(s->node, i) == CARD_IDLE;
    for (size_t i = 0; i < gpus; i++)
        free += !(s->node->state.gpus_used >> i & 1);
    drawing_text(&s->body, "h", DRAWING_MARGIN, 30, s->node->name, 64);
    str_addf(&text, "%s; %zu/%zu cards idle, %zu/%zu GPUs free, %zu pod%s",
             node_status_name(s->node->status), idle, cards, free, gpus,
             s->node->n_allocations, s->node->n_allocations == 1 ? "" : "s");
    add_room(s, &text);
    drawing_text(&s->body, s->node->status == NODE_READY ? "d" : "bad",
                 DRAWING_MARGIN, 50, str_text(&text), 120);
}

static int write_legend(struct sheet *s, int y)
{
    static const struct drawing_kind kinds[] = {
        {"has", "given"},        {"free", "free"},
        {"whole", "held whole"}, {"ill", "drained or unhealthy"},
        {"out", "unavailable"},
    };
    drawing_legend(&s->body, DRAWING_MARGIN, y + 14, kinds, ARRAY_LEN(kinds));
    return y + DRAWING_LINE;
}

void node_drawing_write(const struct node_drawing *of, struct str *out)
{
    const struct node *node = snapshot_node(of->snapshot, of->index);
    size_t n = node->topo ? topo_n_devices(node->topo) : 0;
    cleanup_free bool *done = xcalloc(n + 1, sizeof *done);
    cleanup_free size_t *list = xcalloc(n + 1, sizeof *list);
    cleanup_free struct group *groups = xcalloc(n + 1, sizeof *groups);
    struct sheet s = {.of = of,
                      .node = node,
                      .topo = node->topo,
                      .done = done,
                      .list = list,
                      .groups = groups,
                      .columns = 2,
                      .body = STR_INIT(STR_MAX_DEFAULT)};
    int y = DRAWING_HEAD;
    write_head(&s);
    if (node->topo) {
        cleanup_free struct numa_row *rows = xcalloc(n + 1, sizeof *rows);
        size_t n_rows = numa_rows_find(node->topo, rows);
        s.columns = find_columns(&s, rows, n_rows);
        y = write_legend(&s, write_packages(&s, rows, n_rows, y));
    }
    drawing_finish(node->name, &s.body,
                   inner_width(&s) + 2 * (DRAWING_PAD + DRAWING_MARGIN),
                   y + DRAWING_MARGIN, of->form, out);
    str_fini(&s.body);
}
