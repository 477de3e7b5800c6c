#include "advertiser/act/api/status_json.h"

#include "lib/base/jwrite.h"
#include "lib/io/clock.h"

const char *status_json_container_state(enum cri_container_state state)
{
    static const char *const names[] = {
        [CRI_CREATED] = "created",
        [CRI_RUNNING] = "running",
        [CRI_EXITED] = "exited",
        [CRI_UNKNOWN] = "unknown",
    };
    return (size_t)state < ARRAY_LEN(names) ? names[state] : "unknown";
}

static void add_containers(const struct act_pod_status *pod, struct str *out)
{
    jwrite_array(out, "containers");
    for (size_t i = 0; i < pod->n_containers && i < ACT_CONTAINERS_MAX; i++) {
        const struct act_container_status *c = &pod->containers[i];
        jwrite_object(out, NULL);
        jwrite_text(out, "name", c->name);
        jwrite_text(out, "state", status_json_container_state(c->state));
        jwrite_text(out, "reason", c->reason);
        jwrite_int(out, "exitCode", c->exit_code);
        jwrite_uint(out, "restarts", c->restarts);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

/* What both say of how a pod fares. */
static void add_state(const struct act_pod_status *pod, struct str *out)
{
    jwrite_text(out, "uid", pod->uid);
    jwrite_text(out, "state", act_state_name(pod->state));
    jwrite_bool(out, "ready", pod->ready);
    jwrite_text(out, "reason", pod->reason);
    jwrite_text(out, "message", pod->message);
    jwrite_uint(out, "attempt", pod->attempt);
    jwrite_text(out, "address", pod->address);
    jwrite_bool(out, "ran", pod->ran);
    add_containers(pod, out);
}

static void add_used(const struct usage_now *used, struct str *out)
{
    jwrite_object(out, "usage");
    jwrite_uint(out, "cpuMillicores", used->cpu_millicores);
    jwrite_uint(out, "memoryMib", used->memory_mib);
}

void status_json_pod(const struct act_pod_status *pod, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "namespace", pod->namespace);
    jwrite_text(out, "name", pod->name);
    jwrite_text(out, "place", pod->place);
    jwrite_text(out, "pairKey", pod->pair_key);
    jwrite_text(out, "owner", pod->owner);
    jwrite_bool(out, "held", pod->held);
    jwrite_bool(out, "stopping", pod->stopping);
    jwrite_bool(out, "stale", pod->stale);
    jwrite_uint(out, "version", pod->version);
    add_state(pod, out);
    jwrite_end_object(out);
}

void status_json_pod_report(const struct act_pod_status *pod,
                            const struct usage_now *used, struct str *out)
{
    char at[CLOCK_UTC_MAX];
    jwrite_object(out, NULL);
    add_state(pod, out);
    if (used) {
        clock_format_utc(used->at_s, at);
        add_used(used, out);
        jwrite_text(out, "at", at);
        jwrite_end_object(out);
    }
    jwrite_end_object(out);
}

/* What both say of a place. */
static void add_health(const struct act_place_status *place, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "name", place->name);
    jwrite_text(out, "health", act_health_name(place->health));
    jwrite_text(out, "reason", place->reason);
    jwrite_text(out, "runtime", place->runtime);
}

static void add_flash(const struct flasher_view *flash, struct str *out)
{
    if (flash->state == FLASHER_NONE)
        return;
    jwrite_object(out, "flash");
    jwrite_text(out, "state", flasher_state_name(flash->state));
    jwrite_int(out, "percent", flash->percent);
    jwrite_text(out, "phase", flash->phase);
    jwrite_text(out, "reason", flash->reason);
    jwrite_text(out, "message", flash->message);
    jwrite_end_object(out);
}

void status_json_place(const struct act_place_status *place, struct str *out)
{
    add_health(place, out);
    jwrite_text(out, "pci", place->pci);
    if (place->model[0])
        jwrite_text(out, "model", place->model);
    if (place->serial[0])
        jwrite_text(out, "serial", place->serial);
    jwrite_text(out, "endpoint", place->endpoint);
    jwrite_bool(out, "drained", place->drained);
    jwrite_int(out, "sinceMs", place->since_ms);
    jwrite_uint(out, "pods", place->n_pods);
    add_flash(&place->flash, out);
    jwrite_end_object(out);
}

void status_json_place_report(const struct act_place_status *place,
                              const struct usage_now *used, struct str *out)
{
    add_health(place, out);
    if (used) {
        add_used(used, out);
        jwrite_end_object(out);
    }
    jwrite_end_object(out);
}

/* What is unknown is null. */
static void add_known(struct str *out, const char *key, const char *text)
{
    jwrite_text_or_null(out, key, text[0] ? text : NULL);
}

void status_json_hardware(const struct hardware *h, struct str *out)
{
    jwrite_object(out, NULL);
    add_known(out, "driver", h->info.driver);
    add_known(out, "firmware", h->info.firmware);
    add_known(out, "firmwareStored", h->info.stored);
    add_known(out, "psid", h->info.psid);
    add_known(out, "serial", h->info.serial);
    add_known(out, "part", h->rshim.part);
    add_known(out, "chip", h->rshim.info);
    add_known(out, "mode", h->rshim.mode);
    add_known(out, "eswitch", h->eswitch);
    jwrite_int_or_null(out, "sriovVfs", h->vfs);
    jwrite_int_or_null(out, "sriovVfsMax", h->vfs_max);
    jwrite_int_or_null(out, "scalableFunctions", h->sfs);
    jwrite_end_object(out);
}

void status_json_object(const struct act_object *object, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "kind", object->sandbox ? "sandbox" : "container");
    jwrite_text(out, "id", object->id);
    jwrite_text(out, "sandboxId", object->sandbox_id);
    jwrite_bool(out, "ours", object->ours);
    jwrite_bool(out, "known", object->known);
    jwrite_text(out, "namespace", object->namespace);
    jwrite_text(out, "pod", object->pod);
    jwrite_text(out, "uid", object->uid);
    jwrite_text(out, "container", object->container);
    jwrite_text(out, "state", object->state);
    jwrite_uint(out, "attempt", object->attempt);
    jwrite_end_object(out);
}
