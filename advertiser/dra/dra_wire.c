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
