/* What is written into a pod whose gate is opened. */
#include "extender/gate/gate_open.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/str.h"

static struct gate_pod *pod_create(const char *json)
{
    struct gate_pod *p = xcalloc(1, sizeof *p);
    struct error err = {0};
    p->refs = 1;
    cr_assert_eq(pod_needs_read(json, strlen(json), &p->needs, &err), 0, "%s",
                 err.text);
    return p;
}

static struct gate_placed placed_on(struct gate_pod *pod)
{
    static char allocation[] = "{\"node\":\"n1\"}";
    struct gate_placed p = {
        .pod = pod, .demand.uid = "u1", .node = "n1", .allocation = allocation};
    return p;
}

#define METADATA                                                              \
    "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"biga.dev/allocation\":" \
    "\"{\\\"node\\\":\\\"n1\\\"}\"}},"

Test(gate_open, pins_it_and_opens_it)
{
    cleanup_with(gate_pod) struct gate_pod *pod = pod_create("{\"spec\":{}}");
    struct gate_placed p = placed_on(pod);
    cleanup_str struct str out = STR_INIT(65536);
    gate_open_write(&p, true, &out);
    cr_expect_str_eq(
        str_text(&out),
        METADATA "\"spec\":{\"schedulingGates\":null,\"affinity\":{"
                 "\"nodeAffinity\":{"
                 "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                 "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":"
                 "\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]"
                 "}]}}}}}");
    str_reset(&out);
    gate_open_write(&p, false, &out);
    cr_expect_str_eq(str_text(&out),
                     METADATA "\"spec\":{\"schedulingGates\":null}}");
}

/* The API server lets it only become narrower. */
Test(gate_open, keeps_the_affinity_that_it_has)
{
    cleanup_with(gate_pod) struct gate_pod *pod = pod_create(
        "{\"spec\":{\"affinity\":{\"nodeAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"zone\","
        "\"operator\":\"In\",\"values\":[\"a\"]}]}]}}}}}");
    struct gate_placed p = placed_on(pod);
    cleanup_str struct str out = STR_INIT(65536);
    gate_open_write(&p, true, &out);
    cr_expect(strstr(str_text(&out), "\"key\":\"zone\""), "%s", str_text(&out));
    cr_expect(strstr(str_text(&out), "\"metadata.name\""), "%s",
              str_text(&out));
}

Test(gate_open, refuses_to_move_what_is_bound)
{
    cleanup_with(gate_pod) struct gate_pod *pod = pod_create("{\"spec\":{}}");
    struct gate_placed p = placed_on(pod);
    cleanup_str struct str out = STR_INIT(65536);
    gate_reopen_write(&p, &out);
    cr_expect_str_eq(str_text(&out),
                     "{\"metadata\":{\"uid\":\"u1\","
                     "\"annotations\":{\"biga.dev/allocation\":\"{\\\"node\\\":"
                     "\\\"n1\\\"}\"}},\"spec\":{\"nodeName\":null}}");
}
