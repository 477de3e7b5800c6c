#include "advertiser/dra/dra_wire.h"

#include <string.h>

/* --- registration --------------------------------------------------------- */

void dra_write_info(const char *name, const char *endpoint,
                    const char *const *versions, struct str *out)
{
    proto_add_text(out, 1, "DRAPlugin");
    proto_add_text(out, 2, name);
    proto_add_text(out, 3, endpoint);
    for (; *versions; versions++)
        proto_add_text(out, 4, *versions);
}

int dra_read_registered(struct proto_bytes message, bool *ret_registered,
                        struct error *ret_why, struct error *err)
{
    struct proto_field done = {0}, why = {0};
    if (proto_find(message, 1, PROTO_VARINT, &done, err) < 0 ||
        proto_find(message, 2, PROTO_BYTES, &why, err) < 0)
        return error_wrap(err, "RegistrationStatus");
    size_t size = why.bytes.size < ERROR_TEXT_MAX ? why.bytes.size
                                                  : ERROR_TEXT_MAX - 1;
    (void)error_set(ret_why, EREMOTEIO, "%.*s", (int)size,
                    size ? why.bytes.data : "");
    *ret_registered = done.value != 0;
    return 0;
}

/* --- claims --------------------------------------------------------------- */

static int take(struct proto_bytes from, const char *what, char *to,
                size_t room, bool *too_long, struct error *err)
{
    if (!proto_is_text(from))
        return error_set(err, EPROTO, "%s: is no text", what);
    size_t size = from.size < room ? from.size : room - 1;
    *too_long |= size < from.size;
    if (size > 0)
        memcpy(to, from.data, size);
    to[size] = '\0';
    return 0;
}

static int read_ref(struct proto_bytes message, struct dra_ref *ref,
                    struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    int e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0) {
        if (f.kind != PROTO_BYTES)
            continue;
        if (f.number == 1)
            e = take(f.bytes, "namespace", ref->namespace,
                     sizeof ref->namespace, &ref->too_long, err);
        else if (f.number == 2)
            e = take(f.bytes, "uid", ref->uid, sizeof ref->uid, &ref->too_long,
                     err);
        else if (f.number == 3)
            e = take(f.bytes, "name", ref->name, sizeof ref->name,
                     &ref->too_long, err);
        if (e < 0)
            return e;
    }
    return e;
}

/* How many there are, of a message that is well-formed. */
static int count_refs(struct proto_bytes message, size_t *ret_n,
                      struct error *err)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    int e;
    proto_reader_init(&r, message);
    while ((e = proto_next(&r, &f, err)) > 0)
        n += f.number == 1 && f.kind == PROTO_BYTES;
    if (e < 0)
        return e;
    if (n > DRA_CLAIMS_MAX)
        return error_set(err, E2BIG, "claims: are %zu, at most %d allowed", n,
                         DRA_CLAIMS_MAX);
    *ret_n = n;
    return 0;
}

int dra_read_refs(struct proto_bytes message, struct dra_ref **ret_refs,
                  size_t *ret_n, struct error *err)
{
    cleanup_free struct dra_ref *refs = NULL;
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0, at = 0;
    int e = count_refs(message, &n, err);
    if (e < 0)
        return e;
    refs = n ? xcalloc(n, sizeof *refs) : NULL;
    proto_reader_init(&r, message);
    while (at < n && (e = proto_next(&r, &f, err)) > 0) {
        if (f.number != 1 || f.kind != PROTO_BYTES)
            continue;
        e = read_ref(f.bytes, &refs[at], err);
        if (e < 0)
            return error_wrap(err, "claims[%zu]", at);
        at++;
    }
    *ret_refs = steal(&refs);
    *ret_n = n;
    return 0;
}

static void write_device(const struct dra_record *r, const struct dra_device *d,
                         bool shares, struct str *out)
{
    char id[DRA_CDI_ID_MAX];
    dra_cdi_id(r->uid, d->device, id);
    size_t device = proto_open(out, 1);
    proto_add_text(out, 1, d->request);
    proto_add_text(out, 2, d->pool);
    proto_add_text(out, 3, d->device);
    proto_add_text(out, 4, id);
    if (shares)
        proto_add_text(out, 5, d->share);
    proto_close(out, device);
}

/* The value stands there also when it is empty, as the kubelet wants it. */
void dra_write_prepared(const char *uid, const struct dra_record *record,
                        const char *problem, bool shares, struct str *out)
{
    size_t entry = proto_open(out, 1);
    proto_add_text(out, 1, uid);
    size_t value = proto_open(out, 2);
    for (size_t i = 0; !problem && i < record->n_devices; i++)
        write_device(record, &record->devices[i], shares, out);
    proto_add_text(out, 2, problem);
    proto_close(out, value);
    proto_close(out, entry);
}

void dra_write_unprepared(const char *uid, const char *problem, struct str *out)
{
    size_t entry = proto_open(out, 1);
    proto_add_text(out, 1, uid);
    size_t value = proto_open(out, 2);
    proto_add_text(out, 1, problem);
    proto_close(out, value);
    proto_close(out, entry);
}

/* --- health --------------------------------------------------------------- */

void dra_write_fare(const struct dra_fare *fare, struct str *out)
{
    size_t opened = proto_open(out, 1);
    size_t which = proto_open(out, 1);
    proto_add_text(out, 1, fare->pool);
    proto_add_text(out, 2, fare->device);
    proto_close(out, which);
    proto_add_varint(out, 2, (uint64_t)fare->health);
    proto_add_varint(out, 3, (uint64_t)fare->unix_s);
    proto_add_varint(out, 4, (uint64_t)fare->timeout_s);
    proto_add_text(out, 5, fare->message);
    proto_close(out, opened);
}
