#include "lib/kube/lease.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"

static void take(struct reader *r, const char *name, char *ret_text, size_t cap)
{
    const char *text = reader_opt_string(r, name, cap - 1);
    (void)snprintf(ret_text, cap, "%s", text ? text : "");
}

/* The annotation; what is no number of at most 16 digits counts as absent. */
static int64_t read_generation(const cJSON *annotations)
{
    const char *text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(annotations, KUBE_LEASE_GENERATION));
    int64_t n = 0;
    size_t size = text ? strspn(text, "0123456789") : 0;
    if (size == 0 || size > 16 || text[size])
        return 0;
    for (size_t i = 0; i < size; i++)
        n = n * 10 + (text[i] - '0');
    return n;
}

static int read_spec(const cJSON *json, struct kube_lease *lease,
                     struct error *err)
{
    struct reader r;
    reader_init(&r, json, "spec", err);
    take(&r, "holderIdentity", lease->holder, sizeof lease->holder);
    take(&r, "acquireTime", lease->acquired, sizeof lease->acquired);
    take(&r, "renewTime", lease->renewed, sizeof lease->renewed);
    lease->duration_s = (int32_t)reader_opt_int(&r, "leaseDurationSeconds", 0,
                                                INT32_MAX, 0);
    lease->transitions = (int32_t)reader_opt_int(&r, "leaseTransitions", 0,
                                                 INT32_MAX, 0);
    return reader_finish_lenient(&r);
}

int kube_lease_read(const char *json, size_t size, struct kube_lease *ret_lease,
                    struct error *err)
{
    cleanup_with(json) cJSON *tree = NULL;
    struct kube_lease lease = {0};
    struct reader r, meta;
    int rc = json_parse(json, size, &tree, err);
    if (rc < 0)
        return rc;
    reader_init(&r, tree, "", err);
    const cJSON *metadata = reader_object(&r, "metadata");
    const cJSON *spec = reader_opt_object(&r, "spec");
    if ((rc = reader_finish_lenient(&r)) < 0)
        return rc;
    reader_init(&meta, metadata, "metadata", err);
    take(&meta, "namespace", lease.namespace, sizeof lease.namespace);
    take(&meta, "name", lease.name, sizeof lease.name);
    take(&meta, "resourceVersion", lease.resource_version,
         sizeof lease.resource_version);
    take(&meta, "uid", lease.uid, sizeof lease.uid);
    lease.generation = read_generation(reader_opt_object(&meta, "annotations"));
    if (!meta.failed && !lease.name[0])
        (void)reader_fail(&meta, "name", "required member missing");
    if ((rc = reader_finish_lenient(&meta)) < 0)
        return rc;
    if (spec && (rc = read_spec(spec, &lease, err)) < 0)
        return rc;
    *ret_lease = lease;
    return 0;
}

/* `,"name":"text"` unless the text is "". */
static void add_text(struct str *out, const char *name, const char *text)
{
    if (!*text)
        return;
    str_addf(out, ",\"%s\":", name);
    str_add_json(out, text);
}

static void add_number(struct str *out, const char *name, int32_t value)
{
    if (value > 0)
        str_addf(out, ",\"%s\":%d", name, value);
}

void kube_lease_write(const struct kube_lease *lease, const char *owner_node,
                      const char *owner_uid, struct str *out)
{
    str_add(out,
            "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
            "\"metadata\":{\"name\":");
    str_add_json(out, lease->name);
    add_text(out, "namespace", lease->namespace);
    add_text(out, "resourceVersion", lease->resource_version);
    add_text(out, "uid", lease->uid);
    if (lease->generation > 0)
        str_addf(out,
                 ",\"annotations\":{\"" KUBE_LEASE_GENERATION "\":\"%" PRId64
                 "\"}",
                 lease->generation);
    if (owner_node) {
        str_add(out, ",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                     "\"kind\":\"Node\",\"name\":");
        str_add_json(out, owner_node);
        str_add(out, ",\"uid\":");
        str_add_json(out, owner_uid ? owner_uid : "");
        str_add(out, "}]");
    }
    cleanup_str struct str spec = STR_INIT(4096);
    add_text(&spec, "holderIdentity", lease->holder);
    add_number(&spec, "leaseDurationSeconds", lease->duration_s);
    add_number(&spec, "leaseTransitions", lease->transitions);
    add_text(&spec, "acquireTime", lease->acquired);
    add_text(&spec, "renewTime", lease->renewed);
    str_addf(out, "},\"spec\":{%s}}", spec.size ? spec.data + 1 : "");
}

void kube_lease_time(int64_t unix_us, char ret_text[40])
{
    static const time_t year_9999_s = 253402300799;
    struct tm tm;
    if (unix_us < 0)
        unix_us = 0;
    time_t seconds = (time_t)(unix_us / 1000000);
    if (seconds > year_9999_s)
        seconds = year_9999_s;
    (void)gmtime_r(&seconds, &tm); /* cannot fail within these years */
    (void)snprintf(ret_text, 40, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
                   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                   tm.tm_min, tm.tm_sec, (int)(unix_us % 1000000));
}
