#include "extender/pods/host_requests.h"

#include <string.h>

#include "lib/base/idmap.h"
#include "lib/base/strmap.h"

enum { HOST_NONE = UINT32_MAX };

/* One pod: the data of a slot. */
struct record {
    uint32_t host;
    uint32_t cpu_milli;  /* saturated */
    uint32_t memory_kib; /* its low 32 bits, */
    uint16_t memory_high;
    uint8_t source : 1, lap : 1; /* lap of its source when it was put */
};

_Static_assert(sizeof(struct record) == sizeof(((struct idmap_slot *)0)->data),
               "a record is the data of a slot");

/* A host that is known, or has pods. */
struct host {
    char *name; /* NULL: free */
    struct host_requests_host has;
    bool known, lap, changed;
    uint64_t pods;
    int64_t cpu_milli, memory_kib; /* of its pods together */
    struct host_room told;
};

struct host_requests {
    struct idmap pods; /* struct record, by uid */
    struct host *hosts;
    size_t n_hosts, hosts_cap;
    uint32_t *free_hosts;
    size_t n_free, free_cap;
    struct strmap by_name; /* number + 1 of the host, by its name */
    uint32_t *changed;
    size_t n_changed, changed_cap;
    bool lap[2], hosts_lap; /* turned when a list begins */
};

static const struct host_room unknown = {INT64_MAX, INT64_MAX, INT64_MAX};

/* --- rooms -------------------------------------------------------------- */

static int64_t left(int64_t has, int64_t taken)
{
    return has == INT64_MAX ? INT64_MAX : has - taken;
}

/* Towards less, below zero too. */
static int64_t mib_of(int64_t kib)
{
    if (kib == INT64_MAX)
        return kib;
    return kib >= 0 ? kib / 1024 : -((-kib + 1023) / 1024);
}

static struct host_room room_of(const struct host *h)
{
    if (!h->known)
        return unknown;
    return (struct host_room){
        .cpu_milli = left(h->has.cpu_milli, h->cpu_milli),
        .memory_mib = mib_of(left(h->has.memory_kib, h->memory_kib)),
        .pods = left(h->has.pods, (int64_t)h->pods),
    };
}

static bool is_same(const struct host_room *a, const struct host_room *b)
{
    return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
           a->pods == b->pods;
}

static void note_change(struct host_requests *s, uint32_t number)
{
    struct host *h = &s->hosts[number];
    if (h->changed)
        return;
    h->changed = true;
    s->changed = xgrow(s->changed, s->n_changed, &s->changed_cap,
                       sizeof *s->changed);
    s->changed[s->n_changed++] = number;
}

size_t host_requests_n_changed(const struct host_requests *s)
{
    return s->n_changed;
}

void host_requests_changed(const struct host_requests *s, size_t i,
                           const char **ret_node, struct host_room *ret_room)
{
    const struct host *h = &s->hosts[s->changed[i]];
    *ret_node = h->name;
    *ret_room = room_of(h);
}

/* --- hosts -------------------------------------------------------------- */

static uint32_t find_host(const struct host_requests *s, const char *name)
{
    uintptr_t number = (uintptr_t)strmap_get(&s->by_name, name);
    return number ? (uint32_t)(number - 1) : HOST_NONE;
}

static uint32_t need_host(struct host_requests *s, const char *name)
{
    uint32_t number = find_host(s, name);
    if (number != HOST_NONE)
        return number;
    if (s->n_free) {
        number = s->free_hosts[--s->n_free];
    } else {
        s->hosts = xgrow(s->hosts, s->n_hosts, &s->hosts_cap, sizeof *s->hosts);
        number = (uint32_t)s->n_hosts++;
    }
    struct host *h = &s->hosts[number];
    memset(h, 0, sizeof *h);
    h->name = xstrdup(name);
    h->told = unknown;
    (void)strmap_put(&s->by_name, h->name, (void *)((uintptr_t)number + 1));
    return number;
}

/* One that nothing is known of any more, and that nobody is on. */
static void drop_host(struct host_requests *s, uint32_t number)
{
    struct host *h = &s->hosts[number];
    if (h->known || h->pods || h->changed)
        return;
    (void)strmap_remove(&s->by_name, h->name);
    free(h->name);
    h->name = NULL;
    s->free_hosts = xgrow(s->free_hosts, s->n_free, &s->free_cap,
                          sizeof *s->free_hosts);
    s->free_hosts[s->n_free++] = number;
}

/* What is as it was told is no change. */
void host_requests_settle(struct host_requests *s)
{
    for (size_t i = 0; i < s->n_changed; i++) {
        struct host *h = &s->hosts[s->changed[i]];
        h->changed = false;
        h->told = room_of(h);
        drop_host(s, s->changed[i]);
    }
    s->n_changed = 0;
}

/* After a change of a host. */
static void follow(struct host_requests *s, uint32_t number)
{
    struct host_room now = room_of(&s->hosts[number]);
    if (!is_same(&now, &s->hosts[number].told))
        note_change(s, number);
    else
        drop_host(s, number);
}

void host_requests_put_host(struct host_requests *s, const char *node,
                            const struct host_requests_host *host)
{
    uint32_t number = need_host(s, node);
    struct host *h = &s->hosts[number];
    h->has = *host;
    h->known = true;
    h->lap = s->hosts_lap;
    follow(s, number);
}

static void forget_host(struct host_requests *s, uint32_t number)
{
    s->hosts[number].known = false;
    follow(s, number);
}

void host_requests_remove_host(struct host_requests *s, const char *node)
{
    uint32_t number = find_host(s, node);
    if (number != HOST_NONE)
        forget_host(s, number);
}

void host_requests_list_hosts(struct host_requests *s)
{
    s->hosts_lap = !s->hosts_lap;
    /* a list that was begun and not ended may have left some behind */
    for (size_t i = 0; i < s->n_hosts; i++)
        s->hosts[i].lap = !s->hosts_lap;
}

void host_requests_listed_hosts(struct host_requests *s)
{
    for (size_t i = 0; i < s->n_hosts; i++)
        if (s->hosts[i].name && s->hosts[i].known &&
            s->hosts[i].lap != s->hosts_lap)
            forget_host(s, (uint32_t)i);
}

/* --- pods --------------------------------------------------------------- */

static struct record record_of(const struct idmap_slot *slot)
{
    struct record record;
    memcpy(&record, slot->data, sizeof record);
    return record;
}

static bool is_of(const struct idmap_slot *slot,
                  enum host_requests_source source)
{
    return (slot->id[0] | slot->id[1]) &&
           record_of(slot).source == (source == HOST_REQUESTS_ROLES);
}

static void charge(struct host_requests *s, const struct record *r, int sign)
{
    struct host *h = &s->hosts[r->host];
    int64_t memory = (int64_t)((uint64_t)r->memory_high << 32 | r->memory_kib);
    h->cpu_milli += sign * (int64_t)r->cpu_milli;
    h->memory_kib += sign * memory;
    h->pods += (uint64_t)(int64_t)sign;
}

static uint64_t at_most(int64_t amount, uint64_t max)
{
    uint64_t value = amount > 0 ? (uint64_t)amount : 0;
    return value < max ? value : max;
}

void host_requests_put(struct host_requests *s,
                       enum host_requests_source source,
                       const struct host_requests_pod *pod)
{
    const uint64_t memory_max = (UINT64_C(1) << 48) - 1;
    uint64_t memory = at_most(pod->memory_kib, memory_max);
    struct record next = {
        .cpu_milli = (uint32_t)at_most(pod->cpu_milli, UINT32_MAX),
        .memory_kib = (uint32_t)memory,
        .memory_high = (uint16_t)(memory >> 32),
        .source = source == HOST_REQUESTS_ROLES,
        .lap = s->lap[source],
    };
    uint64_t id[2];
    idmap_id(pod->uid, id);
    struct idmap_slot *slot = idmap_get(&s->pods, id);
    struct record old = {.host = HOST_NONE};
    if (slot)
        old = record_of(slot);
    else
        slot = idmap_put(&s->pods, id);
    next.host = need_host(s, pod->node);
    memcpy(slot->data, &next, sizeof next);
    charge(s, &next, 1);
    if (old.host != HOST_NONE)
        charge(s, &old, -1);
    if (old.host != HOST_NONE && old.host != next.host)
        follow(s, old.host);
    follow(s, next.host);
}

static void remove_slot(struct host_requests *s, struct idmap_slot *slot)
{
    struct record old = record_of(slot);
    idmap_remove(&s->pods, slot);
    charge(s, &old, -1);
    follow(s, old.host);
}

void host_requests_remove(struct host_requests *s,
                          enum host_requests_source source, const char *uid)
{
    uint64_t id[2];
    idmap_id(uid, id);
    struct idmap_slot *slot = idmap_get(&s->pods, id);
    if (!slot || !is_of(slot, source))
        return;
    remove_slot(s, slot);
    idmap_shrink(&s->pods);
}

void host_requests_list(struct host_requests *s,
                        enum host_requests_source source)
{
    s->lap[source] = !s->lap[source];
    /* a list that was begun and not ended may have left some behind */
    for (size_t i = 0; i < s->pods.cap; i++) {
        struct idmap_slot *slot = &s->pods.slots[i];
        struct record record = record_of(slot);
        if (!is_of(slot, source))
            continue;
        record.lap = !s->lap[source];
        memcpy(slot->data, &record, sizeof record);
    }
}

void host_requests_listed(struct host_requests *s,
                          enum host_requests_source source)
{
    for (size_t i = 0; i < s->pods.cap;) {
        struct idmap_slot *slot = &s->pods.slots[i];
        if (is_of(slot, source) && record_of(slot).lap != s->lap[source])
            remove_slot(s, slot); /* another may have moved up to here */
        else
            i++;
    }
    idmap_shrink(&s->pods);
}

size_t host_requests_n_pods(const struct host_requests *s)
{
    return s->pods.n;
}

size_t host_requests_size(const struct host_requests *s)
{
    return sizeof *s + s->pods.cap * sizeof *s->pods.slots +
           s->hosts_cap * sizeof *s->hosts +
           s->by_name.cap * sizeof *s->by_name.slots;
}

/* --- begin and end ------------------------------------------------------ */

struct host_requests *host_requests_create(void)
{
    return xcalloc(1, sizeof(struct host_requests));
}

void host_requests_destroy(struct host_requests *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_hosts; i++)
        free(s->hosts[i].name);
    strmap_fini(&s->by_name);
    free(s->hosts);
    free(s->free_hosts);
    free(s->changed);
    idmap_fini(&s->pods);
    free(s);
}
