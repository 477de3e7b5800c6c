/* What the router adds to the home's replies: nothing of the home's is lost,
 * and one message is never more than a kubelet takes. */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/fields.h"
#include "router/wire/told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(struct proto_bytes message, uint32_t number)
{
    struct proto_reader r;
    struct proto_field f;
    size_t n = 0;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0)
        n += number == 0 || f.number == number;
    return n;
}

static size_t handlers_named(struct proto_bytes message, const char *name)
{
    struct proto_reader r;
    struct proto_field f, found;
    size_t n = 0;
    proto_reader_init(&r, message);
    while (proto_next(&r, &f, NULL) > 0) {
        if (f.number != CRI_StatusResponse_runtime_handlers)
            continue;
        bool has = proto_find(f.bytes, CRI_RuntimeHandler_name, PROTO_BYTES,
                              &found, NULL) > 0;
        n += has ? proto_equals(found.bytes, name) : !*name;
    }
    return n;
}

static void try_status(struct proto_bytes home)
{
    cleanup_str struct str out = {.max = TOLD_MAX, .soft = true};
    struct error err = {0};
    int e = told_status(home, "xpu", &out, &err);
    assert(e == 0 || (err.code == -e && err.text[0]));
    if (e < 0)
        return;
    struct proto_bytes told = {out.data, out.size};
    assert(handlers_named(told, "xpu") == 1);
    assert(handlers_named(told, "") >= 1);
    enum { HANDLERS = CRI_StatusResponse_runtime_handlers };
    assert(count(told, 0) - count(told, HANDLERS) ==
           count(home, 0) - count(home, HANDLERS));
}

/* The home's bytes, then two remotes, one with the bytes as its item. */
static void try_list(const struct method *m, struct proto_bytes in)
{
    cleanup_str struct str out = {.max = TOLD_MAX, .soft = true};
    const struct request_filter all = {.id = "", .sandbox_id = ""};
    struct error err = {0};
    const size_t sizes[] = {2 * told_list_size(in.size), 0};
    struct told_list l = {.method = m, .filter = &all, .out = &out};
    const struct list_item item = {"a", "a", in};
    int e = told_list_begin(&l, in, sizes, 2, &err);
    assert(e == 0 || e == -EMSGSIZE || e == -ENOMEM);
    if (e < 0)
        return;
    told_list_remote(&l);
    told_list_add(&l, &item);
    told_list_add(&l, &item);
    told_list_remote(&l);
    assert(out.size <= TOLD_MAX && out.size >= in.size);
    assert(in.size == 0 || memcmp(out.data, in.data, in.size) == 0);
    if (list_form_get(m) && !l.n_left_out)
        assert(out.size >= 3 * in.size);
}

/* The first byte chooses the list. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct proto_bytes in = {(const char *)data + 1, size - 1};
    try_status(in);
    try_list(method_get(data[0] % METHOD_COUNT), in);
    return 0;
}
