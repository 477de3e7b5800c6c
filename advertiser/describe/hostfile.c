#include "advertiser/describe/hostfile.h"

#include <stdio.h>
#include <string.h>

#include "advertiser/describe/card_models.h"
#include "lib/base/str.h"
#include "model/topo/topo_builder.h"

enum {
    LEVELS_MAX = TOPO_PATH_MAX + 5, /* host, package, numa, root, device */
    WORDS_MAX = 24,
    INDENT = 2,
};

/* What an indented line stands under, and what it inherits from there. */
enum item {
    ITEM_TOP,
    ITEM_PACKAGE,
    ITEM_NUMA,
    ITEM_ROOT,
    ITEM_BRIDGE,
    ITEM_DEVICE,
    ITEM_DISTANCE
};

struct frame {
    enum item item;
    int package, numa;
    uint32_t root_domain;
    uint8_t root_bus;
    uint8_t n_path;
    struct pci_addr path[TOPO_PATH_MAX];
};

struct parser {
    const char *node;
    struct topo_builder *builder;
    struct frame frames[LEVELS_MAX];
    unsigned n_frames; /* frames[n_frames - 1] is the line before */
    char *words[WORDS_MAX];
    unsigned n_words;
    struct error *err;
};

/* --- words -------------------------------------------------------------- */

/* Split `line` in place at spaces; "…" keeps its spaces. A # outside of
 * quotes begins a comment. */
static int words_split(struct parser *p, char *line)
{
    char *read = line, *write = line;
    p->n_words = 0;
    for (;;) {
        while (*read == ' ')
            read++;
        if (*read == '\0' || *read == '#')
            return 0;
        if (p->n_words == WORDS_MAX)
            return error_set(p->err, EINVAL, "more than %d words", WORDS_MAX);
        p->words[p->n_words++] = write;
        bool quoted = false;
        while (*read && (quoted || *read != ' ')) {
            if (*read == '"')
                quoted = !quoted;
            else
                *write++ = *read;
            read++;
        }
        if (quoted)
            return error_set(p->err, EINVAL, "a quote is not closed");
        if (*read)
            read++;
        *write++ = '\0';
    }
}

static int number_read(const char *name, const char *text, uint64_t max,
                       uint64_t *ret_value, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t value = digits && digits < 19 ? strtoull(text, NULL, 10) : 0;
    if (digits == 0 || digits > 18 || text[digits] || value > max)
        return error_set(err, EINVAL, "%s is \"%.40s\", must be 0 to %llu",
                         name, text, (unsigned long long)max);
    *ret_value = value;
    return 0;
}

/* "512GiB" in MiB. */
static int memory_read(const char *text, uint64_t *ret_mib, struct error *err)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"MiB", 0}, {"GiB", 10}, {"TiB", 20}};
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < ARRAY_LEN(units) && digits && digits < 8; i++)
        if (strcmp(text + digits, units[i].unit) == 0) {
            *ret_mib = strtoull(text, NULL, 10) << units[i].shift;
            return 0;
        }
    return error_set(err, EINVAL,
                     "memory is \"%.40s\", must be like 512MiB, 32GiB or 1TiB",
                     text);
}

static int id_read(const char *text, struct device *d, struct error *err)
{
    static const char hex[] = "0123456789abcdef";
    if (strlen(text) != 9 || text[4] != ':' || strspn(text, hex) != 4 ||
        strspn(text + 5, hex) != 4)
        return error_set(err, EINVAL, "id is \"%.40s\", must be like 15b3:a2dc",
                         text);
    d->vendor_id = (uint16_t)strtoul(text, NULL, 16);
    d->device_id = (uint16_t)strtoul(text + 5, NULL, 16);
    return 0;
}

/* --- devices ------------------------------------------------------------ */

enum attribute {
    A_ID,
    A_VENDOR,
    A_MODEL,
    A_SERIAL,
    A_INTERFACE,
    A_RDMA,
    A_GUID,    /* any device's */
    A_COMPUTE, /* a NIC's */
    A_FUNCTIONS,
    A_ARCH,
    A_CORES,
    A_MEMORY,
    A_FABRIC_PORT,
    A_ENDPOINT,
    ATTRIBUTES,
    A_CARDS_FIRST = A_FUNCTIONS, /* a card's only, from here */
};
static const char *const attribute_names[ATTRIBUTES] = {
    "id",    "vendor", "model",       "serial",    "interface",
    "rdma",  "guid",   "compute",     "functions", "arch",
    "cores", "memory", "fabric-port", "endpoint"};

/* What a line says about a device, before it is one. */
struct draft {
    struct device d;
    struct identity own;
    uint64_t n_functions;
    struct str texts[ATTRIBUTES];
};

static void draft_fini(struct draft *draft)
{
    for (size_t i = 0; i < ATTRIBUTES; i++)
        str_fini(&draft->texts[i]);
}

/* "{node}" stands for the node's name. */
static int text_expand(const struct parser *p, const char *name,
                       const char *text, struct str *out)
{
    static const char mark[] = "{node}";
    for (const char *at; (at = strstr(text, mark));
         text = at + sizeof(mark) - 1) {
        str_add_n(out, text, (size_t)(at - text));
        str_add(out, p->node);
    }
    str_add(out, text);
    if (out->overflow || out->size > TOPO_TEXT_MAX)
        return error_set(p->err, EINVAL, "%s has more than %d bytes", name,
                         TOPO_TEXT_MAX);
    return 0;
}

static int attribute_set(struct parser *p, struct draft *draft,
                         enum attribute a, const char *text)
{
    struct device *d = &draft->d;
    struct identity *own = &draft->own;
    const char **const texts[ATTRIBUTES] = {
        [A_VENDOR] = &d->vendor,      [A_MODEL] = &d->model,
        [A_SERIAL] = &own->serial,    [A_INTERFACE] = &d->interface,
        [A_RDMA] = &d->rdma,          [A_GUID] = &own->guid,
        [A_ARCH] = &d->arch,          [A_FABRIC_PORT] = &own->fabric_port,
        [A_ENDPOINT] = &own->endpoint};
    uint64_t value = 0;
    int rc;
    switch (a) {
    case A_ID:
        return id_read(text, d, p->err);
    case A_COMPUTE:
        d->set_aside = strcmp(text, "false") == 0;
        return d->set_aside || strcmp(text, "true") == 0
                   ? 0
                   : error_set(p->err, EINVAL,
                               "compute is \"%.40s\", must be true or false",
                               text);
    case A_MEMORY:
        return memory_read(text, &d->memory_mib, p->err);
    case A_CORES:
        rc = number_read("cores", text, 65535, &value, p->err);
        d->cores = (uint32_t)value;
        return rc;
    case A_FUNCTIONS:
        rc = number_read("functions", text, 8, &draft->n_functions, p->err);
        if (rc == 0 && draft->n_functions == 0)
            rc = error_set(p->err, EINVAL, "functions is 0, must be 1 to 8");
        return rc;
    default:
        rc = text_expand(p, attribute_names[a], text, &draft->texts[a]);
        *texts[a] = str_text(&draft->texts[a]);
        return rc;
    }
}

static int attributes_read(struct parser *p, struct draft *draft)
{
    unsigned seen = 0;
    for (unsigned i = 2; i < p->n_words; i++) {
        char *value = strchr(p->words[i], '=');
        unsigned a = 0;
        if (value)
            *value++ = '\0';
        while (a < ATTRIBUTES && strcmp(attribute_names[a], p->words[i]) != 0)
            a++;
        if (!value || a == ATTRIBUTES ||
            (a >= A_CARDS_FIRST && draft->d.kind != DEVICE_CARD) ||
            (a == A_COMPUTE && draft->d.kind != DEVICE_NIC))
            return error_set(p->err, EINVAL, "a %s has no \"%.40s\"",
                             device_kind_name(draft->d.kind), p->words[i]);
        if (seen & 1u << a)
            return error_set(p->err, EINVAL, "%s is there twice",
                             attribute_names[a]);
        seen |= 1u << a;
        int rc = attribute_set(p, draft, (enum attribute)a, value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void defaults_set(struct device *d)
{
    const struct card_model *model = card_model_find(d->vendor_id,
                                                     d->device_id);
    if (!d->vendor)
        d->vendor = model ? model->vendor : pci_vendor_name(d->vendor_id);
    if (!d->model && model)
        d->model = model->model;
    if (!d->arch && model && d->kind == DEVICE_CARD)
        d->arch = model->arch;
}

static void draft_add(struct parser *p, struct draft *draft)
{
    struct device *d = &draft->d;
    const struct frame *f = &p->frames[p->n_frames - 1];
    struct pci_addr functions[8];
    char id[TOPO_ID_MAX + 1];
    device_id_format(d->kind, &d->pci, id);
    d->id = id;
    d->numa = f->numa;
    d->package = f->package;
    d->root_domain = f->root_domain;
    d->root_bus = f->root_bus;
    d->n_path = f->n_path;
    d->path = f->path;
    defaults_set(d);
    if (d->kind == DEVICE_CARD) {
        for (unsigned i = 0; i < draft->n_functions; i++) {
            functions[i] = d->pci;
            functions[i].function = (uint8_t)i;
        }
        d->functions = functions;
        d->n_functions = (uint8_t)draft->n_functions;
    }
    topo_builder_add(p->builder, d, &draft->own);
}

static int device_read(struct parser *p, enum device_kind kind)
{
    struct draft draft = {.d = {.kind = kind, .has_pci = true},
                          .n_functions = 1};
    for (size_t i = 0; i < ATTRIBUTES; i++)
        str_init(&draft.texts[i], TOPO_TEXT_MAX + 256);
    int rc = p->n_words < 2 ? error_set(p->err, EINVAL, "PCI address missing")
                            : pci_addr_parse(p->words[1], &draft.d.pci, p->err);
    if (rc == 0)
        rc = attributes_read(p, &draft);
    if (rc == 0 && kind == DEVICE_CARD && draft.d.pci.function != 0)
        rc = error_set(p->err, EINVAL,
                       "a card is named by its function 0, not %d",
                       draft.d.pci.function);
    if (rc == 0)
        draft_add(p, &draft);
    draft_fini(&draft);
    return rc;
}

/* --- lines -------------------------------------------------------------- */

static int index_read(struct parser *p, const char *name, int *ret_index)
{
    uint64_t value = 0;
    int rc = p->n_words < 2
                 ? error_set(p->err, EINVAL, "%s index missing", name)
                 : number_read(name, p->words[1], 32767, &value, p->err);
    if (rc == 0)
        *ret_index = (int)value;
    return rc;
}

/* numa INDEX cpus=N memory=SIZE cpu-list=LIST */
static int numa_read(struct parser *p, struct frame *frame)
{
    char id[TOPO_ID_MAX + 1];
    struct device d = {.kind = DEVICE_NUMA, .root_domain = TOPO_ROOT_NONE};
    uint64_t cpus = 0;
    int rc = index_read(p, "numa", &d.numa);
    for (unsigned i = 2; i < p->n_words && rc == 0; i++) {
        if (strncmp(p->words[i], "cpus=", 5) == 0)
            rc = number_read("cpus", p->words[i] + 5, 65535, &cpus, p->err);
        else if (strncmp(p->words[i], "memory=", 7) == 0)
            rc = memory_read(p->words[i] + 7, &d.numa_memory_mib, p->err);
        else if (strncmp(p->words[i], "cpu-list=", 9) == 0)
            d.cpu_list = p->words[i] + 9;
        else
            rc = error_set(p->err, EINVAL, "a numa has no \"%.40s\"",
                           p->words[i]);
    }
    if (rc == 0 && cpus == 0)
        rc = error_set(p->err, EINVAL, "a numa needs cpus=N, 1 or more");
    if (rc < 0)
        return rc;
    snprintf(id, sizeof(id), "numa-%d", d.numa);
    d.id = id;
    d.cpus = (uint32_t)cpus;
    d.package = frame->package;
    frame->numa = d.numa;
    topo_builder_add(p->builder, &d, NULL);
    return 0;
}

/* root 0000:15 */
static int root_read(struct parser *p, struct frame *frame)
{
    char text[PCI_ADDR_TEXT_MAX + 8];
    struct pci_addr pci;
    const char *bus = p->n_words == 2 ? p->words[1] : "";
    snprintf(text, sizeof(text), "%.17s:00.0", bus);
    if (!strchr(bus, ':') || pci_addr_parse(text, &pci, NULL) < 0 ||
        pci.domain == TOPO_ROOT_NONE)
        return error_set(p->err, EINVAL,
                         "root is \"%.40s\", must be domain and bus like "
                         "0000:15",
                         bus);
    frame->root_domain = pci.domain;
    frame->root_bus = pci.bus;
    return 0;
}

/* bridge 0000:15:01.0 */
static int bridge_read(struct parser *p, struct frame *frame)
{
    if (p->n_words != 2)
        return error_set(p->err, EINVAL, "a bridge has a PCI address only");
    if (frame->n_path == TOPO_PATH_MAX)
        return error_set(p->err, EINVAL, "more than %d bridges in a row",
                         TOPO_PATH_MAX);
    int rc = pci_addr_parse(p->words[1], &frame->path[frame->n_path], p->err);
    if (rc == 0)
        frame->n_path++;
    return rc;
}

/* distance A B VALUE; the way back is as long, and a node is 10 from
 * itself. */
static int distance_read(struct parser *p)
{
    uint64_t v[3] = {0};
    if (p->n_words != 4)
        return error_set(p->err, EINVAL,
                         "distance takes two NUMA nodes and "
                         "a value");
    for (unsigned i = 0; i < 3; i++) {
        int rc = number_read("distance", p->words[i + 1], 32767, &v[i], p->err);
        if (rc < 0)
            return rc;
    }
    const int a = (int)v[0], b = (int)v[1];
    topo_builder_distance(p->builder, a, a, 10);
    topo_builder_distance(p->builder, b, b, 10);
    topo_builder_distance(p->builder, a, b, (unsigned)v[2]);
    topo_builder_distance(p->builder, b, a, (unsigned)v[2]);
    return 0;
}

static const struct {
    const char *word;
    enum item item;
    enum device_kind kind;
    unsigned under; /* 1 << enum item, or'd */
} items[] = {
    {"package", ITEM_PACKAGE, 0, 1 << ITEM_TOP},
    {"numa", ITEM_NUMA, 0, 1 << ITEM_TOP | 1 << ITEM_PACKAGE},
    {"root", ITEM_ROOT, 0, 1 << ITEM_TOP | 1 << ITEM_PACKAGE | 1 << ITEM_NUMA},
    {"bridge", ITEM_BRIDGE, 0, 1 << ITEM_ROOT | 1 << ITEM_BRIDGE},
    {"card", ITEM_DEVICE, DEVICE_CARD, 1 << ITEM_ROOT | 1 << ITEM_BRIDGE},
    {"gpu", ITEM_DEVICE, DEVICE_GPU, 1 << ITEM_ROOT | 1 << ITEM_BRIDGE},
    {"nic", ITEM_DEVICE, DEVICE_NIC, 1 << ITEM_ROOT | 1 << ITEM_BRIDGE},
    {"distance", ITEM_DISTANCE, 0, 1 << ITEM_TOP},
};

static const char *item_word(enum item item)
{
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        if (items[i].item == item)
            return item == ITEM_DEVICE ? "device" : items[i].word;
    return "host";
}

static int item_read(struct parser *p, size_t index, struct frame *frame)
{
    frame->item = items[index].item;
    switch (frame->item) {
    case ITEM_PACKAGE:
        if (p->n_words > 2)
            return error_set(p->err, EINVAL, "a package has an index only");
        return index_read(p, "package", &frame->package);
    case ITEM_NUMA:
        return numa_read(p, frame);
    case ITEM_ROOT:
        return root_read(p, frame);
    case ITEM_BRIDGE:
        return bridge_read(p, frame);
    case ITEM_DEVICE:
        return device_read(p, items[index].kind);
    case ITEM_DISTANCE:
        return distance_read(p);
    case ITEM_TOP:
        break;
    }
    return 0;
}

static int line_read(struct parser *p, char *line)
{
    size_t indent = strspn(line, " ");
    int rc = words_split(p, line + indent);
    if (rc < 0 || p->n_words == 0)
        return rc;
    if (indent % INDENT || indent / INDENT >= p->n_frames)
        return error_set(p->err, EINVAL,
                         "is indented by %zu spaces, which is no level here "
                         "(%d spaces each)",
                         indent, INDENT);
    p->n_frames = (unsigned)(indent / INDENT) + 1;
    size_t i = 0;
    while (i < ARRAY_LEN(items) && strcmp(items[i].word, p->words[0]) != 0)
        i++;
    if (i == ARRAY_LEN(items))
        return error_set(p->err, EINVAL,
                         "is \"%.40s\", must be package, numa, root, bridge, "
                         "card, gpu, nic or distance",
                         p->words[0]);
    struct frame frame = p->frames[p->n_frames - 1];
    if (!(items[i].under & 1u << frame.item))
        return error_set(p->err, EINVAL, "a %s cannot stand under a %s",
                         items[i].word, item_word(frame.item));
    rc = item_read(p, i, &frame);
    if (rc == 0 && p->n_frames == LEVELS_MAX)
        rc = error_set(p->err, EINVAL, "more than %d levels", LEVELS_MAX);
    if (rc == 0)
        p->frames[p->n_frames++] = frame;
    return rc;
}

/* Cut off the next line as a text of its own; false at the end. */
static int line_next(const char **text, const char *end,
                     char line[HOSTFILE_LINE_MAX + 1], struct error *err)
{
    const char *newline = memchr(*text, '\n', (size_t)(end - *text));
    size_t size = (size_t)((newline ? newline : end) - *text);
    if (size > HOSTFILE_LINE_MAX)
        return error_set(err, EINVAL, "has %zu bytes, at most %d allowed", size,
                         HOSTFILE_LINE_MAX);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)(*text)[i];
        if (c < ' ' || c == 0x7f)
            return error_set(err, EINVAL,
                             "has a control character (0x%02x) in column %zu",
                             c, i + 1);
    }
    memcpy(line, *text, size);
    line[size] = '\0';
    *text = newline ? newline + 1 : end;
    return 0;
}

int hostfile_read(const char *text, size_t size, const char *node,
                  struct topo **ret_topo, struct error *err)
{
    if (size > HOSTFILE_SIZE_MAX)
        return error_set(err, EFBIG, "has %zu bytes, at most %d allowed", size,
                         HOSTFILE_SIZE_MAX);
    cleanup_with(topo_builder) struct topo_builder *builder =
        topo_builder_create(node);
    struct parser p = {.node = node,
                       .builder = builder,
                       .frames = {{.item = ITEM_TOP,
                                   .package = -1,
                                   .numa = -1,
                                   .root_domain = TOPO_ROOT_NONE}},
                       .n_frames = 1,
                       .err = err};
    char line[HOSTFILE_LINE_MAX + 1];
    const char *end = text + size;
    for (int number = 1; text < end; number++) {
        if (number > HOSTFILE_LINES_MAX)
            return error_set(err, EFBIG, "more than %d lines",
                             HOSTFILE_LINES_MAX);
        int rc = line_next(&text, end, line, err);
        if (rc == 0)
            rc = line_read(&p, line);
        if (rc < 0)
            return error_wrap(err, "line %d", number);
    }
    return topo_build(builder, ret_topo, err);
}
