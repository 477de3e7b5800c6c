#include "cli/verb/host.h"

#include <string.h>

#include "cli/base/cli.h"
#include "lib/base/mem.h"
#include "lib/base/table.h"
#include "lib/base/text.h"

enum { ID_TEXT_MAX = 253, LABEL_MAX = 64, GROUP_MAX = TOPO_DEVICES_MAX };

/* --- reading -------------------------------------------------------------- */

static int read_kind(const char *word, enum device_kind *ret_kind)
{
    for (int k = DEVICE_CARD; k <= DEVICE_NUMA; k++) {
        if (strcmp(word, device_kind_name((enum device_kind)k)) == 0) {
            *ret_kind = (enum device_kind)k;
            return 0;
        }
    }
    return -EINVAL;
}

static const char *withdrawn(const cJSON *json)
{
    const cJSON *healthy = cJSON_GetObjectItemCaseSensitive(json, "healthy");
    const char *health = json_text(json, "health");
    if (!cJSON_IsFalse(healthy))
        return "";
    if (cJSON_GetObjectItemCaseSensitive(json, "drain"))
        return "drained";
    return strcmp(health, "drained") == 0 ? "drained"
           : strcmp(health, "lost") == 0  ? "lost"
                                          : "unhealthy";
}

static int read_device(const cJSON *json, struct host_device *ret_device,
                       struct error *err)
{
    struct host_device d = {0};
    const char *kind = json_text(json, "kind");
    if (!*json_text(json, "id") || read_kind(kind, &d.kind))
        return error_set(err, EINVAL,
                         "devices: one has no id, or is of kind \"%s\"", kind);
    d.id = xstrndup(json_text(json, "id"), ID_TEXT_MAX);
    d.pci = xstrndup(json_text(json, "pci"), ID_TEXT_MAX);
    d.model = xstrndup(json_text(json, "model"), ID_TEXT_MAX);
    d.withdrawn = withdrawn(json);
    d.numa = (int)json_number(json, "numa");
    d.cores = json_number(json, "cores");
    d.memory_mib = json_number(json, "memoryMiB");
    d.cpus = json_number(json, "cpus");
    *ret_device = d;
    return 0;
}

static int read_relations(const cJSON *json, struct host *h, struct error *err)
{
    h->relations = xcalloc(h->n * h->n, 1);
    for (size_t a = 0; a < h->n; a++) {
        const cJSON *row = cJSON_GetObjectItemCaseSensitive(json,
                                                            h->devices[a].id);
        const cJSON *x;
        for (size_t b = 0; b < h->n; b++)
            h->relations[a * h->n + b] = a == b ? 0 : RELATION_SYS;
        cJSON_ArrayForEach(x, row)
        {
            int b = host_find(h, x->string);
            enum relation r;
            if (b < 0 || !cJSON_IsString(x))
                continue;
            if (relation_parse(x->valuestring, &r, err))
                return error_wrap(err, "relations.%s.%s", h->devices[a].id,
                                  x->string);
            h->relations[a * h->n + (size_t)b] = (uint8_t)r;
        }
    }
    return 0;
}

int host_read(const cJSON *json, struct host *ret_host, struct error *err)
{
    cleanup_host struct host h = {0};
    const cJSON *devices = json_list(json, "devices"), *x;
    const cJSON *relations = cJSON_GetObjectItemCaseSensitive(json,
                                                              "relations");
    int n = cJSON_GetArraySize(devices), rc;
    if (!devices || n > TOPO_DEVICES_MAX)
        return error_set(err, EINVAL, "devices: missing, or more than %d",
                         TOPO_DEVICES_MAX);
    if (!cJSON_IsObject(relations))
        return error_set(err, EINVAL, "relations: missing");
    h.name = xstrndup(json_text(json, "node"), ID_TEXT_MAX);
    h.devices = xcalloc((size_t)n + 1, sizeof *h.devices);
    cJSON_ArrayForEach(x, devices)
    {
        if ((rc = read_device(x, &h.devices[h.n], err)) < 0)
            return rc;
        h.n++;
    }
    if ((rc = read_relations(relations, &h, err)) < 0)
        return rc;
    *ret_host = h;
    h = (struct host){0};
    return 0;
}

void host_fini(struct host *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->devices[i].id);
        free(h->devices[i].pci);
        free(h->devices[i].model);
    }
    free(h->devices);
    free(h->relations);
    free(h->name);
    *h = (struct host){0};
}

int host_find(const struct host *h, const char *id)
{
    for (size_t i = 0; id && i < h->n; i++)
        if (strcmp(h->devices[i].id, id) == 0)
            return (int)i;
    return -1;
}

/* --- the tree ------------------------------------------------------------- */

struct drawing {
    const struct host *host;
    const char *const *notes;
    bool colours;
    struct str *out;
    bool done[GROUP_MAX]; /* devices that were drawn */
};

static void draw_memory(double mib, struct str *out)
{
    if (mib >= 1024)
        str_addf(out, ", %.0f GiB", mib / 1024);
    else if (mib > 0)
        str_addf(out, ", %.0f MiB", mib);
}

static void draw_device(struct drawing *d, size_t i, const char *stem,
                        bool last)
{
    const struct host_device *x = &d->host->devices[i];
    cleanup_str struct str line = STR_INIT(4096);
    str_addf(&line, "%-4s %s", device_kind_name(x->kind),
             *x->pci ? x->pci : x->id);
    if (*x->model)
        str_addf(&line, "  %s", x->model);
    if (x->cores > 0)
        str_addf(&line, ", %.0f cores", x->cores);
    draw_memory(x->memory_mib, &line);
    str_addf(d->out, "%s%s ", stem, last ? "└─" : "├─");
    text_render(str_text(&line),
                x->kind == DEVICE_CARD ? STYLE_GOOD : STYLE_PLAIN, d->colours,
                d->out);
    if (*x->withdrawn) {
        str_add(d->out, "  ");
        text_render(x->withdrawn, STYLE_BAD, d->colours, d->out);
    }
    if (d->notes && d->notes[i]) {
        str_add(d->out, "  ");
        text_render(d->notes[i], STYLE_FAIR, d->colours, d->out);
    }
    str_add_c(d->out, '\n');
    d->done[i] = true;
}

/* Below one switch with `first`, and on the same NUMA node. */
static bool together(const struct host *h, size_t first, size_t i)
{
    return h->devices[i].kind != DEVICE_NUMA &&
           h->devices[i].numa == h->devices[first].numa &&
           (i == first || host_relation(h, first, i) <= RELATION_PXB);
}

static size_t count_left(const struct drawing *d, int numa)
{
    size_t n = 0;
    for (size_t i = 0; i < d->host->n; i++)
        n += !d->done[i] && d->host->devices[i].kind != DEVICE_NUMA &&
             d->host->devices[i].numa == numa;
    return n;
}

/* The devices that share a switch with `first`: under a line of their own
 * when there are several. */
static void draw_switch(struct drawing *d, size_t first, const char *stem)
{
    const struct host *h = d->host;
    char inner[LABEL_MAX];
    size_t members = 0, drawn = 0;
    for (size_t i = first; i < h->n; i++)
        members += !d->done[i] && together(h, first, i);
    bool last = count_left(d, h->devices[first].numa) == members;
    if (members == 1) {
        draw_device(d, first, stem, last);
        return;
    }
    str_addf(d->out, "%s%s PCIe switch\n", stem, last ? "└─" : "├─");
    (void)snprintf(inner, sizeof inner, "%s%s", stem, last ? "   " : "│  ");
    for (size_t i = first; i < h->n; i++)
        if (!d->done[i] && together(h, first, i))
            draw_device(d, i, inner, ++drawn == members);
}

static void draw_group(struct drawing *d, int numa, const char *stem)
{
    const struct host *h = d->host;
    for (size_t i = 0; i < h->n; i++)
        if (!d->done[i] && h->devices[i].kind != DEVICE_NUMA &&
            h->devices[i].numa == numa)
            draw_switch(d, i, stem);
}

/* Has a group after device `i` anything to show? */
static bool more_after(const struct drawing *d, size_t i)
{
    for (size_t k = i + 1; k < d->host->n; k++)
        if (d->host->devices[k].kind == DEVICE_NUMA)
            return true;
    return count_left(d, -1) > 0;
}

void host_tree(const struct host *h, const char *const *notes, bool colours,
               struct str *out)
{
    struct drawing d = {
        .host = h, .notes = notes, .colours = colours, .out = out};
    text_clean(h->name, out);
    str_add_c(out, '\n');
    for (size_t i = 0; i < h->n; i++) {
        const struct host_device *x = &h->devices[i];
        if (x->kind != DEVICE_NUMA)
            continue;
        bool last = !more_after(&d, i);
        str_addf(out, "%s NUMA node %d", last ? "└─" : "├─", x->numa);
        if (x->cpus > 0)
            str_addf(out, ", %.0f CPUs", x->cpus);
        draw_memory(x->memory_mib, out);
        str_add_c(out, '\n');
        draw_group(&d, x->numa, last ? "   " : "│  ");
    }
    if (count_left(&d, -1)) {
        str_add(out, "└─ NUMA node unknown\n");
        draw_group(&d, -1, "   ");
    }
}

/* --- the matrix ----------------------------------------------------------- */

static void label(const struct host *h, size_t i, char ret_label[LABEL_MAX])
{
    static const char *const words[] = {"CARD", "GPU", "NIC", "NUMA"};
    size_t number = 0;
    for (size_t k = 0; k < i; k++)
        number += h->devices[k].kind == h->devices[i].kind;
    (void)snprintf(ret_label, LABEL_MAX, "%s%zu", words[h->devices[i].kind],
                   number);
}

/* The devices that a matrix shows: all but NUMA nodes. */
struct shown {
    const struct host *host;
    size_t *devices;
    size_t n;
};

static void matrix_row(const struct shown *s, size_t row, bool colours,
                       struct str *out)
{
    size_t self = s->devices[row];
    const struct host_device *x = &s->host->devices[self];
    char name[LABEL_MAX];
    label(s->host, self, name);
    str_addf(out, "%-8s", name);
    for (size_t c = 0; c < s->n; c++) {
        enum relation r = host_relation(s->host, self, s->devices[c]);
        const char *word = c == row ? "X" : relation_name(r);
        text_render(word, relation_style(word), colours, out);
        str_addf(out, "%*s", (int)(8 - strlen(word)), "");
    }
    if (x->numa >= 0)
        str_addf(out, "%-6d", x->numa);
    else
        str_add(out, "-     ");
    text_clean(*x->pci ? x->pci : x->id, out);
    if (*x->withdrawn) {
        str_add(out, "  ");
        text_render(x->withdrawn, STYLE_BAD, colours, out);
    }
    str_add_c(out, '\n');
}

void host_matrix(const struct host *h, bool colours, struct str *out)
{
    cleanup_free size_t *devices = xcalloc(h->n + 1, sizeof *devices);
    struct shown s = {.host = h, .devices = devices};
    for (size_t i = 0; i < h->n; i++)
        if (h->devices[i].kind != DEVICE_NUMA)
            s.devices[s.n++] = i;
    str_add(out, "        ");
    for (size_t i = 0; i < s.n; i++) {
        char name[LABEL_MAX];
        label(h, s.devices[i], name);
        str_addf(out, "%-8s", name);
    }
    str_add(out, "NUMA  PCI\n");
    for (size_t i = 0; i < s.n; i++)
        matrix_row(&s, i, colours, out);
    str_add(out, "\nLegend:\n"
                 "  X       self\n"
                 "  PIX     at most one PCIe bridge between either and their "
                 "common one\n"
                 "  PXB     several PCIe bridges, one root port\n"
                 "  PHB     the same PCIe host bridge (through the CPU)\n"
                 "  NODE    the same NUMA node\n"
                 "  SOCKET  the same package, across NUMA nodes\n"
                 "  SYS     across packages\n");
}
