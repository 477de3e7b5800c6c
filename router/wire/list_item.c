#include "router/wire/list_item.h"

#include "lib/base/mem.h"

static const struct list_form sandboxes = {
    .item = CRI_PodSandbox,
    .filter = CRI_PodSandboxFilter,
    .attributes = CRI_Nothing,
    .item_state = CRI_PodSandbox_state,
    .item_labels = CRI_PodSandbox_labels,
    .filter_state = CRI_PodSandboxFilter_state,
    .filter_labels = CRI_PodSandboxFilter_label_selector,
};
static const struct list_form containers = {
    .item = CRI_Container,
    .filter = CRI_ContainerFilter,
    .attributes = CRI_Nothing,
    .item_state = CRI_Container_state,
    .item_labels = CRI_Container_labels,
    .filter_state = CRI_ContainerFilter_state,
    .filter_sandbox = CRI_ContainerFilter_pod_sandbox_id,
    .filter_labels = CRI_ContainerFilter_label_selector,
};
static const struct list_form container_stats = {
    .item = CRI_ContainerStats,
    .filter = CRI_ContainerStatsFilter,
    .attributes = CRI_ContainerAttributes,
    .item_attributes = CRI_ContainerStats_attributes,
    .item_labels = CRI_ContainerAttributes_labels,
    .filter_sandbox = CRI_ContainerStatsFilter_pod_sandbox_id,
    .filter_labels = CRI_ContainerStatsFilter_label_selector,
};
static const struct list_form sandbox_stats = {
    .item = CRI_PodSandboxStats,
    .filter = CRI_PodSandboxStatsFilter,
    .attributes = CRI_PodSandboxAttributes,
    .item_attributes = CRI_PodSandboxStats_attributes,
    .item_labels = CRI_PodSandboxAttributes_labels,
    .filter_labels = CRI_PodSandboxStatsFilter_label_selector,
};

const struct list_form *list_form_get(const struct method *m)
{
    switch (m->id) {
    case METHOD_LIST_POD_SANDBOX:
    case METHOD_STREAM_POD_SANDBOXES:
        return &sandboxes;
    case METHOD_LIST_CONTAINERS:
    case METHOD_STREAM_CONTAINERS:
        return &containers;
    case METHOD_LIST_CONTAINER_STATS:
    case METHOD_STREAM_CONTAINER_STATS:
        return &container_stats;
    case METHOD_LIST_POD_SANDBOX_STATS:
    case METHOD_STREAM_POD_SANDBOX_STATS:
        return &sandbox_stats;
    default:
        return NULL;
    }
}
