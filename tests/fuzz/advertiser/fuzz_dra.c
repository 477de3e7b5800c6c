/* What a kubelet asks, what the API server says of a claim, and what a record
 * says: what is taken obeys the caps, may be part of a path, and is the same
 * when it is written and read again. */
#include <assert.h>
#include <string.h>

#include "advertiser/dra/dra_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct dra_record *r)
{
    assert(dra_uid_is_good(r->uid));
    assert(dra_name_is_good(r->namespace) && dra_name_is_good(r->name));
    assert(r->n_devices <= DRA_DEVICES_MAX);
    for (size_t i = 0; i < r->n_devices; i++) {
        assert(dra_name_is_good(r->devices[i].device));
        assert(!strchr(r->devices[i].request, '/'));
    }
}

static void check_again(const struct dra_record *r)
{
    cleanup_str struct str out = STR_INIT(DRA_RECORD_MAX);
    cleanup_with(dra_record) struct dra_record *again = NULL;
    struct error err = {0};
    check_record(r);
    if (r->n_devices == 0)
        return;
    dra_record_write(r, &out);
    if (out.overflow)
        return;
    int e = dra_record_parse(str_text(&out), out.size, &again, &err);
    assert(e == 0 && dra_record_equal(r, again));
}

static int try_claim(const char *data, size_t size, struct error *err)
{
    cleanup_with(dra_record) struct dra_record *r = NULL;
    int e = dra_record_of_claim(data, size, &r, err);
    if (e == 0)
        check_again(r);
    return e;
}

static int try_record(const char *data, size_t size, struct error *err)
{
    cleanup_with(dra_record) struct dra_record *r = NULL;
    int e = dra_record_parse(data, size, &r, err);
    if (e == 0) {
        assert(r->n_devices > 0);
        check_again(r);
    }
    return e;
}

static int try_refs(const char *data, size_t size, struct error *err)
{
    cleanup_free struct dra_ref *refs = NULL;
    size_t n = 0;
    int e = dra_read_refs((struct proto_bytes){data, size}, &refs, &n, err);
    assert(e < 0 || n <= DRA_CLAIMS_MAX);
    for (size_t i = 0; e == 0 && i < n; i++) {
        cleanup_str struct str out = STR_INIT(DRA_MESSAGE_MAX);
        assert(memchr(refs[i].uid, '\0', sizeof refs[i].uid));
        assert(memchr(refs[i].name, '\0', sizeof refs[i].name));
        assert(memchr(refs[i].namespace, '\0', sizeof refs[i].namespace));
        dra_write_prepared(refs[i].uid, NULL, refs[i].name, true, &out);
        assert(!out.overflow);
    }
    return e;
}

static int try_registered(const char *data, size_t size, struct error *err)
{
    bool registered;
    struct error why = {0};
    return dra_read_registered((struct proto_bytes){data, size}, &registered,
                               &why, err);
}

/* The first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const all[])(const char *, size_t, struct error *) = {
        try_claim, try_record, try_refs, try_registered};
    struct error err = {0};
    if (size < 1)
        return 0;
    int e = all[data[0] % ARRAY_LEN(all)]((const char *)data + 1, size - 1,
                                          &err);
    assert(e == 0 || e == -EINVAL || e == -EPROTO || e == -E2BIG);
    assert(e == 0 || (err.code == -e && err.text[0]));
    return 0;
}
