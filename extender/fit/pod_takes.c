#include "extender/fit/pod_takes.h"

#include <string.h>

#include "lib/base/jrow.h"
#include "model/pod/quantity.h"

#define WITHIN(key, rows) JROW_OBJECT(key, JROW_LAX, rows)
#define EACH(key, read) JROW_EACH(key, JROW_LAX, read)

/* --- amounts ------------------------------------------------------------ */

/* Of several resources, in thousandths. */
struct sums {
    struct {
        struct jtext name;
        int64_t milli;
    } at[POD_TAKES_RESOURCES_MAX];
    size_t n;
    bool more;
};

static bool is_same(const struct jtext *a, const struct jtext *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* NULL when there is no room for it. */
static int64_t *need(struct sums *s, const struct jtext *name)
{
    size_t i = 0;
    while (i < s->n && !is_same(&s->at[i].name, name))
        i++;
    if (i == POD_TAKES_RESOURCES_MAX) {
        s->more = true;
        return NULL;
    }
    if (i == s->n) {
        s->at[i].name = *name;
        s->at[i].milli = 0;
        s->n++;
    }
    return &s->at[i].milli;
}

static void sums_add(struct sums *to, const struct sums *from)
{
    to->more = to->more || from->more;
    for (size_t i = 0; i < from->n; i++) {
        int64_t more = from->at[i].milli, *sum = need(to, &from->at[i].name);
        if (sum)
            *sum = *sum > INT64_MAX - more ? INT64_MAX : *sum + more;
    }
}

static void sums_raise(struct sums *to, const struct sums *from)
{
    to->more = to->more || from->more;
    for (size_t i = 0; i < from->n; i++) {
        int64_t *sum = need(to, &from->at[i].name);
        if (sum && *sum < from->at[i].milli)
            *sum = from->at[i].milli;
    }
}

static bool starts_with(const char *data, size_t size, const char *with)
{
    size_t n = strlen(with);
    return size >= n && memcmp(data, with, n) == 0;
}

static bool is_name(const char *data, size_t size, const char *name)
{
    return size == strlen(name) && memcmp(data, name, size) == 0;
}

bool pod_takes_counts(const char *resource, size_t size)
{
    return is_name(resource, size, "cpu") ||
           is_name(resource, size, "memory") ||
           is_name(resource, size, "ephemeral-storage") ||
           starts_with(resource, size, "hugepages-") ||
           starts_with(resource, size, "attachable-volumes-") ||
           memchr(resource, '/', size);
}

int64_t pod_takes_units(const char *resource, size_t size, int64_t milli)
{
    if (is_name(resource, size, "cpu"))
        return milli;
    return milli / 1000 + (milli % 1000 != 0);
}

/* Those that spec.resources may say for the pod as a whole. */
static void sums_replace(struct sums *to, const struct sums *whole)
{
    to->more = to->more || whole->more;
    for (size_t i = 0; i < whole->n; i++) {
        const struct jtext *name = &whole->at[i].name;
        bool is_one = jtext_is(name, "cpu") || jtext_is(name, "memory") ||
                      starts_with(name->data, name->size, "hugepages-");
        int64_t *sum = is_one ? need(to, name) : NULL;
        if (sum)
            *sum = whole->at[i].milli;
    }
}

/* {"cpu":"1","nvidia.com/gpu":1}; what is no quantity is not stated. */
static void read_sums(struct jscan *s, void *to)
{
    struct sums *sums = to;
    struct jtext name;
    int64_t milli;
    if (!jscan_object(s))
        return;
    while (jscan_member(s, &name)) {
        if (!quantity_scan(s, &milli) ||
            !pod_takes_counts(name.data, name.size))
            continue; /* a fault ends the loop */
        int64_t *sum = need(sums, &name);
        if (sum)
            *sum = milli;
    }
}

/* --- containers --------------------------------------------------------- */

struct port {
    struct jtext ip, protocol;
    int64_t number;
};

struct ports {
    struct port at[POD_TAKES_PORTS_MAX];
    size_t n;
    bool more;
};

struct container {
    struct sums take;
    struct ports ports;
    struct jtext restart_policy;
};

struct reading {
    struct sums containers; /* with sidecars */
    struct sums sidecars;   /* those so far */
    struct sums init_peak, whole, overhead;
    struct ports ports;
};

static void ports_add(struct ports *to, const struct ports *from)
{
    to->more = to->more || from->more;
    for (size_t i = 0; i < from->n; i++)
        if (to->n < POD_TAKES_PORTS_MAX)
            to->at[to->n++] = from->at[i];
        else
            to->more = true;
}

static const struct jrow port_rows[] = {
    JROW("hostPort", JROW_LAX, jrow_int64, struct port, number),
    JROW("hostIP", JROW_LAX, jrow_text, struct port, ip),
    JROW("protocol", JROW_LAX, jrow_text, struct port, protocol),
    JROW_END,
};

static void read_port(struct jscan *s, void *to)
{
    struct ports one = {.n = 1};
    struct container *c = to;
    (void)jrow_read(s, JROW_LAX, port_rows, &one.at[0]); /* a fault sticks */
    if (one.at[0].number > 0 && one.at[0].number <= UINT16_MAX)
        ports_add(&c->ports, &one);
}

static const struct jrow container_resources[] = {
    JROW_CALL_TO("requests", JROW_LAX, JKIND_OBJECT, read_sums,
                 struct container, take),
    JROW_END,
};

static const struct jrow container_rows[] = {
    WITHIN("resources", container_resources),
    EACH("ports", read_port),
    JROW("restartPolicy", JROW_LAX, jrow_text, struct container,
         restart_policy),
    JROW_END,
};

static void read_container(struct jscan *s, void *to)
{
    struct container c = {0};
    struct reading *r = to;
    (void)jrow_read(s, JROW_LAX, container_rows, &c); /* a fault sticks */
    sums_add(&r->containers, &c.take);
    ports_add(&r->ports, &c.ports);
}

/* An init container runs beside the sidecars that were started before it. */
static void read_init_container(struct jscan *s, void *to)
{
    struct container c = {0};
    struct reading *r = to;
    (void)jrow_read(s, JROW_LAX, container_rows, &c); /* a fault sticks */
    struct sums now = r->sidecars;
    sums_add(&now, &c.take);
    sums_raise(&r->init_peak, &now);
    if (!c.restart_policy.data || !jtext_is(&c.restart_policy, "Always"))
        return;
    sums_add(&r->containers, &c.take);
    ports_add(&r->ports, &c.ports);
    r->sidecars = now;
}

/* --- the whole ---------------------------------------------------------- */

static const struct jrow pod_resources[] = {
    JROW_CALL_TO("requests", JROW_LAX, JKIND_OBJECT, read_sums, struct reading,
                 whole),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    EACH("containers", read_container),
    EACH("initContainers", read_init_container),
    JROW_CALL_TO("overhead", JROW_LAX, JKIND_OBJECT, read_sums, struct reading,
                 overhead),
    WITHIN("resources", pod_resources),
    JROW_END,
};
static const struct jrow rows[] = {
    WITHIN("spec", spec_rows),
    JROW_END,
};

static const char *copy(struct arena *a, const struct jtext *text)
{
    char *plain = arena_alloc(a, text->size + 1);
    (void)jtext_decode(text, plain);
    return plain;
}

static int compare_amount(const void *a, const void *b)
{
    const struct take_amount *x = a, *y = b;
    return strcmp(x->resource, y->resource);
}

static void take_amounts(struct pod_takes *t, const struct sums *sums)
{
    struct take_amount *to = arena_alloc(&t->memory,
                                         (sums->n + 1) * sizeof *to);
    for (size_t i = 0; i < sums->n; i++) {
        const struct jtext *name = &sums->at[i].name;
        if (sums->at[i].milli > 0)
            to[t->n_amounts++] = (struct take_amount){
                copy(&t->memory, name),
                pod_takes_units(name->data, name->size, sums->at[i].milli)};
    }
    qsort(to, t->n_amounts, sizeof *to, compare_amount);
    t->amounts = to;
}

static void take_ports(struct pod_takes *t, const struct ports *ports)
{
    struct take_port *to = arena_alloc(&t->memory, (ports->n + 1) * sizeof *to);
    for (size_t i = 0; i < ports->n; i++) {
        const struct port *p = &ports->at[i];
        to[i] = (struct take_port){
            .ip = p->ip.size ? copy(&t->memory, &p->ip) : "0.0.0.0",
            .port = (uint16_t)p->number,
            .protocol = p->protocol.size ? *p->protocol.data : 'T',
        };
    }
    t->ports = to;
    t->n_ports = ports->n;
}

int pod_takes_read(const char *json, size_t size, struct pod_takes *ret_takes,
                   struct error *err)
{
    struct jscan s;
    struct pod_takes takes = {0};
    struct reading r = {0};
    jscan_init_kube(&s, json, size);
    if (!jrow_read(&s, JROW_LAX, rows, &r) && !s.fault)
        return error_set(err, EINVAL, "the pod: must be an object");
    if (!jscan_end(&s))
        return jscan_error(&s, err);
    struct sums all = r.containers;
    sums_raise(&all, &r.init_peak);
    sums_replace(&all, &r.whole);
    sums_add(&all, &r.overhead);
    take_amounts(&takes, &all);
    take_ports(&takes, &r.ports);
    if (all.more)
        takes.more = "more than 16 kinds of resources";
    else if (r.ports.more)
        takes.more = "more than 64 host ports";
    *ret_takes = takes;
    return 0;
}

void pod_takes_fini(struct pod_takes *t)
{
    arena_fini(&t->memory);
    *t = (struct pod_takes){0};
}

static bool is_wild(const struct take_port *p)
{
    return strcmp(p->ip, "0.0.0.0") == 0;
}

bool pod_takes_ports_clash(const struct pod_takes *a, const struct pod_takes *b)
{
    for (size_t i = 0; i < a->n_ports; i++)
        for (size_t j = 0; j < b->n_ports; j++) {
            const struct take_port *x = &a->ports[i], *y = &b->ports[j];
            if (x->port == y->port && x->protocol == y->protocol &&
                (is_wild(x) || is_wild(y) || strcmp(x->ip, y->ip) == 0))
                return true;
        }
    return false;
}
