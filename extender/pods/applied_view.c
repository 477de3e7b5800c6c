#include "extender/pods/applied_view.h"

#include <inttypes.h>
#include <string.h>

#include "extender/pods/applied_uid.h"
#include "extender/pods/pod_labels.h"
#include "lib/base/jwrite.h"
#include "lib/base/text.h"
#include "lib/io/clock.h"
#include "model/pod/demand_ident.h"

const struct allocation *pod_place(const struct applied_pod *p,
                                   const struct snapshot *s)
{
    const struct allocation *a = alloc_index_find(s->allocations, p->namespace,
                                                  p->name);
    return a && !a->held && strcmp(a->demand.uid, p->uid) == 0 ? a : NULL;
}

enum pod_state pod_state_shown(const struct applied_pod *p,
                               const struct allocation *place)
{
    enum pod_state state = p->status->state;
    /* that it was then removed from its node is no news of how it ended */
    if (p->end && state == POD_STATE_GONE)
        return p->ended;
    if (!p->end && state == POD_STATE_FAILED &&
        pod_status_has_succeeded(p->status))
        return POD_STATE_RUNNING; /* not failed, which a job would be, too */
    return state == POD_STATE_PENDING && place ? POD_STATE_WANTED : state;
}

/* Where a pod is, and what is said of it. */
struct shown {
    const struct allocation *place;
    bool ready;
    const char *reason; /* the status's, or what is to be said besides */
    char message[APPLIED_MESSAGE_MAX + 1];
};

/* Its node says nothing any more: what is known of the pod may be otherwise.
 * One that is heard, and lacks some of its topology, says how its pods are. */
static bool is_silent(const struct allocation *place, const struct snapshot *s)
{
    int32_t index = snapshot_find(s, place->node, strlen(place->node));
    return index == NODE_NONE ||
           node_status_is_silent(snapshot_node(s, (size_t)index)->status);
}

static struct shown show(const struct applied_pod *p, const struct snapshot *s)
{
    struct shown v = {.place = pod_place(p, s),
                      .ready = p->status->ready,
                      .reason = p->status->reason};
    bool silent = v.place && !p->end && is_silent(v.place, s);
    memcpy(v.message, p->status->message, sizeof v.message);
    if (silent)
        v.ready = false;
    if (*v.reason)
        return v;
    v.reason = silent ? "NodeSilent" : p->deleting ? "Deleting" : "";
    if (silent)
        (void)snprintf(v.message, sizeof v.message,
                       "nothing is heard from node %.253s, and this is as it "
                       "was last known: see to its biga-advertiser",
                       v.place->node);
    return v;
}

/* --- JSON -------------------------------------------------------------------- */

static void add_containers(const struct pod_status *s, struct str *out)
{
    jwrite_array(out, "containers");
    for (size_t i = 0; i < s->n_containers; i++) {
        const struct pod_container *c = &s->containers[i];
        jwrite_object(out, NULL);
        jwrite_text(out, "name", c->name);
        jwrite_text(out, "state", c->state);
        jwrite_int(out, "exitCode", c->exit_code);
        jwrite_uint(out, "restarts", c->restarts);
        jwrite_text(out, "reason", c->reason);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* What a list is chosen and ordered by, as far as it is known. */
static void add_metadata(const struct applied_pod *p, struct str *out)
{
    const struct jtext labels = pod_labels_find(p->json, p->size);
    int64_t submitted_s = applied_uid_time_s(p->uid);
    char when[CLOCK_UTC_MAX];
    if (labels.size) {
        jwrite_key(out, "labels");
        str_add_n(out, labels.data, labels.size);
    }
    if (submitted_s <= 0)
        return;
    clock_format_utc(submitted_s, when);
    jwrite_text(out, "submitted", when);
}

void pod_view(const struct applied_pod *p, const struct snapshot *snapshot,
              bool whole, struct str *out)
{
    const struct shown v = show(p, snapshot);
    const struct pod_status *s = p->status;
    const struct demand_ident ident = {.namespace = p->namespace,
                                       .name = p->name,
                                       .uid = p->uid,
                                       .job = p->demand.job,
                                       .role = p->demand.role,
                                       .pair = p->demand.pair};
    jwrite_object(out, NULL);
    demand_ident_write(&ident, out);
    jwrite_text_or_null(out, "node", v.place ? v.place->node : NULL);
    allocation_encode_devices(v.place, out);
    jwrite_text(out, "state", pod_state_name(pod_state_shown(p, v.place)));
    jwrite_bool(out, "ready", v.ready);
    jwrite_uint(out, "restarts", pod_status_restarts(s));
    jwrite_uint(out, "attempt", s->attempt);
    jwrite_text(out, "reason", v.reason);
    jwrite_text(out, "message", v.message);
    jwrite_text(out, "address", s->address);
    jwrite_bool(out, "deleting", p->deleting);
    jwrite_bool(out, "ended", p->end != NULL);
    add_metadata(p, out);
    if (whole) {
        add_containers(s, out);
        jwrite_uint(out, "graceSeconds", p->grace_s);
        jwrite_uint(out, "number", p->number);
        jwrite_key(out, "pod");
        str_add_n(out, p->json, p->size);
    }
    jwrite_end_object(out);
}

static void add_keys(const struct applied_config *c, struct str *out)
{
    size_t bytes = 0;
    jwrite_array(out, "keys");
    for (size_t i = 0; i < c->n_entries; i++) {
        jwrite_text(out, NULL, c->entries[i].key);
        bytes += c->entries[i].size;
    }
    jwrite_end_array(out);
    jwrite_uint(out, "bytes", bytes);
}

void config_view(const struct applied_config *c, bool whole, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", c->secret ? "Secret" : "ConfigMap");
    jwrite_text(out, "namespace", c->namespace);
    jwrite_text(out, "name", c->name);
    add_keys(c, out);
    if (whole && !c->secret) {
        jwrite_key(out, "configMap");
        str_add_n(out, c->json, c->size);
    }
    jwrite_end_object(out);
}

/* --- tables -------------------------------------------------------------------- */

const char *const pod_view_heads[] = {"POD",      "ROLE",   "NODE",
                                      "CARDS",    "STATE",  "READY",
                                      "RESTARTS", "REASON", NULL};
const char *const config_view_heads[] = {"KIND", "NAME", "KEYS", "BYTES", NULL};
static const char *const container_heads[] = {"CONTAINER", "STATE",  "EXIT",
                                              "RESTARTS",  "REASON", NULL};

static void add_cards(const struct allocation *place, struct str *out)
{
    for (size_t i = 0; place && i < place->n_cards; i++)
        str_addf(out, "%s%s", i ? "," : "", place->cards[i]);
    if (!place || place->n_cards == 0)
        str_add_c(out, '-');
}

void pod_view_row(const struct applied_pod *p, const struct snapshot *snapshot,
                  struct table *t)
{
    const struct shown v = show(p, snapshot);
    cleanup_str struct str cards = STR_INIT(4096);
    add_cards(v.place, &cards);
    table_addf(t, "%s/%s", p->namespace, p->name);
    table_add(t, pod_role_name(p->demand.role));
    table_add(t, v.place ? v.place->node : "-");
    table_add(t, str_text(&cards));
    table_add(t, pod_state_name(pod_state_shown(p, v.place)));
    table_add(t, v.ready ? "yes" : "no");
    table_addf(t, "%" PRIu32, pod_status_restarts(p->status));
    table_add(t, *v.reason ? v.reason : "-");
}

void pod_view_text(const struct applied_pod *p, const struct snapshot *snapshot,
                   struct str *out)
{
    const struct shown v = show(p, snapshot);
    const struct pod_status *s = p->status;
    struct table t;
    table_init(&t, pod_view_heads);
    pod_view_row(p, snapshot, &t);
    table_write_text(&t, out);
    table_fini(&t);
    if (*v.message) {
        cleanup_str struct str clean = STR_INIT(4096);
        text_clean(v.message, &clean);
        str_addf(out, "\n%s\n", str_text(&clean));
    }
    if (s->n_containers == 0)
        return;
    table_init(&t, container_heads);
    for (size_t i = 0; i < s->n_containers; i++) {
        const struct pod_container *c = &s->containers[i];
        table_add(&t, c->name);
        table_add(&t, c->state);
        table_addf(&t, "%" PRId32, c->exit_code);
        table_addf(&t, "%" PRIu32, c->restarts);
        table_add(&t, *c->reason ? c->reason : "-");
    }
    str_add_c(out, '\n');
    table_write_text(&t, out);
    table_fini(&t);
}

void config_view_row(const struct applied_config *c, struct table *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->n_entries; i++)
        bytes += c->entries[i].size;
    table_add(t, c->secret ? "Secret" : "ConfigMap");
    table_addf(t, "%s/%s", c->namespace, c->name);
    table_addf(t, "%zu", c->n_entries);
    table_addf(t, "%zu", bytes);
}
