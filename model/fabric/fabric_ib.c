/* What ibnetdiscover prints: its topology file, or with -p its list of ports.
 *
 *   vendid=0x2c9                                   (and devid, sysimgguid …)
 *   Switch  36 "S-0002c9020040b0e0"        # "leaf1" base port 0 lid 4 lmc 0
 *   [4]     "S-000b8cffff004939"[16]               # "spine1" lid 2 4xQDR
 *   [7]     "H-0002c903000b2f72"[1](2c903000b2f73) # "host1 mlx5_0" lid 9 4xEDR
 *   Ca      1 "H-0002c903000b2f72"         # "host1 mlx5_0"
 *   [1](2c903000b2f73)  "S-0002c9020040b0e0"[7]    # lid 9 lmc 0 "leaf1" lid 4
 *
 *   CA   129  1 0x00237dffff9452d5 4x DDR - SW   142 27 0x0008f10500108c9e \
 *        ( 'dancharia HCA-2' - 'Voltaire 4036 # 4036-8C9E' )
 *   SW   142 35 0x0008f10500108c9e 4x ???      'Voltaire 4036 # 4036-8C9E'
 *
 * A list of ports has the GUIDs of ports; that of the adapter is known where
 * the lines of discovery ("DR path … new Channel Adapter {GUID} …", printed
 * with -s) have it.  The name of the host is the first word of the adapter's
 * description, when there are at most two; an adapter without one is a host by
 * itself, which nodes are found by through its GUID. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/fabric/fabric_private.h"

enum { DESCRIPTION_MAX = 64 }; /* bytes of a NodeDescription */

enum ib_kind { IB_NONE, IB_SWITCH, IB_ADAPTER, IB_OTHER };

struct ib_node {
    enum ib_kind kind;
    uint64_t guid;
    char description[DESCRIPTION_MAX + 1];
};

struct ib_reader {
    const struct fabric_source *source;
    struct fabric_graph *g;
    struct error *err;
    size_t number; /* of the line */
    const char *p; /* the rest of it */
    const char *end;
    struct ib_node stanza; /* whose links are being read */
    uint64_t *adapters;    /* from the lines of discovery */
    size_t n_adapters, adapters_cap;
};

static int ib_fail(struct ib_reader *r, const char *wanted)
{
    size_t size = (size_t)(r->end - r->p);
    return error_set(r->err, EINVAL, "%s:%zu: \"%.*s\": must be %s",
                     r->source->name, r->number, size > 48 ? 48 : (int)size,
                     r->p, wanted);
}

static int ib_wrap(struct ib_reader *r)
{
    return error_wrap(r->err, "%s:%zu", r->source->name, r->number);
}

/* --- words of a line ---------------------------------------------------- */

static void skip_space(struct ib_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

static bool take(struct ib_reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->p) < size || memcmp(r->p, word, size) != 0)
        return false;
    r->p += size;
    return true;
}

static bool take_number(struct ib_reader *r, unsigned long max,
                        unsigned long *ret_number)
{
    const char *p = r->p;
    unsigned long n = 0;
    while (p < r->end && *p >= '0' && *p <= '9' && n <= max)
        n = n * 10 + (unsigned long)(*p++ - '0');
    if (p == r->p || n > max)
        return false;
    r->p = p;
    *ret_number = n;
    return true;
}

/* Up to 16 hex digits. */
static bool take_guid(struct ib_reader *r, uint64_t *ret_guid)
{
    char text[20];
    size_t n = 0;
    (void)take(r, "0x");
    while (r->p + n < r->end && isxdigit((unsigned char)r->p[n]))
        n++;
    if (n == 0 || n > 16)
        return false;
    memcpy(text, r->p, n);
    text[n] = '\0';
    *ret_guid = strtoull(text, NULL, 16);
    r->p += n;
    return true;
}

/* A text up to `quote`, as a description: what is no printable ASCII becomes
 * a question mark, and spaces at its ends go. */
static bool take_description(struct ib_reader *r, char quote,
                             char ret_text[DESCRIPTION_MAX + 1])
{
    const char *stop = memchr(r->p, quote, (size_t)(r->end - r->p));
    size_t size = 0;
    if (!stop || stop - r->p > DESCRIPTION_MAX)
        return false;
    for (const char *p = r->p; p < stop; p++) {
        bool plain = *p >= ' ' && *p < 0x7f;
        if (size > 0 || *p != ' ')
            ret_text[size++] = plain ? *p : '?';
    }
    while (size > 0 && ret_text[size - 1] == ' ')
        size--;
    ret_text[size] = '\0';
    r->p = stop + 1;
    return true;
}

/* "4x" and "QDR", together or apart; 0 when it is no such thing.  Gbit/s of
 * a lane: the InfiniBand specification, rounded. */
static uint32_t take_speed(struct ib_reader *r)
{
    static const struct {
        const char *name;
        unsigned tenths;
    } speeds[] = {{"SDR", 25},    {"DDR", 50},   {"QDR", 100},
                  {"FDR10", 100}, {"FDR", 140},  {"EDR", 250},
                  {"HDR", 500},   {"NDR", 1000}, {"XDR", 2000}};
    unsigned long width;
    const char *from = r->p;
    if (!take_number(r, 16, &width) || !take(r, "x")) {
        r->p = from;
        return 0;
    }
    skip_space(r);
    for (size_t i = 0; i < ARRAY_LEN(speeds); i++)
        if (take(r, speeds[i].name))
            return (uint32_t)((width * speeds[i].tenths + 5) / 10);
    return 0;
}

/* --- into the graph ----------------------------------------------------- */

static int ib_switch(struct ib_reader *r, const struct ib_node *node)
{
    char key[17];
    (void)snprintf(key, sizeof key, "%016" PRIx64, node->guid);
    int at = fabric_graph_switch(
        r->g, key, 16, *node->description ? node->description : key, r->err);
    return at < 0 ? ib_wrap(r) : at;
}

/* Where the first word ends when the description is "HOST" or "HOST DEVICE";
 * 0 when it names no host ("MT4115 ConnectX4 Mellanox Technologies", or what
 * every host calls itself). */
static size_t host_size(const char *description)
{
    static const char local[] = "localhost";
    size_t size = strcspn(description, " ");
    const char *rest = description + size;
    if (size == 0 || (*rest && strchr(rest + 1, ' ')) ||
        (strcspn(description, ". ") == sizeof local - 1 &&
         memcmp(description, local, sizeof local - 1) == 0))
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)description[i]) &&
            !strchr("-._", description[i]))
            return 0;
    return size;
}

static int ib_plug(struct ib_reader *r, const struct ib_node *adapter,
                   const struct ib_node *leaf, struct fabric_plug *plug)
{
    size_t size = host_size(adapter->description);
    int at = ib_switch(r, leaf);
    /* "Mellanox Technologies Aggregation Node": a switch's own */
    if (at < 0 || strstr(adapter->description, "Aggregation Node"))
        return at < 0 ? at : 0;
    plug->at = (uint32_t)at;
    plug->host = FABRIC_HOST_NONE;
    if (size > 0) {
        int host = fabric_graph_host(r->g, adapter->description, size, r->err);
        if (host < 0)
            return ib_wrap(r);
        plug->host = (uint32_t)host;
        plug->device = adapter->description + size;
        plug->device += *plug->device == ' ';
    }
    if (fabric_graph_plug(r->g, plug, r->err) < 0)
        return ib_wrap(r);
    return 0;
}

static int ib_link(struct ib_reader *r, const struct ib_node *a,
                   const struct ib_node *b, struct fabric_plug *plug)
{
    if (a->kind == IB_ADAPTER && b->kind == IB_SWITCH)
        return ib_plug(r, a, b, plug);
    if (a->kind == IB_SWITCH && b->kind == IB_ADAPTER)
        return ib_plug(r, b, a, plug);
    if (a->kind != IB_SWITCH || b->kind != IB_SWITCH)
        return 0; /* routers, and hosts back to back */
    int at = ib_switch(r, a);
    int to = at < 0 ? at : ib_switch(r, b);
    if (to < 0)
        return to;
    if (fabric_graph_link(r->g, (uint32_t)at, (uint32_t)to, r->err) < 0)
        return ib_wrap(r);
    return 0;
}

/* --- the topology file -------------------------------------------------- */

/* "S-0002c9020040b0e0" with its quotes. */
static bool take_id(struct ib_reader *r, struct ib_node *ret_node)
{
    ret_node->kind = IB_OTHER;
    ret_node->description[0] = '\0';
    if (take(r, "\"S-"))
        ret_node->kind = IB_SWITCH;
    else if (take(r, "\"H-"))
        ret_node->kind = IB_ADAPTER;
    else if (!take(r, "\"R-"))
        return false;
    return take_guid(r, &ret_node->guid) && take(r, "\"");
}

/* The description behind '#', if there is one. */
static bool take_comment(struct ib_reader *r,
                         char ret_text[DESCRIPTION_MAX + 1])
{
    const char *quote = memchr(r->p, '"', (size_t)(r->end - r->p));
    if (!quote)
        return false;
    r->p = quote + 1;
    return take_description(r, '"', ret_text);
}

static int read_stanza(struct ib_reader *r)
{
    unsigned long ports;
    skip_space(r);
    if (!take_number(r, 65535, &ports))
        return ib_fail(r, "a number of ports");
    skip_space(r);
    if (!take_id(r, &r->stanza))
        return ib_fail(r, "\"S-GUID\", \"H-GUID\" or \"R-GUID\"");
    skip_space(r);
    if (r->p == r->end || *r->p != '#' ||
        !take_comment(r, r->stanza.description))
        return ib_fail(r, "# and a description between quotes");
    return r->stanza.kind == IB_SWITCH && ib_switch(r, &r->stanza) < 0 ? -EINVAL
                                                                       : 0;
}

/* "[1]", and behind it "(GUID)" or "[ext 3]" perhaps. */
static bool take_port(struct ib_reader *r, unsigned long *ret_port,
                      uint64_t *ret_guid)
{
    if (!take(r, "[") || !take_number(r, 255, ret_port) || !take(r, "]"))
        return false;
    if (take(r, "[ext ")) {
        unsigned long ext;
        if (!take_number(r, 65535, &ext) || !take(r, "]"))
            return false;
    }
    *ret_guid = 0;
    return !take(r, "(") || (take_guid(r, ret_guid) && take(r, ")"));
}

/* What is behind '#': the other's description, and width with speed as the
 * last word. */
static uint32_t take_remark(struct ib_reader *r, struct ib_node *other)
{
    if (!take_comment(r, other->description))
        return 0;
    while (r->p < r->end) {
        skip_space(r);
        uint32_t speed = take_speed(r);
        if (speed)
            return speed;
        while (r->p < r->end && *r->p != ' ' && *r->p != '\t')
            r->p++;
    }
    return 0;
}

static int read_link(struct ib_reader *r)
{
    struct ib_node other;
    unsigned long own, far;
    uint64_t own_guid, far_guid;
    if (r->stanza.kind == IB_NONE)
        return ib_fail(r, "below a line of Switch, Ca or Rt");
    if (!take_port(r, &own, &own_guid))
        return ib_fail(r, "[PORT]");
    skip_space(r);
    if (!take_id(r, &other) || !take_port(r, &far, &far_guid))
        return ib_fail(r, "\"S-GUID\"[PORT], \"H-GUID\"[PORT] or "
                          "\"R-GUID\"[PORT]");
    uint32_t speed = take_remark(r, &other);
    bool own_side = r->stanza.kind == IB_ADAPTER;
    struct fabric_plug plug = {
        .guid = own_side ? r->stanza.guid : other.guid,
        .port_guid = own_side ? own_guid : far_guid,
        .port = (uint8_t)(own_side ? own : far),
        .speed_gbit_s = speed,
    };
    return ib_link(r, &r->stanza, &other, &plug);
}

/* --- the list of ports -------------------------------------------------- */

struct ib_end {
    struct ib_node node;
    unsigned long port;
    uint32_t speed;
};

static bool take_kind(struct ib_reader *r, enum ib_kind *ret_kind)
{
    *ret_kind = IB_OTHER;
    if (take(r, "SW "))
        *ret_kind = IB_SWITCH;
    else if (take(r, "CA "))
        *ret_kind = IB_ADAPTER;
    else if (!take(r, "RT "))
        return false;
    return true;
}

/* "CA   129  1 0x00237dffff9452d5" */
static bool take_end(struct ib_reader *r, struct ib_end *ret_end)
{
    unsigned long lid;
    memset(ret_end, 0, sizeof *ret_end);
    if (!take_kind(r, &ret_end->node.kind))
        return false;
    skip_space(r);
    if (!take_number(r, 0xffffffff, &lid))
        return false;
    skip_space(r);
    if (!take_number(r, 255, &ret_end->port))
        return false;
    skip_space(r);
    return take_guid(r, &ret_end->node.guid);
}

/* "( 'A' - 'B' )" */
static bool take_names(struct ib_reader *r, struct ib_end *a, struct ib_end *b)
{
    skip_space(r);
    if (!take(r, "("))
        return false;
    skip_space(r);
    if (!take(r, "'") || !take_description(r, '\'', a->node.description))
        return false;
    skip_space(r);
    if (!take(r, "-"))
        return false;
    skip_space(r);
    return take(r, "'") && take_description(r, '\'', b->node.description);
}

static int read_port(struct ib_reader *r)
{
    struct ib_end a, b;
    const char *line = r->p;
    bool ok = take_end(r, &a);
    skip_space(r);
    uint32_t speed = take_speed(r);
    const char *dash = memchr(r->p, '-', (size_t)(r->end - r->p));
    const char *quote = memchr(r->p, '\'', (size_t)(r->end - r->p));
    if (ok && (!dash || (quote && quote < dash)))
        return 0; /* nothing is plugged in */
    if (ok) {
        r->p = dash + 1;
        skip_space(r);
        ok = take_end(r, &b) && take_names(r, &a, &b);
    }
    if (!ok) {
        r->p = line;
        return ib_fail(r, "KIND LID PORT GUID WIDTH SPEED - KIND LID PORT "
                          "GUID ( 'NAME' - 'NAME' )");
    }
    const struct ib_end *adapter = a.node.kind == IB_ADAPTER ? &a : &b;
    struct fabric_plug plug = {
        .port_guid = adapter->node.guid,
        .port = (uint8_t)adapter->port,
        .speed_gbit_s = speed,
    };
    return ib_link(r, &a.node, &b.node, &plug);
}

/* --- the lines of discovery --------------------------------------------- */

static void read_discovery(struct ib_reader *r)
{
    static const char mark[] = "new Channel Adapter {";
    uint64_t guid;
    const char *at = memmem(r->p, (size_t)(r->end - r->p), mark,
                            sizeof mark - 1);
    if (!at)
        return;
    r->p = at + sizeof mark - 1;
    if (!take_guid(r, &guid) || r->n_adapters == FABRIC_PLUGS_MAX)
        return;
    r->adapters = xgrow(r->adapters, r->n_adapters, &r->adapters_cap,
                        sizeof *r->adapters);
    r->adapters[r->n_adapters++] = guid;
}

static int guid_order(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return a < b ? -1 : a > b;
}

static bool is_adapter(const struct ib_reader *r, uint64_t guid)
{
    return r->n_adapters &&
           bsearch(&guid, r->adapters, r->n_adapters, sizeof guid, guid_order);
}

/* The GUID of a port is usually that of its adapter plus its number; which
 * it is here, the discovery tells. */
static void find_adapters(struct ib_reader *r)
{
    if (r->n_adapters)
        qsort(r->adapters, r->n_adapters, sizeof *r->adapters, guid_order);
    for (size_t i = 0; i < r->g->n_plugs; i++) {
        struct fabric_plug *p = &r->g->plugs[i];
        if (p->guid == 0 && is_adapter(r, p->port_guid - p->port))
            p->guid = p->port_guid - p->port;
        else if (p->guid == 0 && is_adapter(r, p->port_guid))
            p->guid = p->port_guid;
    }
}

/* --- names -------------------------------------------------------------- */

static int name_order(const void *pa, const void *pb)
{
    return strcmp((*(struct fabric_switch *const *)pa)->name,
                  (*(struct fabric_switch *const *)pb)->name);
}

/* Switches that nobody named have the description of their model: those get
 * their GUIDs added. */
static void tell_apart(struct fabric_graph *g)
{
    size_t n = g->switch_keys.n;
    cleanup_free struct fabric_switch **all = xcalloc(n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = &g->switches[i];
    qsort(all, n, sizeof *all, name_order);
    for (size_t i = 0, end; i < n; i = end) {
        const char *name = all[i]->name;
        for (end = i + 1; end < n && strcmp(all[end]->name, name) == 0;)
            end++;
        for (size_t k = i; k < end && end > i + 1; k++) {
            cleanup_free char *longer = xasprintf("%s %s", name, all[k]->key);
            all[k]->name = arena_strndup(&g->arena, longer, strlen(longer));
        }
    }
}

/* --- lines -------------------------------------------------------------- */

/* "vendid=0x2c9" */
static bool is_setting(const struct ib_reader *r)
{
    const char *p = r->p;
    while (p < r->end && (isalnum((unsigned char)*p) || *p == '_'))
        p++;
    return p > r->p && p < r->end && *p == '=';
}

static int read_line(struct ib_reader *r)
{
    skip_space(r);
    if (r->p == r->end || *r->p == '#' || is_setting(r))
        return 0;
    if (*r->p == '[')
        return read_link(r);
    if (take(r, "Switch\t") || take(r, "Switch ") || take(r, "Ca\t") ||
        take(r, "Ca ") || take(r, "Rt\t") || take(r, "Rt "))
        return read_stanza(r);
    if ((r->end - r->p) > 3 &&
        (memcmp(r->p, "CA ", 3) == 0 || memcmp(r->p, "SW ", 3) == 0 ||
         memcmp(r->p, "RT ", 3) == 0))
        return read_port(r);
    if (take(r, "DR path")) {
        read_discovery(r);
        return 0;
    }
    if (take(r, "Chassis") || take(r, "ibwarn:"))
        return 0;
    return ib_fail(r, "a line of ibnetdiscover");
}

int fabric_read_ib(const struct fabric_source *source, struct fabric_graph *g,
                   struct error *err)
{
    struct ib_reader r = {.source = source, .g = g, .err = err};
    const char *p = source->text, *end = p + source->size;
    int rc = 0;
    while (rc == 0 && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        r.number++;
        r.p = p;
        r.end = stop ? stop : end;
        p = r.end + 1;
        if (r.end > r.p && r.end[-1] == '\r')
            r.end--;
        rc = read_line(&r);
    }
    if (rc == 0) {
        find_adapters(&r);
        tell_apart(g);
        rc = fabric_graph_nameless(g, err);
        if (rc < 0)
            error_wrap(err, "%s", source->name);
    }
    free(r.adapters);
    return rc;
}
