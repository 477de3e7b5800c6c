#include "tests/lib/sim/kworld.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simhost.h"

struct kworld kworld;

static int64_t wall_us(void)
{
    return kworld.now * 1000;
}

const struct publish_config kworld_config = {
    .boot_id = "boot-1",
    .heartbeat_ms = 10000,
    .backoff_min_ms = 500,
    .backoff_max_ms = 10000,
    .instance = "a",
    .namespace = "biga-nodes",
    .check_ms = 60000,
    .unix_us = wall_us,
};

void kworld_look(void *ctx)
{
    char hash[17];
    int64_t generation;
    (void)ctx;
    if (kworld.foreign)
        return;
    enum simkube_pool pool = simkube_pool(kworld.kube, "h", hash, &generation);
    cr_assert_neq(pool, SIMKUBE_MIXED, "generation %lld",
                  (long long)generation);
    bool known = pool == SIMKUBE_NONE;
    for (size_t i = 0; i < kworld.n_hashes; i++)
        known |= strcmp(kworld.hashes[i], hash) == 0;
    cr_assert(known, "%s was never a topology", hash);
}

const char *kworld_sent(size_t from)
{
    static char text[KWORLD_LOG_MAX + 1];
    size_t n = 0;
    for (size_t i = from; i < kworld.n_log; i++)
        text[n++] = kworld.log[i].method;
    text[n] = '\0';
    return text;
}

static int world_send(void *ctx, const struct publish_request *rq,
                      struct http_answer *ret_answer, struct error *err)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH",
                                          "DELETE"};
    (void)ctx;
    cr_assert_lt(kworld.n_log, KWORLD_LOG_MAX, "… %s",
                 kworld_sent(kworld.n_log - 60));
    char method = '?';
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(rq->method, methods[i]) == 0)
            method = "GOPAD"[i];
    kworld.log[kworld.n_log].at = kworld.now;
    kworld.log[kworld.n_log].method = strchr(rq->path, '?') ? 'L' : method;
    (void)snprintf(kworld.log[kworld.n_log++].path, PUBLISH_PATH_MAX, "%s",
                   rq->path);
    ret_answer->status = 0;
    if (kworld.down)
        return error_set(err, ECONNREFUSED, "nobody is there");
    simkube_call(kworld.kube, rq, ret_answer);
    if (kworld.lost != method)
        return 0;
    kworld.lost = 0;
    ret_answer->status = 0;
    return error_set(err, ETIMEDOUT, "nobody answers");
}

void kworld_begin(void)
{
    log_set_level((enum log_level)(LOG_ERROR + 1));
    memset(&kworld, 0, sizeof kworld);
    kworld.now = 1000000;
    kworld.kube = simkube_create(kworld_look, NULL);
    simkube_add_node(kworld.kube, "h");
}

void kworld_end(void)
{
    simkube_destroy(kworld.kube);
}

struct topo *kworld_make_topo(unsigned n_nics, const char *model)
{
    struct topo *topo = simhost_nics("h", n_nics, model);
    char hash[17];
    slice_content_hash(topo, hash);
    for (size_t i = 0; i < kworld.n_hashes; i++)
        if (strcmp(kworld.hashes[i], hash) == 0)
            return topo;
    cr_assert_lt(kworld.n_hashes, KWORLD_HASHES_MAX);
    memcpy(kworld.hashes[kworld.n_hashes++], hash, sizeof hash);
    return topo;
}

struct publisher *kworld_start(const struct publish_config *c, unsigned n_nics,
                               const char *model)
{
    cleanup_with(topo) struct topo *topo = kworld_make_topo(n_nics, model);
    struct publisher *f = publisher_create(&publish_kube, c, world_send, NULL);
    publisher_add(f, topo, kworld.now);
    return f;
}

void kworld_update(struct publisher *f, unsigned n_nics, const char *model)
{
    cleanup_with(topo) struct topo *topo = kworld_make_topo(n_nics, model);
    publisher_update(f, 0, topo, kworld.now);
}

/* --- a watch ------------------------------------------------------------ */

static void on_watch(void *ctx, const struct publish_notice *notice)
{
    struct kworld_notice *n = &kworld.notices[kworld.n_notices++];
    (void)ctx;
    cr_assert_leq(kworld.n_notices, KWORLD_LOG_MAX);
    (void)snprintf(n->name, sizeof n->name, "%s", notice->name);
    (void)snprintf(n->version, sizeof n->version, "%s", notice->version);
    n->gone = notice->gone;
}

void kworld_watch(void)
{
    simkube_watch(kworld.kube, on_watch, NULL);
}

/* As the program does it: between two calls. */
void kworld_deliver(struct publisher *f)
{
    for (size_t i = 0; i < kworld.n_notices; i++) {
        const struct kworld_notice *n = &kworld.notices[i];
        publisher_notice(f, 0,
                         &(struct publish_notice){n->name, n->version, n->gone},
                         kworld.now);
    }
    kworld.n_notices = 0;
}

void kworld_run_both(struct publisher *f, struct publisher *g, int64_t until)
{
    for (;;) {
        kworld_deliver(f);
        struct publisher *next = g && publisher_due(g) < publisher_due(f) ? g
                                                                          : f;
        if (publisher_due(next) > until)
            break;
        if (publisher_due(next) > kworld.now)
            kworld.now = publisher_due(next);
        cr_assert(publisher_step(next, kworld.now));
    }
    kworld.now = until;
}

void kworld_run_until(struct publisher *f, int64_t until)
{
    kworld_run_both(f, NULL, until);
}

int64_t kworld_generation(void)
{
    char hash[17];
    int64_t g;
    enum simkube_pool pool = simkube_pool(kworld.kube, "h", hash, &g);
    cr_assert_eq(pool, SIMKUBE_WHOLE, "is %d at %lld", (int)pool, (long long)g);
    return g;
}

static const char *at(const cJSON *json, const char *a, const char *b)
{
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(json, a);
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(inner, b));
    return text ? text : "";
}

const char *kworld_annotation(const char *part, const char *name)
{
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(
        simkube_find(kworld.kube, part, 0), "metadata");
    return at(meta, "annotations", name);
}

const char *kworld_holder(void)
{
    return at(simkube_find(kworld.kube, KWORLD_LEASE, 0), "spec",
              "holderIdentity");
}

void kworld_assert_told(void)
{
    char hash[17];
    int64_t g;
    cr_assert_eq(simkube_pool(kworld.kube, "h", hash, &g), SIMKUBE_WHOLE);
    cr_assert_str_eq(kworld_annotation(KWORLD_NODE, KUBE_OBJECTS_TOPOLOGY),
                     hash);
}

void kworld_edit_spec(const char *part, size_t n)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(
        simkube_find(kworld.kube, part, n), "spec");
    cJSON *device = cJSON_GetArrayItem(
        cJSON_GetObjectItemCaseSensitive(spec, "devices"), 0);
    cJSON_ReplaceItemInObjectCaseSensitive(device, "name",
                                           cJSON_CreateString("nic-other"));
    kworld.foreign = true;
    simkube_touch(kworld.kube, part, n);
}

void kworld_set_generation(const char *part, double value)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(
        simkube_find(kworld.kube, part, 0), "spec");
    cJSON *pool = cJSON_GetObjectItemCaseSensitive(spec, "pool");
    cJSON_ReplaceItemInObjectCaseSensitive(pool, "generation",
                                           cJSON_CreateNumber(value));
    kworld.foreign = true;
    simkube_touch(kworld.kube, part, 0);
}

void kworld_add_foreign(const char *name)
{
    struct publish_request rq = {
        .method = "POST", .path = PUBLISH_COLLECTION, .body = STR_INIT(4096)};
    struct http_answer a = {.body = STR_INIT(4096)};
    str_addf(&rq.body,
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":"
             "\"xpu.biga.dev\",\"nodeName\":\"h\",\"pool\":{\"name\":"
             "\"h\",\"generation\":1,\"resourceSliceCount\":7}}}",
             name);
    kworld.foreign = true;
    simkube_call(kworld.kube, &rq, &a);
    cr_assert_eq(a.status, 201);
    str_fini(&rq.body);
    str_fini(&a.body);
}
