#include "advertiser/dra/dra_record.h"

#include <string.h>

#include "lib/base/jrow.h"
#include "lib/base/jwrite.h"

void dra_record_destroy(struct dra_record *r)
{
    if (!r)
        return;
    free(r->devices);
    free(r);
}

bool dra_uid_is_good(const char *uid)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t size = strspn(uid, allowed);
    return size > 0 && size <= DRA_UID_MAX && !uid[size] && *uid != '-';
}

bool dra_name_is_good(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    size_t size = strspn(name, allowed);
    return size > 0 && !name[size] && !strchr("-.", *name) &&
           !strchr("-.", name[size - 1]);
}

void dra_cdi_id(const char *uid, const char *device,
                char ret_id[DRA_CDI_ID_MAX])
{
    (void)snprintf(ret_id, DRA_CDI_ID_MAX, DRA_CDI_KIND "=%s-%s", uid, device);
}

/* --- reading -------------------------------------------------------------- */

struct reading {
    struct dra_record *record;
    struct dra_device now; /* a device of a file */
    char driver[DRA_NAME_MAX + 1];
    char uid[DRA_UID_MAX + 1];
    char namespace[DRA_NAMESPACE_MAX + 1];
    char name[DRA_NAME_MAX + 1];
    char pod_claim[DRA_POD_CLAIM_MAX + 1];
    int64_t version;
};

static void keep_device(struct jscan *s, struct reading *r)
{
    struct dra_record *record = r->record;
    if (record->n_devices == DRA_DEVICES_MAX) {
        jscan_fail(s, "more devices than a claim may have", jscan_offset(s));
        return;
    }
    r->now.request[strcspn(r->now.request, "/")] = '\0';
    record->devices[record->n_devices++] = r->now;
}

static void read_admin(struct jscan *s, void *to)
{
    struct reading *r = to;
    (void)jscan_bool(s, &r->now.admin); /* a fault sticks */
}

static void read_part(struct jscan *s, void *to)
{
    struct reading *r = to;
    (void)jscan_bool(s, &r->now.part); /* a fault sticks */
}

/* Those of other drivers are passed over. */
static void read_result(struct jscan *s, void *to)
{
    static const struct jrow consumed[] = {
        JROW("biga.dev/cores", JROW_LAX, jrow_copy, struct reading, now.cores),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW("request", JROW_STRICT, jrow_fit, struct reading, now.request),
        JROW("driver", JROW_STRICT, jrow_fit, struct reading, driver),
        JROW("pool", JROW_STRICT, jrow_fit, struct reading, now.pool),
        JROW("device", JROW_STRICT, jrow_fit, struct reading, now.device),
        JROW("shareID", JROW_NULLABLE, jrow_fit, struct reading, now.share),
        JROW_CALL("adminAccess", JROW_NULLABLE, JKIND_TRUE, read_admin),
        JROW_OBJECT("consumedCapacity", JROW_NULLABLE, consumed),
        JROW_END,
    };
    struct reading *r = to;
    memset(&r->now, 0, sizeof r->now);
    r->driver[0] = '\0';
    if (!jrow_read(s, JROW_STRICT, rows, r))
        return;
    if (strcmp(r->driver, DRA_DRIVER) == 0)
        keep_device(s, r);
}

static void read_allocation(struct jscan *s, void *to)
{
    static const struct jrow devices[] = {
        JROW_EACH("results", JROW_NULLABLE, read_result),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW_OBJECT("devices", JROW_NULLABLE, devices),
        JROW_END,
    };
    struct reading *r = to;
    r->record->allocated = true;
    (void)jrow_read(s, JROW_STRICT, rows, r); /* a fault sticks */
}

/* Written by Kubernetes to claims that are made of a template. */
static const struct jrow annotation_rows[] = {
    JROW("resource.kubernetes.io/pod-claim-name", JROW_LAX, jrow_copy,
         struct reading, pod_claim),
    JROW_END,
};

static const struct jrow name_rows[] = {
    JROW("uid", JROW_STRICT, jrow_fit, struct reading, uid),
    JROW("namespace", JROW_STRICT, jrow_fit, struct reading, namespace),
    JROW("name", JROW_STRICT, jrow_fit, struct reading, name),
    JROW_OBJECT("annotations", JROW_NULLABLE, annotation_rows),
    JROW_END,
};

static struct dra_record *create(void)
{
    struct dra_record *r = xcalloc(1, sizeof *r);
    r->devices = xcalloc(DRA_DEVICES_MAX, sizeof *r->devices);
    return r;
}

/* What becomes a path or a name of others is one. */
static int check(const struct dra_record *r, struct error *err)
{
    if (!dra_uid_is_good(r->uid))
        return error_set(err, EINVAL,
                         "uid: is \"%s\", must be 1 to %d letters, digits and "
                         "'-'",
                         r->uid, DRA_UID_MAX);
    if (!dra_name_is_good(r->namespace) || !dra_name_is_good(r->name))
        return error_set(err, EINVAL,
                         "namespace and name: are \"%s\" and \"%s\", must be "
                         "names",
                         r->namespace, r->name);
    for (size_t i = 0; i < r->n_devices; i++)
        if (!dra_name_is_good(r->devices[i].device))
            return error_set(err, EINVAL, "device: is \"%s\", must be a name",
                             r->devices[i].device);
    return 0;
}

/* What was read becomes the record, which takes no more than it needs. */
static int finish(struct reading *from, struct error *err)
{
    struct dra_record *r = from->record;
    memcpy(r->uid, from->uid, sizeof r->uid);
    memcpy(r->namespace, from->namespace, sizeof r->namespace);
    memcpy(r->name, from->name, sizeof r->name);
    if (dra_name_is_good(from->pod_claim))
        memcpy(r->pod_claim, from->pod_claim, sizeof r->pod_claim);
    r->devices = xrealloc(r->devices, r->n_devices ? r->n_devices : 1,
                          sizeof *r->devices);
    return check(r, err);
}

int dra_record_of_claim(const char *json, size_t size,
                        struct dra_record **ret_record, struct error *err)
{
    static const struct jrow status[] = {
        JROW_CALL("allocation", JROW_NULLABLE, JKIND_OBJECT, read_allocation),
        JROW_END,
    };
    static const struct jrow rows[] = {
        JROW_OBJECT("metadata", JROW_STRICT, name_rows),
        JROW_OBJECT("status", JROW_NULLABLE, status),
        JROW_END,
    };
    cleanup_with(dra_record) struct dra_record *r = create();
    struct reading reading = {.record = r};
    struct jscan s;
    jscan_init_kube(&s, json, size);
    int e = jrow_parse(&s, JROW_STRICT, rows, &reading, err);
    if (e == 0)
        e = finish(&reading, err);
    if (e < 0)
        return error_wrap(err, "ResourceClaim");
    *ret_record = steal(&r);
    return 0;
}

static void read_device(struct jscan *s, void *to)
{
    static const struct jrow rows[] = {
        JROW("request", JROW_STRICT, jrow_fit, struct reading, now.request),
        JROW("pool", JROW_STRICT, jrow_fit, struct reading, now.pool),
        JROW("device", JROW_STRICT, jrow_fit, struct reading, now.device),
        JROW("share", JROW_STRICT, jrow_fit, struct reading, now.share),
        JROW_CALL("admin", JROW_STRICT, JKIND_NONE, read_admin),
        JROW_CALL("part", JROW_STRICT, JKIND_NONE, read_part),
        JROW("function", JROW_STRICT, jrow_fit, struct reading, now.function),
        JROW_END,
    };
    struct reading *r = to;
    memset(&r->now, 0, sizeof r->now);
    if (jrow_read(s, JROW_STRICT, rows, r))
        keep_device(s, r);
}

int dra_record_parse(const char *json, size_t size,
                     struct dra_record **ret_record, struct error *err)
{
    static const struct jrow rows[] = {
        JROW("version", JROW_STRICT, jrow_int64, struct reading, version),
        JROW("uid", JROW_STRICT, jrow_fit, struct reading, uid),
        JROW("namespace", JROW_STRICT, jrow_fit, struct reading, namespace),
        JROW("name", JROW_STRICT, jrow_fit, struct reading, name),
        JROW("pod-claim", JROW_STRICT, jrow_fit, struct reading, pod_claim),
        JROW_EACH("devices", JROW_STRICT, read_device),
        JROW_END,
    };
    cleanup_with(dra_record) struct dra_record *r = create();
    struct reading reading = {.record = r};
    struct jscan s;
    jscan_init(&s, json, size);
    int e = jrow_parse(&s, JROW_STRICT, rows, &reading, err);
    if (e == 0 && reading.version != 1)
        e = error_set(err, EINVAL, "version: is %lld, must be 1",
                      (long long)reading.version);
    if (e == 0)
        e = finish(&reading, err);
    if (e == 0 && r->n_devices == 0)
        e = error_set(err, EINVAL, "devices: there is none");
    if (e < 0)
        return e;
    r->allocated = true;
    *ret_record = steal(&r);
    return 0;
}

/* --- writing -------------------------------------------------------------- */

void dra_record_write(const struct dra_record *r, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_int(out, "version", 1);
    jwrite_text(out, "uid", r->uid);
    jwrite_text(out, "namespace", r->namespace);
    jwrite_text(out, "name", r->name);
    jwrite_text(out, "pod-claim", r->pod_claim);
    jwrite_array(out, "devices");
    for (size_t i = 0; i < r->n_devices; i++) {
        const struct dra_device *d = &r->devices[i];
        jwrite_object(out, NULL);
        jwrite_text(out, "request", d->request);
        jwrite_text(out, "pool", d->pool);
        jwrite_text(out, "device", d->device);
        jwrite_text(out, "share", d->share);
        jwrite_bool(out, "admin", d->admin);
        if (d->part) { /* a program of before would not know it */
            jwrite_bool(out, "part", true);
            jwrite_text(out, "function", d->function);
        }
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    str_add_c(out, '\n');
}

bool dra_record_equal(const struct dra_record *a, const struct dra_record *b)
{
    bool same = strcmp(a->uid, b->uid) == 0 &&
                strcmp(a->namespace, b->namespace) == 0 &&
                strcmp(a->name, b->name) == 0 &&
                strcmp(a->pod_claim, b->pod_claim) == 0 &&
                a->n_devices == b->n_devices;
    for (size_t i = 0; i < a->n_devices && same; i++) {
        const struct dra_device *x = &a->devices[i], *y = &b->devices[i];
        same = strcmp(x->request, y->request) == 0 &&
               strcmp(x->pool, y->pool) == 0 &&
               strcmp(x->device, y->device) == 0 &&
               strcmp(x->share, y->share) == 0 && x->admin == y->admin &&
               x->part == y->part &&
               (!x->part || strcmp(x->function, y->function) == 0);
    }
    return same;
}
