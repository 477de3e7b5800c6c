#include "advertiser/probe/hwxml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "model/topo/topo.h"

/* A part of the text. */
struct span {
    const char *data;
    size_t size;
};

struct attribute {
    struct span name, value;
};

struct tag {
    struct span name;
    struct attribute attributes[HWXML_ATTRIBUTES_MAX];
    size_t n_attributes;
};

struct look {
    const char *text, *p;
    size_t depth, n_elements, n_objects;
    bool in_topology;
    struct error *err;
};

static bool span_is(struct span s, const char *text)
{
    return strlen(text) == s.size && memcmp(s.data, text, s.size) == 0;
}

static bool span_same(struct span a, struct span b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* As much of it as an error shows. */
#define SHOWN(s) (int)((s).size < 64 ? (s).size : 64), (s).data

static int fail(const struct look *l, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(const struct look *l, const char *at, const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX / 2];
    size_t line = 1;
    va_list ap;
    for (const char *p = l->text; p < at; p++)
        line += *p == '\n';
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return error_set(l->err, EINVAL, "line %zu: %s", line, text);
}

/* --- values ------------------------------------------------------------- */

/* Of digits alone.  False when it is none, or above `max`. */
static bool number_fits(struct span s, uint64_t max)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.size; i++)
        if (!isdigit((unsigned char)s.data[i]) ||
            __builtin_mul_overflow(n, 10u, &n) ||
            __builtin_add_overflow(n, (unsigned)(s.data[i] - '0'), &n))
            return false;
    return s.size > 0 && n <= max;
}

/* "0x00ff0000,,0x1", 32 bits each, the highest first; "0xf...f" at its front
 * is all that are higher. */
static bool set_fits(struct span s, uint64_t max)
{
    static const char all[] = "0xf...f";
    const char *p = s.data, *end = s.data + s.size;
    uint64_t bits = 0;
    if (s.size >= sizeof all - 1 && memcmp(p, all, sizeof all - 1) == 0)
        p += sizeof all - 1;
    while (p < end && bits <= max) {
        size_t digits = 0;
        if (end - p >= 2 && p[0] == '0' && p[1] == 'x')
            p += 2;
        while (p < end && digits < 8 && isxdigit((unsigned char)*p)) {
            p++;
            digits++;
        }
        if (p < end && *p++ != ',')
            return false;
        bits += 32;
    }
    return p == end && bits <= max + 1;
}

static bool busid_fits(struct span s)
{
    char text[PCI_ADDR_TEXT_MAX];
    struct pci_addr addr;
    if (s.size >= sizeof text)
        return false;
    memcpy(text, s.data, s.size);
    text[s.size] = '\0';
    return pci_addr_parse(text, &addr, NULL) == 0;
}

/* "0000:[10-20]": the buses behind a bridge. */
static bool buses_fit(struct span s)
{
    const char *p = s.data, *end = s.data + s.size;
    size_t domain = 0;
    for (; p < end && isxdigit((unsigned char)*p); p++)
        domain++;
    return domain >= 1 && domain <= 8 && end - p == 8 && p[0] == ':' &&
           p[1] == '[' && isxdigit((unsigned char)p[2]) &&
           isxdigit((unsigned char)p[3]) && p[4] == '-' &&
           isxdigit((unsigned char)p[5]) && isxdigit((unsigned char)p[6]) &&
           p[7] == ']';
}

/* --- attributes --------------------------------------------------------- */

enum kind { NUMBER, SIGNED, SET, BUSID, BUSES };

static const struct rule {
    const char *attribute;
    enum kind kind;
    uint64_t max;
} rules[] = {
    {"os_index", NUMBER, HWXML_INDEX_MAX},
    {"gp_index", NUMBER, INT64_MAX},
    {"target_obj_gp_index", NUMBER, INT64_MAX},
    {"initiator_obj_gp_index", NUMBER, INT64_MAX},
    {"cpuset", SET, HWXML_INDEX_MAX},
    {"complete_cpuset", SET, HWXML_INDEX_MAX},
    {"allowed_cpuset", SET, HWXML_INDEX_MAX},
    {"online_cpuset", SET, HWXML_INDEX_MAX},
    {"initiator_cpuset", SET, HWXML_INDEX_MAX},
    {"nodeset", SET, HWXML_INDEX_MAX},
    {"complete_nodeset", SET, HWXML_INDEX_MAX},
    {"allowed_nodeset", SET, HWXML_INDEX_MAX},
    /* bytes and pages: together they may be of no more than 1 EiB */
    {"local_memory", NUMBER, UINT64_C(1) << 60},
    {"cache_size", NUMBER, UINT64_C(1) << 60},
    {"size", NUMBER, UINT64_C(1) << 60},
    {"count", NUMBER, UINT64_C(1) << 60},
    {"huge_page_size_kB", NUMBER, UINT64_C(1) << 50},
    {"huge_page_free", NUMBER, UINT64_C(1) << 60},
    {"cache_linesize", SIGNED, INT32_MAX},
    {"cache_associativity", SIGNED, INT32_MAX}, /* -1: with every line */
    {"cache_type", NUMBER, 2},
    {"depth", NUMBER, UINT32_MAX}, /* a group's may be unknown: the greatest */
    {"relative_depth", NUMBER, HWXML_DEPTH_MAX},
    {"kind", NUMBER, UINT32_MAX},
    {"subkind", NUMBER, UINT32_MAX},
    {"osdev_type", NUMBER, UINT32_MAX},
    {"nbobjs", NUMBER, HWXML_MATRIX_MAX},
    {"length", NUMBER, INT32_MAX},
    {"forced_efficiency", SIGNED, INT32_MAX},
    {"flags", NUMBER, UINT32_MAX},
    {"pci_busid", BUSID, 0},
    {"bridge_pci", BUSES, 0},
};

static const struct rule *rule_find(struct span attribute)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (span_is(attribute, rules[i].attribute))
            return &rules[i];
    return NULL;
}

static struct span tag_value(const struct tag *t, const char *attribute)
{
    for (size_t i = 0; i < t->n_attributes; i++)
        if (span_is(t->attributes[i].name, attribute))
            return t->attributes[i].value;
    return (struct span){.data = ""};
}

/* The index of these is a mere name, which the kernel may choose freely; of
 * all others it may be a place in a set. */
static bool index_is_name(const struct tag *t)
{
    static const char *const types[] = {
        "Machine",  "System",   "Group",   "Package", "Socket",  "Die",
        "Core",     "Bridge",   "PCIDev",  "OSDev",   "Misc",    "Cache",
        "L1Cache",  "L2Cache",  "L3Cache", "L4Cache", "L5Cache", "L1iCache",
        "L2iCache", "L3iCache", "MemCache"};
    struct span type = tag_value(t, "type");
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (span_is(type, types[i]))
            return true;
    return false;
}

static int attribute_check(const struct look *l, const struct tag *t,
                           const struct attribute *a)
{
    const struct rule *rule = rule_find(a->name);
    struct span value = a->value, number = value;
    if (!rule)
        return 0;
    uint64_t max = rule->max;
    bool fits = false;
    if (rule == &rules[0] && index_is_name(t))
        max = UINT32_MAX;
    if (rule->kind == SIGNED && value.size > 0 && *value.data == '-')
        number = (struct span){value.data + 1, value.size - 1};
    char allowed[64];
    switch (rule->kind) {
    case NUMBER:
    case SIGNED:
        fits = number_fits(number, max);
        (void)snprintf(allowed, sizeof allowed, "a number of at most %ju",
                       (uintmax_t)max);
        break;
    case SET:
        fits = set_fits(value, max);
        (void)snprintf(allowed, sizeof allowed,
                       "a set like 0x000000ff of indexes up to %ju",
                       (uintmax_t)max);
        break;
    case BUSID:
        fits = busid_fits(value);
        (void)snprintf(allowed, sizeof allowed, "like 0000:17:00.0");
        break;
    case BUSES:
        fits = buses_fit(value);
        (void)snprintf(allowed, sizeof allowed, "like 0000:[10-20]");
        break;
    }
    if (fits)
        return 0;
    return fail(l, value.data, "%.*s of <%.*s>: is \"%.*s\"%s, must be %s",
                SHOWN(a->name), SHOWN(t->name), SHOWN(value),
                value.size > 64 ? "…" : "", allowed);
}

/* hwloc 2 reads versions 1 and 2 and is silent about why it refuses 3. */
static int version_check(const struct look *l, const struct tag *t)
{
    struct span version = tag_value(t, "version");
    size_t size = 0;
    while (size < version.size && isdigit((unsigned char)version.data[size]))
        size++;
    if (version.size == 0 || number_fits((struct span){version.data, size}, 2))
        return 0; /* 1.0 said none */
    return fail(l, version.data,
                "is an hwloc XML of version %.*s; versions 1 and 2 can be "
                "read (lstopo --export-xml-flags v2 writes one)",
                SHOWN(version));
}

static int element_check(struct look *l, const struct tag *t)
{
    const char *at = t->name.data;
    l->n_objects += span_is(t->name, "object");
    if (++l->n_elements > HWXML_ELEMENTS_MAX ||
        l->n_objects > HWXML_OBJECTS_MAX)
        return fail(l, at,
                    "more than %d objects or %d elements, which is the most "
                    "that can be read",
                    HWXML_OBJECTS_MAX, HWXML_ELEMENTS_MAX);
    if (l->depth > HWXML_DEPTH_MAX)
        return fail(l, at, "more than %d elements within one another",
                    HWXML_DEPTH_MAX);
    if (span_is(t->name, "topology")) {
        l->in_topology = true;
        if (version_check(l, t) < 0)
            return -EINVAL;
    }
    for (size_t i = 0; i < t->n_attributes; i++)
        if (attribute_check(l, t, &t->attributes[i]) < 0)
            return -EINVAL;
    return 0;
}

/* --- markup ------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_-.:", c));
}

static struct span name_read(struct look *l)
{
    struct span s = {.data = l->p};
    while (is_name(*l->p))
        l->p++;
    s.size = (size_t)(l->p - s.data);
    return s;
}

static void space_skip(struct look *l)
{
    l->p += strspn(l->p, " \t\r\n");
}

static int attribute_read(struct look *l, struct tag *t)
{
    struct attribute a = {.name = name_read(l)};
    if (a.name.size == 0)
        return fail(l, l->p, "an attribute has no name");
    space_skip(l);
    if (*l->p != '=')
        return fail(l, l->p, "%.*s: has no value", SHOWN(a.name));
    l->p++;
    space_skip(l);
    const char quote = *l->p;
    const char *end = quote == '"' || quote == '\'' ? strchr(l->p + 1, quote)
                                                    : NULL;
    if (!end)
        return fail(l, l->p, "%.*s: its value is not quoted", SHOWN(a.name));
    a.value = (struct span){l->p + 1, (size_t)(end - l->p - 1)};
    if (memchr(a.value.data, '<', a.value.size))
        return fail(l, l->p, "%.*s: its value has a '<'", SHOWN(a.name));
    for (size_t i = 0; i < t->n_attributes; i++)
        if (span_same(t->attributes[i].name, a.name))
            return fail(l, l->p, "%.*s: is there twice", SHOWN(a.name));
    if (t->n_attributes == HWXML_ATTRIBUTES_MAX)
        return fail(l, l->p, "<%.*s>: has more than %d attributes",
                    SHOWN(t->name), HWXML_ATTRIBUTES_MAX);
    t->attributes[t->n_attributes++] = a;
    l->p = end + 1;
    return 0;
}

/* NAME="VALUE" …, up to what may end them: '/', '?' or '>'. */
static int attributes_read(struct look *l, struct tag *t)
{
    for (;;) {
        space_skip(l);
        if (*l->p == '/' || *l->p == '?' || *l->p == '>')
            return 0;
        int r = attribute_read(l, t);
        if (r < 0)
            return r;
    }
}

/* <NAME ATTRIBUTE…> or <NAME ATTRIBUTE…/> */
static int element_read(struct look *l)
{
    struct tag t;
    l->p++;
    t.name = name_read(l);
    t.n_attributes = 0;
    if (t.name.size == 0)
        return fail(l, l->p, "an element has no name");
    int r = attributes_read(l, &t);
    bool closed = *l->p == '/';
    if (r < 0)
        return r;
    l->p += closed;
    if (*l->p != '>')
        return fail(l, l->p, "<%.*s>: is not closed", SHOWN(t.name));
    l->p++;
    l->depth++;
    r = element_check(l, &t);
    l->depth -= closed;
    return r;
}

static int end_read(struct look *l)
{
    const char *close = strchr(l->p, '>');
    if (!close || l->depth == 0)
        return fail(l, l->p, "an element ends that did not begin");
    l->depth--;
    l->p = close + 1;
    return 0;
}

static int comment_read(struct look *l)
{
    const char *close = strstr(l->p + strlen("<!--"), "-->");
    if (!close)
        return fail(l, l->p, "a comment does not end");
    l->p = close + strlen("-->");
    return 0;
}

/* What declares entities would let the text say something else than it
 * does. */
static int doctype_read(struct look *l)
{
    const char *at = l->p, *close = strchr(at, '>');
    if (!close || strncmp(at, "<!DOCTYPE ", 10) != 0 ||
        strcspn(at + 1, "[<") < (size_t)(close - at))
        return fail(l, at,
                    "may declare no more than <!DOCTYPE topology SYSTEM …>");
    l->p = close + 1;
    return 0;
}

/* <?xml version="1.0" encoding="UTF-8"?>: in another encoding, the bytes
 * would have another meaning. */
static int xml_read(struct look *l)
{
    const char *at = l->p;
    if (strncmp(at, "<?xml ", 6) != 0)
        return fail(l, at, "has instructions other than <?xml …?>");
    struct tag t = {.name = {"?xml", 4}};
    l->p += 6;
    if (attributes_read(l, &t) < 0)
        return -EINVAL;
    if (l->p[0] != '?' || l->p[1] != '>')
        return fail(l, l->p, "<?xml …?> is not closed");
    l->p += 2;
    struct span encoding = tag_value(&t, "encoding");
    if (encoding.size == 0 ||
        (encoding.size == 5 && strncasecmp(encoding.data, "utf-8", 5) == 0))
        return 0;
    return fail(l, at, "encoding: is \"%.*s\", must be UTF-8", SHOWN(encoding));
}

int hwxml_check(const char *text, struct error *err)
{
    struct look l = {.text = text, .p = text, .err = err};
    int r = 0;
    while (r == 0 && (l.p = strchr(l.p, '<'))) {
        if (l.p[1] == '/')
            r = end_read(&l);
        else if (l.p[1] == '?')
            r = xml_read(&l);
        else if (strncmp(l.p, "<!--", 4) == 0)
            r = comment_read(&l);
        else if (l.p[1] == '!')
            r = doctype_read(&l);
        else
            r = element_read(&l);
    }
    if (r == 0 && !l.in_topology)
        return error_set(err, EINVAL,
                         "is no hwloc XML: there is no <topology> in it");
    return r;
}
