#include "advertiser/act/api/status_json.h"

#include <inttypes.h>

static void add_text(struct str *out, const char *name, const char *value)
{
    str_addf(out, "\"%s\":", name);
    str_add_json(out, value);
    str_add_c(out, ',');
}

static void add_flag(struct str *out, const char *name, bool value)
{
    str_addf(out, "\"%s\":%s,", name, value ? "true" : "false");
}

const char *status_json_container_state(enum cri_container_state state)
{
    switch (state) {
    case CRI_CREATED:
        return "created";
    case CRI_RUNNING:
        return "running";
    case CRI_EXITED:
        return "exited";
    case CRI_UNKNOWN:
        break;
    }
    return "unknown";
}

static void add_containers(const struct act_pod_status *pod, struct str *out)
{
    str_add(out, "\"containers\":[");
    for (size_t i = 0; i < pod->n_containers && i < ACT_CONTAINERS_MAX; i++) {
        const struct act_container_status *c = &pod->containers[i];
        str_add(out, i ? ",{" : "{");
        add_text(out, "name", c->name);
        add_text(out, "state", status_json_container_state(c->state));
        add_text(out, "reason", c->reason);
        str_addf(out, "\"exitCode\":%" PRId32 ",\"restarts\":%" PRIu32 "}",
                 c->exit_code, c->restarts);
    }
    str_add_c(out, ']');
}

/* What both say of how a pod fares. */
static void add_state(const struct act_pod_status *pod, struct str *out)
{
    add_text(out, "uid", pod->uid);
    add_text(out, "state", act_state_name(pod->state));
    add_flag(out, "ready", pod->ready);
    add_text(out, "reason", pod->reason);
    add_text(out, "message", pod->message);
    str_addf(out, "\"attempt\":%" PRIu32 ",", pod->attempt);
    add_text(out, "address", pod->address);
    add_flag(out, "ran", pod->ran);
}

void status_json_pod(const struct act_pod_status *pod, struct str *out)
{
    str_add_c(out, '{');
    add_text(out, "namespace", pod->namespace);
    add_text(out, "name", pod->name);
    add_text(out, "place", pod->place);
    add_text(out, "pairKey", pod->pair_key);
    add_text(out, "owner", pod->owner);
    add_flag(out, "held", pod->held);
    add_flag(out, "stopping", pod->stopping);
    add_flag(out, "stale", pod->stale);
    str_addf(out, "\"version\":%" PRIu64 ",", pod->version);
    add_state(pod, out);
    add_containers(pod, out);
    str_add_c(out, '}');
}

void status_json_pod_report(const struct act_pod_status *pod, struct str *out)
{
    str_add_c(out, '{');
    add_state(pod, out);
    add_containers(pod, out);
    str_add_c(out, '}');
}

/* What both say of a place. */
static void add_health(const struct act_place_status *place, struct str *out)
{
    str_add_c(out, '{');
    add_text(out, "name", place->name);
    add_text(out, "health", act_health_name(place->health));
    add_text(out, "reason", place->reason);
    str_add(out, "\"runtime\":");
    str_add_json(out, place->runtime);
}

void status_json_place(const struct act_place_status *place, struct str *out)
{
    add_health(place, out);
    str_add_c(out, ',');
    add_text(out, "pci", place->pci);
    add_text(out, "endpoint", place->endpoint);
    add_flag(out, "drained", place->drained);
    str_addf(out, "\"sinceMs\":%" PRId64 ",\"pods\":%" PRIu32 "}",
             place->since_ms, place->n_pods);
}

void status_json_place_report(const struct act_place_status *place,
                              struct str *out)
{
    add_health(place, out);
    str_add_c(out, '}');
}

void status_json_object(const struct act_object *object, struct str *out)
{
    str_add_c(out, '{');
    add_text(out, "kind", object->sandbox ? "sandbox" : "container");
    add_text(out, "id", object->id);
    add_text(out, "sandboxId", object->sandbox_id);
    add_flag(out, "ours", object->ours);
    add_flag(out, "known", object->known);
    add_text(out, "namespace", object->namespace);
    add_text(out, "pod", object->pod);
    add_text(out, "uid", object->uid);
    add_text(out, "container", object->container);
    add_text(out, "state", object->state);
    str_addf(out, "\"attempt\":%" PRIu32 "}", object->attempt);
}
