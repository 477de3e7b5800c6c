#include "extender/pods/applied_view.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/pods/applied_private.h"
#include "extender/state/draft.h"
#include "lib/base/mem.h"

static struct applied_pod *pod_create(void)
{
    static const char uid[] = "00000000-0000-4000-8000-000000000001";
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    cleanup_free char *json = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\","
        "\"uid\":\"%s\",\"labels\":{\"biga.dev/role\":\"host\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        uid);
    struct applied_pod *p = NULL;
    cr_assert_eq(applied_pod_create(json, strlen(json), uid, &config, &p, &err),
                 0, "%s", err.text);
    return p;
}

/* How a pod with its place on a node of that status is shown. */
static void expect_silent(enum node_status status, bool silent)
{
    cleanup_with(applied_pod) struct applied_pod *p = pod_create();
    pod_status_unref(p->status);
    p->status = pod_status_create(0);
    p->status->state = POD_STATE_RUNNING;
    p->status->ready = true;

    cleanup_with(snapshot) struct snapshot *empty = snapshot_create_empty();
    struct draft *draft = draft_create(empty);
    draft_put_node(draft, &(struct node_update){.name = "n0",
                                                .status = NODE_INCOMPLETE,
                                                .hash = "",
                                                .n_slices = 1,
                                                .pool_count = 2});
    draft_set_status(draft, "n0", status);
    draft_allocate(draft, allocation_create(&p->demand, "n0"));
    cleanup_with(snapshot) struct snapshot *s = draft_commit(draft);

    cleanup_str struct str out = STR_INIT(65536);
    pod_view(p, s, false, &out);
    cr_expect(
        strstr(str_text(&out), silent ? "\"ready\":false" : "\"ready\":true"),
        "%s: %s", node_status_name(status), str_text(&out));
    cr_expect_eq(strstr(str_text(&out), "NodeSilent") != NULL, silent, "%s: %s",
                 node_status_name(status), str_text(&out));
}

Test(applied_view, says_that_its_node_is_silent)
{
    expect_silent(NODE_READY, false);
    expect_silent(NODE_STALE, true);
    expect_silent(NODE_LOST, true);
    expect_silent(NODE_INCOMPLETE, false); /* it is heard */
}

/* Its node tells one that has exited as failed, however it has. */
Test(applied_view, what_has_ended_well_is_never_shown_as_failed)
{
    static const struct {
        const char *reason, *state;
        int32_t exit_code;
        enum pod_state shown;
    } cases[] = {
        {"Completed", "exited", 0, POD_STATE_RUNNING},
        {"", "exited", 0, POD_STATE_RUNNING},
        {"", "exited", 3, POD_STATE_FAILED},
        {"", "running", 0, POD_STATE_FAILED},
        {"SandboxLost", "exited", 0, POD_STATE_FAILED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_with(applied_pod) struct applied_pod *p = pod_create();
        pod_status_unref(p->status);
        struct pod_status *s = p->status = pod_status_create(1);
        s->state = POD_STATE_FAILED;
        (void)snprintf(s->reason, sizeof s->reason, "%s", cases[i].reason);
        (void)snprintf(s->containers[0].state, sizeof s->containers[0].state,
                       "%s", cases[i].state);
        s->containers[0].exit_code = cases[i].exit_code;
        cr_expect_eq(pod_state_shown(p, NULL), cases[i].shown, "%zu", i);
    }
}
