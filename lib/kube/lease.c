#include "lib/kube/lease.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/jwrite.h"

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

void kube_lease_write(const struct kube_lease *lease, const char *owner_node,
                      const char *owner_uid, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "coordination.k8s.io/v1");
    jwrite_text(out, "kind", "Lease");
    jwrite_object(out, "metadata");
    jwrite_text(out, "name", lease->name);
    jwrite_known_text(out, "namespace", lease->namespace);
    jwrite_known_text(out, "resourceVersion", lease->resource_version);
    jwrite_known_text(out, "uid", lease->uid);
    if (lease->generation > 0)
        str_addf(out,
                 ",\"annotations\":{\"" KUBE_LEASE_GENERATION "\":\"%" PRId64
                 "\"}",
                 lease->generation);
    if (owner_node) {
        jwrite_array(out, "ownerReferences");
        jwrite_object(out, NULL);
        jwrite_text(out, "apiVersion", "v1");
        jwrite_text(out, "kind", "Node");
        jwrite_text(out, "name", owner_node);
        jwrite_text(out, "uid", owner_uid ? owner_uid : "");
        jwrite_end_object(out);
        jwrite_end_array(out);
    }
    jwrite_end_object(out);
    jwrite_object(out, "spec");
    jwrite_known_text(out, "holderIdentity", lease->holder);
    if (lease->duration_s > 0)
        jwrite_int(out, "leaseDurationSeconds", lease->duration_s);
    if (lease->transitions > 0)
        jwrite_int(out, "leaseTransitions", lease->transitions);
    jwrite_known_text(out, "acquireTime", lease->acquired);
    jwrite_known_text(out, "renewTime", lease->renewed);
    jwrite_end_object(out);
    jwrite_end_object(out);
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
