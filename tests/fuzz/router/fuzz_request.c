/* Requests of a kubelet: what is read of them has its caps, and what is of a
 * filter can be asked. */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "router/wire/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t max)
{
    assert(text && strlen(text) <= max);
    assert(proto_is_text((struct proto_bytes){text, strlen(text)}));
}

static void check_mounts(const struct request *r)
{
    static const char *const allowed[] = {"/srv"};
    static const struct mount_rules rules = {"/var/lib/kubelet", allowed, 1};
    assert(r->container.n_mounts <= MOUNT_MAX);
    for (size_t i = 0; i < r->container.n_mounts; i++) {
        struct mount m = r->container.mounts[i];
        struct error err = {0};
        int e = mount_judge(&rules, r->pod.uid, &m, &err);
        assert(e == 0 || (err.code == -e && err.text[0]));
        if (e < 0)
            continue;
        assert(!strstr(m.host_path, "/../"));
        assert(m.kind != MOUNT_HOST_PATH || !m.below);
        /* it is the pod's own, or is allowed */
        if (m.kind != MOUNT_HOST_PATH)
            assert(*r->pod.uid && strstr(m.host_path, r->pod.uid));
        else
            assert(strstr(m.host_path, "srv"));
    }
}

static void check_more(const struct method *m, struct proto_bytes message,
                       struct request *r)
{
    struct error err = {0};
    int e = request_read_more(m, message, r, &err);
    assert(e == 0 || (e == -EPROTO || e == -EINVAL));
    assert(e == 0 || (err.code == -e && err.text[0]));
    if (e < 0)
        return;
    check_text(r->pod.uid, REQUEST_TEXT_MAX);
    check_text(r->pod.allocation, REQUEST_ALLOCATION_MAX);
    check_text(r->pod.log_directory, REQUEST_TEXT_MAX);
    check_text(r->container.name, REQUEST_TEXT_MAX);
    check_mounts(r);
}

/* The first byte chooses the call. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request r;
    struct error err = {0};
    if (size < 1)
        return 0;
    const struct method *m = method_get(data[0] % METHOD_COUNT);
    struct proto_bytes message = {(const char *)data + 1, size - 1};
    int e = request_read(m, message, &r, &err);
    assert(e == 0 || ((e == -EPROTO || e == -EINVAL) && err.code == -e));
    if (e < 0)
        return 0;
    check_text(r.id, CRI_ID_MAX);
    check_text(r.handler, REQUEST_TEXT_MAX);
    check_text(r.image, REQUEST_TEXT_MAX);
    check_text(r.allocation, REQUEST_ALLOCATION_MAX);
    assert(r.filter.labels.n <= REQUEST_LABELS_MAX);
    const struct list_item item = {"0a", "0b", message};
    (void)request_filter_passes(&r.filter, m, &item); /* either may be */
    check_more(m, message, &r);
    request_fini(&r);
    return 0;
}
