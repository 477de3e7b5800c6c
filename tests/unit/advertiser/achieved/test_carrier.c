/* Which request is due when, and what its answer means. */
#include "advertiser/achieved/carrier.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/log.h"

enum { AGAIN_MS = 5000, MIN_MS = 100, MAX_MS = 1000 };

struct rig {
    struct carrier *c;
    struct publish_request rq;
    int64_t now;
};

static void rig_init(struct rig *r, const char *namespace)
{
    const struct carrier_config config = {.node = "h",
                                          .namespace = namespace,
                                          .again_ms = AGAIN_MS,
                                          .backoff_min_ms = MIN_MS,
                                          .backoff_max_ms = MAX_MS};
    log_set_level(LOG_ERROR);
    *r = (struct rig){.c = carrier_create(&config, 1),
                      .rq = {.body = STR_INIT(CARRIER_BODY_MAX)}};
}

static void rig_fini(struct rig *r)
{
    carrier_destroy(r->c);
    str_fini(&r->rq.body);
}

static void tell(struct rig *r, const char *report)
{
    carrier_tell(r->c, report, strlen(report), r->now);
}

/* It is due now, and is answered so. */
static void expect(struct rig *r, const char *method, const char *path,
                   const char *body, long status, const char *answer)
{
    cr_assert(carrier_next(r->c, r->now, &r->rq), "%s %s", method, path);
    cr_expect_str_eq(r->rq.method, method);
    cr_expect_str_eq(r->rq.path, path);
    cr_expect_str_eq(str_text(&r->rq.body), body);
    cr_expect_eq(r->rq.merge_patch, strcmp(method, "PATCH") == 0);
    carrier_answer(r->c, r->now,
                   &(struct publish_answer){.status = status,
                                            .body = answer,
                                            .body_size = strlen(answer)});
}

static void expect_nothing(struct rig *r)
{
    cr_expect(!carrier_next(r->c, r->now, &r->rq), "%s %s", r->rq.method,
              r->rq.path);
}

#define PATH "/v1/nodes/h/achieved"

Test(carrier, puts_what_is_new_at_once_and_the_same_again)
{
    struct rig r;
    rig_init(&r, NULL);
    cr_expect_eq(carrier_due(r.c), PUBLISH_NEVER);
    expect_nothing(&r);
    tell(&r, "a");
    expect(&r, "PUT", PATH, "a", 204, "");
    tell(&r, "a");
    expect_nothing(&r);
    r.now += 10;
    tell(&r, "b");
    expect(&r, "PUT", PATH, "b", 204, "");
    r.now += AGAIN_MS;
    expect(&r, "PUT", PATH, "b", 204, "");
    expect_nothing(&r);
    rig_fini(&r);
}

Test(carrier, tries_again_ever_more_slowly_and_then_what_is_newest)
{
    struct rig r;
    rig_init(&r, NULL);
    tell(&r, "a");
    expect(&r, "PUT", PATH, "a", 0, "");
    int64_t due = carrier_due(r.c);
    cr_expect(due >= r.now + MIN_MS / 2 && due <= r.now + MIN_MS);
    tell(&r, "b"); /* nobody would hear it */
    cr_expect_eq(carrier_due(r.c), due);
    r.now = due;
    expect(&r, "PUT", PATH, "b", 404, "");
    r.now = carrier_due(r.c);
    expect(&r, "PUT", PATH, "b", 204, "");
    cr_expect_eq(carrier_due(r.c), r.now + AGAIN_MS);
    rig_fini(&r);
}

#define MAPS "/api/v1/namespaces/biga-nodes/configmaps"
#define NODE_JSON                                                              \
    "{\"metadata\":{\"name\":\"h\",\"uid\":\"u-1\",\"resourceVersion\":\"7\"}" \
    "}"
#define OWNED                                               \
    "\"labels\":{\"biga.dev/report\":\"achieved\"},"        \
    "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":" \
    "\"Node\",\"name\":\"h\",\"uid\":\"u-1\"}]},\"data\":{\"report\":"
#define PATCHED(report) "{\"metadata\":{" OWNED "\"" report "\"}}"

Test(carrier, keeps_a_config_map_that_is_the_nodes)
{
    struct rig r;
    rig_init(&r, "biga-nodes");
    tell(&r, "{\"a\"}");
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, NODE_JSON);
    expect(&r, "PATCH", MAPS "/h", PATCHED("{\\\"a\\\"}"), 404, "");
    expect(&r, "POST", MAPS,
           "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
           "\"name\":\"h\",\"namespace\":\"biga-nodes\"," OWNED
           "\"{\\\"a\\\"}\"}}",
           201, "");
    expect_nothing(&r);
    tell(&r, "b");
    expect(&r, "PATCH", MAPS "/h", PATCHED("b"), 200, "");
    r.now += AGAIN_MS;
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, NODE_JSON);
    /* deleted, and somebody else makes one meanwhile */
    expect(&r, "PATCH", MAPS "/h", PATCHED("b"), 404, "");
    cr_assert(carrier_next(r.c, r.now, &r.rq));
    carrier_answer(r.c, r.now, &(struct publish_answer){.status = 409});
    expect(&r, "PATCH", MAPS "/h", PATCHED("b"), 200, "");
    rig_fini(&r);
}

Test(carrier, begins_anew_with_the_node_after_a_failure)
{
    struct rig r;
    rig_init(&r, "biga-nodes");
    tell(&r, "b");
    expect(&r, "GET", "/api/v1/nodes/h", "", 404, "");
    r.now = carrier_due(r.c);
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, "no json");
    r.now = carrier_due(r.c);
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, NODE_JSON);
    expect(&r, "PATCH", MAPS "/h", PATCHED("b"), 403, "");
    expect_nothing(&r);
    r.now = carrier_due(r.c);
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, NODE_JSON);
    rig_fini(&r);
}

Test(carrier, withdraws_once_what_may_be_there)
{
    struct rig r;
    rig_init(&r, NULL);
    carrier_withdraw(r.c, r.now);
    expect_nothing(&r);
    rig_fini(&r);
    rig_init(&r, NULL);
    tell(&r, "a");
    expect(&r, "PUT", PATH, "a", 0, "");
    carrier_withdraw(r.c, r.now);
    expect(&r, "PUT", PATH, "{\"node\":\"h\",\"pods\":[]}", 500, "");
    tell(&r, "b");
    cr_expect_eq(carrier_due(r.c), PUBLISH_NEVER);
    rig_fini(&r);
    rig_init(&r, "biga-nodes");
    tell(&r, "a");
    expect(&r, "GET", "/api/v1/nodes/h", "", 200, NODE_JSON);
    expect(&r, "PATCH", MAPS "/h", PATCHED("a"), 200, "");
    carrier_withdraw(r.c, r.now);
    expect(&r, "DELETE", MAPS "/h", "", 200, "");
    cr_expect_eq(carrier_due(r.c), PUBLISH_NEVER);
    rig_fini(&r);
}
