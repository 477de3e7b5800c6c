#include "extender/pods/host_requests.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/hex.h"
#include "lib/base/strmap.h"

enum { HOST_NONE = UINT32_MAX, SLOTS_MIN = 1024 };

/* One pod; open addressing by uid. */
struct record {
    uint64_t uid[2];     /* its 128 bits, or a hash of another text */
    uint32_t host;       /* HOST_NONE: a free slot */
    uint32_t cpu_milli;  /* saturated */
    uint32_t memory_kib; /* its low 32 bits, */
    uint16_t memory_high;
    uint8_t source : 1, lap : 1; /* lap of its source when it was put */
};

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
    struct record *records;
    size_t n_slots, n_pods; /* a power of two */
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

_Static_assert(sizeof(struct record) == 32, "a record is what is promised");

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

static bool parse_hex(char c, uint64_t *value)
{
    int digit = c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
    *value = *value << 4 | (unsigned)(digit & 15);
    return digit >= 0;
}

/* UUIDs as they are, in their one spelling; anything else, which no API server
 * gives, by a hash. */
static void read_uid(const char *text, uint64_t ret_uid[2])
{
    enum { UUID_SIZE = 36 };
    size_t size = strlen(text), digits = 0;
    uint64_t uid[2] = {0, 0};
    bool is_uuid = size == UUID_SIZE;
    for (size_t i = 0; is_uuid && i < size; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            is_uuid = text[i] == '-';
        else
            is_uuid = parse_hex(text[i], &uid[digits++ / 16]);
    }
    if (!is_uuid) {
        uid[0] = hash_bytes(text, size);
        uid[1] = hash_mix(uid[0] ^ UINT64_C(0xd6e8feb86659fd93),
                          hash_bytes(text, size / 2) ^ size);
    }
    ret_uid[0] = uid[0];
    ret_uid[1] = uid[1];
}

static size_t slot_of(const struct host_requests *s, const uint64_t uid[2])
{
    return hash_mix(uid[0] ^ UINT64_C(0x9e3779b97f4a7c15),
                    uid[1] ^ UINT64_C(0xd6e8feb86659fd93)) &
           (s->n_slots - 1);
}

/* Its slot, or the free one where it would be. */
static struct record *find(const struct host_requests *s, const uint64_t uid[2])
{
    size_t at = slot_of(s, uid);
    while (s->records[at].host != HOST_NONE &&
           (s->records[at].uid[0] != uid[0] || s->records[at].uid[1] != uid[1]))
        at = (at + 1) & (s->n_slots - 1);
    return &s->records[at];
}

static struct record *slots_create(size_t n)
{
    struct record *records = xcalloc(n, sizeof *records);
    for (size_t i = 0; i < n; i++)
        records[i].host = HOST_NONE;
    return records;
}

static void resize(struct host_requests *s, size_t n_slots)
{
    struct record *old = s->records;
    size_t n = s->n_slots;
    s->records = slots_create(n_slots);
    s->n_slots = n_slots;
    for (size_t i = 0; i < n; i++)
        if (old[i].host != HOST_NONE)
            *find(s, old[i].uid) = old[i];
    free(old);
}

/* Free a slot: those behind it that would not be found any more move up. */
static void close_gap(struct host_requests *s, size_t gap)
{
    size_t mask = s->n_slots - 1;
    for (size_t at = (gap + 1) & mask; s->records[at].host != HOST_NONE;
         at = (at + 1) & mask) {
        size_t home = slot_of(s, s->records[at].uid);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* it is found without the gap */
        s->records[gap] = s->records[at];
        gap = at;
    }
    s->records[gap].host = HOST_NONE;
    s->n_pods--;
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
    read_uid(pod->uid, next.uid);
    if ((s->n_pods + 1) * 3 > s->n_slots * 2)
        resize(s, s->n_slots * 2);
    struct record *r = find(s, next.uid), old = *r;
    next.host = need_host(s, pod->node);
    s->n_pods += old.host == HOST_NONE;
    *r = next;
    charge(s, &next, 1);
    if (old.host != HOST_NONE)
        charge(s, &old, -1);
    if (old.host != HOST_NONE && old.host != next.host)
        follow(s, old.host);
    follow(s, next.host);
}

static void remove_at(struct host_requests *s, size_t at)
{
    struct record old = s->records[at];
    close_gap(s, at);
    charge(s, &old, -1);
    follow(s, old.host);
}

void host_requests_remove(struct host_requests *s,
                          enum host_requests_source source, const char *uid)
{
    uint64_t key[2];
    read_uid(uid, key);
    struct record *r = find(s, key);
    if (r->host == HOST_NONE || r->source != (source == HOST_REQUESTS_ROLES))
        return;
    remove_at(s, (size_t)(r - s->records));
    if (s->n_slots > SLOTS_MIN && s->n_pods < s->n_slots / 8)
        resize(s, s->n_slots / 2);
}

void host_requests_list(struct host_requests *s,
                        enum host_requests_source source)
{
    s->lap[source] = !s->lap[source];
    /* a list that was begun and not ended may have left some behind */
    for (size_t i = 0; i < s->n_slots; i++)
        if (s->records[i].source == (source == HOST_REQUESTS_ROLES))
            s->records[i].lap = !s->lap[source];
}

void host_requests_listed(struct host_requests *s,
                          enum host_requests_source source)
{
    for (size_t i = 0; i < s->n_slots;) {
        const struct record *r = &s->records[i];
        if (r->host != HOST_NONE &&
            r->source == (source == HOST_REQUESTS_ROLES) &&
            r->lap != s->lap[source])
            remove_at(s, i); /* another may have moved up to here */
        else
            i++;
    }
}

size_t host_requests_n_pods(const struct host_requests *s)
{
    return s->n_pods;
}

size_t host_requests_size(const struct host_requests *s)
{
    return sizeof *s + s->n_slots * sizeof *s->records +
           s->hosts_cap * sizeof *s->hosts +
           s->by_name.cap * sizeof *s->by_name.slots;
}

/* --- begin and end ------------------------------------------------------ */

struct host_requests *host_requests_create(void)
{
    struct host_requests *s = xcalloc(1, sizeof *s);
    s->n_slots = SLOTS_MIN;
    s->records = slots_create(s->n_slots);
    return s;
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
    free(s->records);
    free(s);
}
