/* What a call of the kubelet is about. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "router/wire/request.h"
#include "tests/lib/router/criwire.h"

static int read_it(enum method_id id, const struct str *m, struct request *ret,
                   struct error *err)
{
    return request_read(method_get(id), criwire_of(m), ret, err);
}

Test(request, by_id)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        const struct method *m = method_get((enum method_id)i);
        cleanup_str struct str bytes = STR_INIT(1024);
        cleanup_request struct request r = {0};
        struct error err = {0};
        if (m->key != METHOD_BY_SANDBOX && m->key != METHOD_BY_CONTAINER)
            continue;
        proto_add_text(&bytes, 1, CRIWIRE_ID);
        proto_add_varint(&bytes, 2, 1);
        proto_add_text(&bytes, 77, "\xff");
        cr_assert_eq(request_read(m, criwire_of(&bytes), &r, &err), 0, "%s",
                     err.text);
        cr_expect_str_eq(r.id, CRIWIRE_ID);
        cr_expect_eq(r.verbose, m->id == METHOD_POD_SANDBOX_STATUS ||
                                    m->id == METHOD_CONTAINER_STATUS);
        cr_expect_str_eq(r.pod.uid, "");
    }
}

/* The home's own business: it says itself what is wrong. */
Test(request, looks_no_further_than_the_key)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    proto_add_text(&m, CRI_RunPodSandboxRequest_config, "\xff\xff");
    proto_add_text(&m, CRI_RunPodSandboxRequest_runtime_handler, "runc");
    cr_assert_eq(read_it(METHOD_RUN_POD_SANDBOX, &m, &r, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(r.handler, "runc");
    cr_expect_eq(request_read_more(method_get(METHOD_RUN_POD_SANDBOX),
                                   criwire_of(&m), &r, &err),
                 -EPROTO);
    cr_expect(strstr(err.text, "RunPodSandbox: PodSandboxConfig"), "%s",
              err.text);
}

Test(request, of_a_sandbox)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    criwire_run(&m, "xpu");
    cr_assert_eq(read_it(METHOD_RUN_POD_SANDBOX, &m, &r, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(r.handler, "xpu");
    cr_expect_not(r.pod.present);
    cr_assert_eq(request_read_more(method_get(METHOD_RUN_POD_SANDBOX),
                                   criwire_of(&m), &r, &err),
                 0, "%s", err.text);
    cr_expect(r.pod.present);
    cr_expect_not(r.container.present);
    cr_expect_str_eq(r.pod.namespace, "ns");
    cr_expect_str_eq(r.pod.name, "p");
    cr_expect_str_eq(r.pod.uid, "u-1");
    cr_expect_eq(r.pod.attempt, 2);
    cr_expect_str_eq(r.pod.hostname, "p");
    cr_expect_str_eq(r.pod.log_directory, "/var/log/pods/ns_p_u-1");
    cr_expect_str_eq(r.pod.allocation, "{}");
    cr_expect_not(r.pod.host_network);
}

Test(request, of_a_container)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    criwire_create(&m);
    cr_assert_eq(read_it(METHOD_CREATE_CONTAINER, &m, &r, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(r.id, CRIWIRE_ID);
    cr_assert_eq(request_read_more(method_get(METHOD_CREATE_CONTAINER),
                                   criwire_of(&m), &r, &err),
                 0, "%s", err.text);
    cr_expect_str_eq(r.pod.uid, "u-1");
    cr_expect_str_eq(r.container.name, "c");
    cr_expect_eq(r.container.attempt, 3);
    cr_expect_str_eq(r.container.image, "sha256:1");
    cr_expect_str_eq(r.container.user_image, "busybox");
    cr_expect_str_eq(r.container.log_path, "c/3.log");
    cr_assert_eq(r.container.n_mounts, 3);
    cr_expect_str_eq(r.container.mounts[1].container_path, "/config");
    cr_expect_str_eq(r.container.mounts[1].host_path,
                     "/var/lib/kubelet/pods/u-1/volumes/"
                     "kubernetes.io~configmap/c");
    cr_expect_not(r.container.mounts[1].read_only);
}

Test(request, of_an_image)
{
    cleanup_str struct str m = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    size_t spec = proto_open(&m, CRI_PullImageRequest_image);
    proto_add_text(&m, CRI_ImageSpec_image, "busybox");
    proto_add_pair(&m, CRI_ImageSpec_annotations, "biga.dev/allocation", "{1}");
    proto_add_text(&m, CRI_ImageSpec_runtime_handler, "xpu");
    proto_close(&m, spec);
    criwire_config(&m, CRI_PullImageRequest_sandbox_config);
    cr_assert_eq(read_it(METHOD_PULL_IMAGE, &m, &r, &err), 0, "%s", err.text);
    cr_expect_str_eq(r.image, "busybox");
    cr_expect_str_eq(r.handler, "xpu");
    cr_expect_str_eq(r.allocation, "{1}");
    cr_expect_eq(request_read_more(method_get(METHOD_PULL_IMAGE),
                                   criwire_of(&m), &r, &err),
                 0, "%s", err.text);
    cr_expect_str_eq(r.pod.name, "p");
}

static void add_filter(struct str *m)
{
    size_t filter = proto_open(m, 1);
    proto_add_text(m, CRI_ContainerFilter_id, "01");
    size_t state = proto_open(m, CRI_ContainerFilter_state);
    proto_add_varint(m, CRI_ContainerStateValue_state, 1);
    proto_close(m, state);
    proto_add_text(m, CRI_ContainerFilter_pod_sandbox_id, "fe");
    proto_add_pair(m, CRI_ContainerFilter_label_selector, "k", "v");
    proto_add_pair(m, CRI_ContainerFilter_label_selector, "l", "");
    proto_close(m, filter);
}

Test(request, filters)
{
    cleanup_str struct str m = STR_INIT(1 << 16), item = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    const struct method *list = method_get(METHOD_LIST_CONTAINERS);
    add_filter(&m);
    cr_assert_eq(read_it(METHOD_LIST_CONTAINERS, &m, &r, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(r.filter.id, "01");
    cr_expect_str_eq(r.filter.sandbox_id, "fe");
    cr_expect(r.filter.has_state);
    cr_expect_eq(r.filter.state, 1);
    cr_expect_eq(r.filter.labels.n, 2);
    proto_add_varint(&item, CRI_Container_state, 1);
    proto_add_pair(&item, CRI_Container_labels, "k", "v");
    struct list_item it = {CRIWIRE_ID, CRIWIRE_OTHER, criwire_of(&item)};
    cr_expect_not(request_filter_passes(&r.filter, list, &it), "no label l");
    proto_add_pair(&item, CRI_Container_labels, "l", "");
    it.message = criwire_of(&item);
    cr_expect(request_filter_passes(&r.filter, list, &it));
    it.id = CRIWIRE_OTHER;
    cr_expect_not(request_filter_passes(&r.filter, list, &it), "its id");
    it.id = CRIWIRE_ID;
    it.sandbox_id = CRIWIRE_ID;
    cr_expect_not(request_filter_passes(&r.filter, list, &it), "sandbox's id");
    it.sandbox_id = CRIWIRE_OTHER;
    proto_add_varint(&item, CRI_Container_state, 2);
    it.message = criwire_of(&item);
    cr_expect_not(request_filter_passes(&r.filter, list, &it), "its state");
}

/* Of stats, labels are among the attributes. */
Test(request, filters_stats)
{
    cleanup_str struct str m = STR_INIT(1 << 16), item = STR_INIT(1 << 16);
    cleanup_request struct request r = {0};
    struct error err = {0};
    const struct method *list = method_get(METHOD_STREAM_CONTAINER_STATS);
    size_t filter = proto_open(&m, 1);
    proto_add_text(&m, CRI_ContainerStatsFilter_pod_sandbox_id, CRIWIRE_ID);
    proto_add_pair(&m, CRI_ContainerStatsFilter_label_selector, "k", "v");
    proto_close(&m, filter);
    cr_assert_eq(read_it(METHOD_STREAM_CONTAINER_STATS, &m, &r, &err), 0);
    struct list_item it = {CRIWIRE_OTHER, CRIWIRE_ID, criwire_of(&item)};
    cr_expect_not(request_filter_passes(&r.filter, list, &it));
    size_t attributes = proto_open(&item, CRI_ContainerStats_attributes);
    proto_add_pair(&item, CRI_ContainerAttributes_labels, "k", "v");
    proto_close(&item, attributes);
    it.message = criwire_of(&item);
    cr_expect(request_filter_passes(&r.filter, list, &it));
    it.sandbox_id = CRIWIRE_OTHER;
    cr_expect_not(request_filter_passes(&r.filter, list, &it));
}

Test(request, no_filter_passes_all)
{
    cleanup_request struct request r = {0};
    struct str empty = {0};
    struct error err = {0};
    struct list_item it = {CRIWIRE_ID, CRIWIRE_ID, {"", 0}};
    cr_assert_eq(read_it(METHOD_LIST_POD_SANDBOX, &empty, &r, &err), 0);
    cr_expect(request_filter_passes(&r.filter,
                                    method_get(METHOD_LIST_POD_SANDBOX), &it));
    cr_expect_not(
        request_filter_passes(&r.filter, method_get(METHOD_VERSION), &it));
}

Test(request, has_caps)
{
    static char large[REQUEST_ALLOCATION_MAX + 2];
    cleanup_str struct str m = STR_INIT(1 << 20);
    struct request r = {0};
    struct error err = {0};
    memset(large, 'a', sizeof large - 1);
    proto_add_text(&m, 1, large);
    cr_expect_eq(read_it(METHOD_STOP_CONTAINER, &m, &r, &err), -EINVAL);
    cr_expect(strstr(err.text, "StopContainer: id: has 16385 bytes"), "%s",
              err.text);
    str_reset(&m);
    size_t spec = proto_open(&m, 1);
    proto_add_pair(&m, CRI_ImageSpec_annotations, "biga.dev/allocation", large);
    proto_close(&m, spec);
    cr_expect_eq(read_it(METHOD_IMAGE_STATUS, &m, &r, &err), -EINVAL);
    str_reset(&m);
    size_t filter = proto_open(&m, 1);
    for (int i = 0; i <= REQUEST_LABELS_MAX; i++)
        proto_add_pair(&m, CRI_ContainerFilter_label_selector, "k", "v");
    proto_close(&m, filter);
    cr_expect_eq(read_it(METHOD_LIST_CONTAINERS, &m, &r, &err), -EINVAL);
    str_reset(&m);
    proto_add_text(&m, 1, "\xff");
    cr_expect_eq(read_it(METHOD_EXEC, &m, &r, &err), -EINVAL);
    str_add_c(&m, '\x0a');
    cr_expect_eq(read_it(METHOD_EXEC, &m, &r, &err), -EPROTO);
}
