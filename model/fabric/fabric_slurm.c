/* Slurm's topology.conf, as topology.conf(5) describes it.
 *
 *   SwitchName=leaf1 Nodes=node[01-12,15]
 *   SwitchName=spine Switches=leaf[1-4] LinkSpeed=100
 * or
 *   BlockName=b1 Nodes=node[001-018]
 *   BlockSizes=18,36
 *
 * The level of a switch is its height above the lowest ones.  Blocks are
 * leaves; as many consecutive ones as go into each further size make one
 * domain of the next tier. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"
#include "model/fabric/fabric_private.h"

enum {
    BRACKETS_MAX = 4, /* in one name */
    DIGITS_MAX = 9,
    BLOCK_SIZE_MAX = 1 << 20,
};

enum { K_SWITCH, K_BLOCK, K_SIZES, K_NODES, K_SWITCHES, K_SPEED, K_COUNT };
static const char *const key_names[K_COUNT] = {
    "SwitchName", "BlockName", "BlockSizes", "Nodes", "Switches", "LinkSpeed"};

struct value {
    const char *text; /* NULL: not given */
    size_t size;
};

struct declared {
    size_t line; /* 0: only mentioned */
    size_t mentioned;
    bool has_nodes;
};

struct slurm_reader {
    const struct fabric_source *source;
    struct fabric_graph *g;
    struct error *err;
    size_t number; /* of the line */
    struct value values[K_COUNT];
    struct declared *declared; /* per switch */
    size_t declared_cap, n_declared;
    uint32_t *blocks; /* in their order */
    size_t n_blocks, blocks_cap;
    uint32_t ratios[FABRIC_TIERS_MAX]; /* blocks in a domain of each tier */
    unsigned n_ratios;
    size_t n_names; /* that were expanded */
};

static int slurm_wrap(struct slurm_reader *r)
{
    return error_wrap(r->err, "%s:%zu", r->source->name, r->number);
}

static int slurm_fail(struct slurm_reader *r, int key, const char *wanted)
{
    const struct value *v = &r->values[key];
    return error_set(r->err, EINVAL, "%s:%zu: %s: is \"%.*s\", must be %s",
                     r->source->name, r->number, key_names[key],
                     v->size > 64 ? 64 : (int)v->size, v->text, wanted);
}

/* --- lists of names ----------------------------------------------------- */

typedef int name_f(struct slurm_reader *r, const char *name, size_t size,
                   void *ctx);

struct expansion {
    struct slurm_reader *r;
    int key;
    name_f *each;
    void *ctx;
    char name[FABRIC_NAME_MAX + 1];
};

static const char list_form[] = "names such as node[01-12,15],other7";

static bool read_digits(const char **p, const char *end, uint32_t *ret_value,
                        int *ret_width)
{
    uint32_t value = 0;
    int width = 0;
    while (*p < end && isdigit((unsigned char)**p) && width < DIGITS_MAX + 1) {
        value = value * 10 + (uint32_t)(**p - '0');
        (*p)++;
        width++;
    }
    *ret_value = value;
    *ret_width = width;
    return width > 0 && width <= DIGITS_MAX;
}

static int expand(struct expansion *x, size_t size, const char *p,
                  const char *end, unsigned depth);

/* "01-12" or "15": the name so far, with each number, and what follows. */
static int expand_range(struct expansion *x, size_t size, const char **p,
                        const char *end, unsigned depth)
{
    const char *close = memchr(*p, ']', (size_t)(end - *p));
    uint32_t from, to;
    int width, other;
    if (!read_digits(p, close, &from, &width))
        return slurm_fail(x->r, x->key, list_form);
    to = from;
    if (*p < close && **p == '-') {
        (*p)++;
        if (!read_digits(p, close, &to, &other) || to < from)
            return slurm_fail(x->r, x->key, "ranges that go up");
    }
    if (*p < close && *(*p)++ != ',')
        return slurm_fail(x->r, x->key, list_form);
    for (uint64_t i = from; i <= to; i++) {
        if (size + DIGITS_MAX + 1 > FABRIC_NAME_MAX)
            return slurm_fail(x->r, x->key, "names of at most 253 bytes");
        int n = snprintf(x->name + size, sizeof x->name - size, "%0*u", width,
                         (unsigned)i);
        int rc = expand(x, size + (size_t)n, close + 1, end, depth + 1);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The name so far has `size` bytes; p…end is what follows it in the list's
 * item. */
static int expand(struct expansion *x, size_t size, const char *p,
                  const char *end, unsigned depth)
{
    while (p < end && *p != '[') {
        if (size == FABRIC_NAME_MAX)
            return slurm_fail(x->r, x->key, "names of at most 253 bytes");
        if (*p == ']')
            return slurm_fail(x->r, x->key, list_form);
        x->name[size++] = *p++;
    }
    if (p == end) {
        x->name[size] = '\0';
        if (++x->r->n_names > FABRIC_PLUGS_MAX)
            return slurm_fail(x->r, x->key, "fewer names");
        return x->each(x->r, x->name, size, x->ctx);
    }
    const char *close = memchr(p, ']', (size_t)(end - p));
    if (!close || ++p == close || depth == BRACKETS_MAX)
        return slurm_fail(x->r, x->key, list_form);
    while (p < close) {
        int rc = expand_range(x, size, &p, end, depth);
        if (rc < 0)
            return rc;
        if (p == close && close[-1] == ',')
            return slurm_fail(x->r, x->key, list_form);
    }
    return 0;
}

static int each_name(struct slurm_reader *r, int key, name_f *each, void *ctx)
{
    struct expansion x = {.r = r, .key = key, .each = each, .ctx = ctx};
    const char *p = r->values[key].text, *end = p + r->values[key].size;
    for (;;) {
        const char *stop = p;
        bool inside = false;
        for (; stop < end && (inside || *stop != ','); stop++)
            inside = *stop == '[' || (inside && *stop != ']');
        if (stop == p)
            return slurm_fail(r, key, list_form);
        int rc = expand(&x, 0, p, stop, 0);
        if (rc < 0 || stop == end)
            return rc;
        p = stop + 1;
    }
}

/* --- switches ----------------------------------------------------------- */

static int slurm_switch(struct slurm_reader *r, const char *name, size_t size)
{
    if (size && *name == '/')
        return error_set(r->err, EINVAL,
                         "%s:%zu: switch \"%.64s\": must not begin with '/'",
                         r->source->name, r->number, name);
    int at = fabric_graph_switch(r->g, name, size, NULL, r->err);
    if (at < 0)
        return slurm_wrap(r);
    while (r->n_declared <= (size_t)at) {
        r->declared = xgrow(r->declared, r->n_declared, &r->declared_cap,
                            sizeof *r->declared);
        r->declared[r->n_declared++] =
            (struct declared){.mentioned = r->number};
    }
    return at;
}

static int add_host(struct slurm_reader *r, const char *name, size_t size,
                    void *ctx)
{
    struct fabric_plug plug = {.at = *(uint32_t *)ctx};
    int host = fabric_graph_host(r->g, name, size, r->err);
    if (host < 0)
        return slurm_wrap(r);
    plug.host = (uint32_t)host;
    return fabric_graph_plug(r->g, &plug, r->err) < 0 ? slurm_wrap(r) : 0;
}

static int add_child(struct slurm_reader *r, const char *name, size_t size,
                     void *ctx)
{
    int child = slurm_switch(r, name, size);
    if (child < 0)
        return child;
    /* parent first: levels depend on it */
    int rc = fabric_graph_link(r->g, *(uint32_t *)ctx, (uint32_t)child, r->err);
    return rc < 0 ? slurm_wrap(r) : 0;
}

/* The switch or block that this line declares. */
static int declare(struct slurm_reader *r, int key)
{
    int at = slurm_switch(r, r->values[key].text, r->values[key].size);
    if (at < 0)
        return at;
    if (r->declared[at].line)
        return error_set(r->err, EINVAL,
                         "%s:%zu: %s=%.64s: is there already, in line %zu",
                         r->source->name, r->number, key_names[key],
                         r->g->switches[at].name, r->declared[at].line);
    r->declared[at].line = r->number;
    return at;
}

static int read_switch(struct slurm_reader *r)
{
    bool nodes = r->values[K_NODES].text, below = r->values[K_SWITCHES].text;
    if (r->n_blocks)
        return slurm_fail(r, K_SWITCH, "absent where there are blocks");
    if (nodes == below)
        return slurm_fail(r, K_SWITCH, "followed by either Nodes or Switches");
    int at = declare(r, K_SWITCH);
    if (at < 0)
        return at;
    uint32_t number = (uint32_t)at;
    r->declared[at].has_nodes = nodes;
    return nodes ? each_name(r, K_NODES, add_host, &number)
                 : each_name(r, K_SWITCHES, add_child, &number);
}

static int read_block(struct slurm_reader *r)
{
    if (r->n_declared != r->n_blocks)
        return slurm_fail(r, K_BLOCK, "absent where there are switches");
    if (!r->values[K_NODES].text || r->values[K_SWITCHES].text)
        return slurm_fail(r, K_BLOCK, "followed by Nodes");
    int at = declare(r, K_BLOCK);
    if (at < 0)
        return at;
    uint32_t number = (uint32_t)at;
    r->blocks = xgrow(r->blocks, r->n_blocks, &r->blocks_cap,
                      sizeof *r->blocks);
    r->blocks[r->n_blocks++] = number;
    return each_name(r, K_NODES, add_host, &number);
}

/* "18,36,72": each a multiple of the one before. */
static int read_sizes(struct slurm_reader *r)
{
    const char *p = r->values[K_SIZES].text;
    const char *end = p + r->values[K_SIZES].size;
    uint32_t first = 0, last = 0;
    if (r->n_ratios)
        return slurm_fail(r, K_SIZES, "given once");
    for (;;) {
        uint32_t size;
        int width;
        if (!read_digits(&p, end, &size, &width) || size == 0 ||
            size > BLOCK_SIZE_MAX || (last && (size <= last || size % last)))
            return slurm_fail(r, K_SIZES,
                              "numbers of nodes, each a multiple of the one "
                              "before");
        if (r->n_ratios == FABRIC_TIERS_MAX)
            return slurm_fail(r, K_SIZES, "at most 8 sizes");
        first = first ? first : size;
        last = size;
        r->ratios[r->n_ratios++] = size / first;
        if (p == end)
            return 0;
        if (*p++ != ',')
            return slurm_fail(r, K_SIZES, "numbers with commas between");
    }
}

/* --- what follows from all lines ---------------------------------------- */

static int check_declared(struct slurm_reader *r)
{
    for (size_t i = 0; i < r->n_declared; i++)
        if (!r->declared[i].line)
            return error_set(r->err, EINVAL,
                             "%s:%zu: Switches: \"%.64s\" has no line of its "
                             "own",
                             r->source->name, r->declared[i].mentioned,
                             r->g->switches[i].name);
    return 0;
}

/* Heights, from the leaves up; links are (parent, child). */
static int find_heights(struct slurm_reader *r)
{
    struct fabric_graph *g = r->g;
    size_t n = r->n_declared, done = 0, found = 0;
    cleanup_free uint32_t *start = xcalloc(n + 2, sizeof *start);
    cleanup_free uint32_t *waits = xcalloc(n + 1, sizeof *waits);
    cleanup_free uint32_t *queue = xcalloc(n + 1, sizeof *queue);
    cleanup_free uint32_t *parents = xcalloc(g->n_links + 1, sizeof *parents);
    for (size_t i = 0; i < g->n_links; i++) {
        waits[g->links[i].a]++;
        start[g->links[i].b + 2]++;
    }
    for (size_t i = 1; i <= n; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < g->n_links; i++)
        parents[start[g->links[i].b + 1]++] = g->links[i].a;
    for (size_t i = 0; i < n; i++) {
        g->switches[i].level = 0;
        if (r->declared[i].has_nodes)
            queue[found++] = (uint32_t)i;
    }
    for (; done < found; done++) {
        uint32_t at = queue[done];
        int level = g->switches[at].level + 1;
        for (uint32_t k = start[at]; k < start[at + 1]; k++) {
            struct fabric_switch *parent = &g->switches[parents[k]];
            if (level > parent->level)
                parent->level = level;
            if (--waits[parents[k]] == 0)
                queue[found++] = parents[k];
        }
    }
    for (size_t i = 0; i < n; i++)
        if (waits[i] || g->switches[i].level >= FABRIC_TIERS_MAX)
            return error_set(r->err, EINVAL, "%s:%zu: SwitchName=%.64s: %s",
                             r->source->name, r->declared[i].line,
                             g->switches[i].name,
                             waits[i] ? "is, in the end, below itself"
                                      : "has more than 8 tiers");
    return 0;
}

/* The blocks of each further size, in one switch more. */
static int join_blocks(struct slurm_reader *r)
{
    for (unsigned tier = 1; tier < r->n_ratios; tier++) {
        uint32_t ratio = r->ratios[tier], below = r->ratios[tier - 1];
        for (size_t i = 0; i < r->n_blocks; i += below) {
            char key[48], under[48];
            (void)snprintf(key, sizeof key, "/%u/%zu", tier, i / ratio);
            (void)snprintf(under, sizeof under, "/%u/%zu", tier - 1, i / below);
            int at = fabric_graph_switch(
                r->g, key, strlen(key),
                r->g->switches[r->blocks[i / ratio * ratio]].name, r->err);
            int32_t child = tier == 1
                                ? (int32_t)r->blocks[i]
                                : fabric_graph_find(r->g, under, strlen(under));
            if (at < 0 || fabric_graph_link(r->g, (uint32_t)at, (uint32_t)child,
                                            r->err) < 0)
                return slurm_wrap(r);
            r->g->switches[at].level = (int)tier;
        }
    }
    for (size_t i = 0; i < r->n_blocks; i++)
        r->g->switches[r->blocks[i]].level = 0;
    return 0;
}

/* --- lines -------------------------------------------------------------- */

static int read_pair(struct slurm_reader *r, const char *p, size_t size)
{
    const char *equals = memchr(p, '=', size);
    size_t n = equals ? (size_t)(equals - p) : size;
    for (int i = 0; equals && i < K_COUNT; i++) {
        if (strlen(key_names[i]) != n || strncasecmp(p, key_names[i], n) != 0)
            continue;
        if (r->values[i].text)
            return slurm_fail(r, i, "given once");
        r->values[i] = (struct value){equals + 1, size - n - 1};
        return r->values[i].size ? 0 : slurm_fail(r, i, "not empty");
    }
    return error_set(r->err, EINVAL,
                     "%s:%zu: \"%.*s\": must be SwitchName=, Nodes=, "
                     "Switches=, LinkSpeed=, BlockName= or BlockSizes=",
                     r->source->name, r->number, size > 48 ? 48 : (int)size, p);
}

static int read_statement(struct slurm_reader *r, const char *p,
                          const char *end)
{
    int rc = 0, given = 0;
    memset(r->values, 0, sizeof r->values);
    while (rc == 0) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        const char *from = p;
        while (p < end && !isspace((unsigned char)*p))
            p++;
        if (p == from)
            break;
        rc = read_pair(r, from, (size_t)(p - from));
        given++;
    }
    if (rc < 0 || given == 0)
        return rc;
    int firsts = 0;
    for (int i = 0; i <= K_SIZES; i++)
        firsts += r->values[i].text != NULL;
    if (firsts != 1)
        return error_set(r->err, EINVAL,
                         "%s:%zu: has %d of SwitchName=, BlockName= and "
                         "BlockSizes=, must have one",
                         r->source->name, r->number, firsts);
    return r->values[K_SWITCH].text  ? read_switch(r)
           : r->values[K_BLOCK].text ? read_block(r)
                                     : read_sizes(r);
}

/* Lines that end with a backslash go on in the next; '#' begins a comment. */
static int read_lines(struct slurm_reader *r)
{
    const char *p = r->source->text, *end = p + r->source->size;
    cleanup_str struct str joined = STR_INIT(FABRIC_TEXT_MAX + 1);
    size_t line = 0;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *last = stop ? stop : end;
        const char *next = stop ? stop + 1 : end;
        line++;
        if (joined.size == 0)
            r->number = line;
        const char *comment = memchr(p, '#', (size_t)(last - p));
        if (comment)
            last = comment;
        while (last > p && isspace((unsigned char)last[-1]))
            last--;
        bool more = !comment && last > p && last[-1] == '\\';
        str_add_n(&joined, p, (size_t)(last - p) - more);
        str_add_c(&joined, ' ');
        p = next;
        if (more && p < end)
            continue;
        int rc = read_statement(r, str_text(&joined),
                                str_text(&joined) + joined.size);
        if (rc < 0)
            return rc;
        str_reset(&joined);
    }
    return 0;
}

int fabric_read_slurm(const struct fabric_source *source,
                      struct fabric_graph *g, struct error *err)
{
    struct slurm_reader r = {.source = source, .g = g, .err = err};
    int rc = read_lines(&r);
    if (rc == 0)
        rc = check_declared(&r);
    if (rc == 0)
        rc = r.n_blocks ? join_blocks(&r) : find_heights(&r);
    free(r.declared);
    free(r.blocks);
    return rc;
}
