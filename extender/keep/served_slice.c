#include "extender/keep/served_slice.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jscan.h"

/* A uid that depends on the name alone: RFC 9562, version 8. */
static void write_uid(struct str *out, const char *name)
{
    uint64_t a = hash_bytes(name, strlen(name));
    uint64_t b = hash_mix(a ^ UINT64_C(0x6a09e667f3bcc909),
                          UINT64_C(0xbb67ae8584caa73b));
    str_addf(out, "\"%08x-%04x-8%03x-%04x-%012llx\"", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
             (unsigned)(b >> 48 & 0x3fff) | 0x8000U,
             (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

static bool is_server_set(const struct jtext *key)
{
    return jtext_is(key, "resourceVersion") || jtext_is(key, "uid") ||
           jtext_is(key, "creationTimestamp") || jtext_is(key, "managedFields");
}

static void write_metadata(struct jscan *s, const struct served_slice *slice,
                           struct str *out)
{
    struct jtext key, value;
    str_addf(out, "{\"resourceVersion\":\"%llu\",\"uid\":",
             (unsigned long long)slice->resource_version);
    write_uid(out, slice->name);
    (void)jscan_object(s);
    while (jscan_member(s, &key)) {
        if (!jscan_raw(s, &value) || is_server_set(&key))
            continue;
        str_add(out, ",\"");
        str_add_n(out, key.data, key.size);
        str_add(out, "\":");
        str_add_n(out, value.data, value.size);
    }
    str_add_c(out, '}');
}

void served_slice_write(struct str *out, const struct served_slice *slice)
{
    struct jscan s;
    struct jtext key, value;
    const char *comma = "";
    jscan_init(&s, slice->json, slice->size);
    str_add_c(out, '{');
    (void)jscan_object(&s);
    while (jscan_member(&s, &key)) {
        str_add(out, comma);
        str_add_c(out, '"');
        str_add_n(out, key.data, key.size);
        str_add(out, "\":");
        comma = ",";
        if (jtext_is(&key, "metadata"))
            write_metadata(&s, slice, out);
        else if (jscan_raw(&s, &value))
            str_add_n(out, value.data, value.size);
    }
    str_add_c(out, '}');
}
