#include "router/wire/method.h"

#include <string.h>

#include "lib/base/mem.h"

#define RUNTIME "/runtime.v1.RuntimeService/"
#define IMAGE "/runtime.v1.ImageService/"

#define ROW(which, service, call, by, how, ...)                    \
    [METHOD_##which] = {METHOD_##which, service call, METHOD_##by, \
                        METHOD_##how, __VA_ARGS__}
#define STREAMS .stream = true
#define CHANGES .changes = true
#define LOOKS .changes = false

static const struct method methods[METHOD_COUNT] = {
    ROW(VERSION, RUNTIME, "Version", BY_NOTHING, HOME, LOOKS),
    ROW(RUN_POD_SANDBOX, RUNTIME, "RunPodSandbox", BY_HANDLER, TRANSLATE,
        CHANGES),
    ROW(STOP_POD_SANDBOX, RUNTIME, "StopPodSandbox", BY_SANDBOX, PASS, CHANGES),
    ROW(REMOVE_POD_SANDBOX, RUNTIME, "RemovePodSandbox", BY_SANDBOX, PASS,
        CHANGES),
    ROW(POD_SANDBOX_STATUS, RUNTIME, "PodSandboxStatus", BY_SANDBOX, KNOWN,
        LOOKS),
    ROW(LIST_POD_SANDBOX, RUNTIME, "ListPodSandbox", BY_FILTER, MERGE, LOOKS),
    ROW(STREAM_POD_SANDBOXES, RUNTIME, "StreamPodSandboxes", BY_FILTER, MERGE,
        STREAMS),
    ROW(CREATE_CONTAINER, RUNTIME, "CreateContainer", BY_SANDBOX, TRANSLATE,
        CHANGES),
    ROW(START_CONTAINER, RUNTIME, "StartContainer", BY_CONTAINER, PASS,
        CHANGES),
    ROW(STOP_CONTAINER, RUNTIME, "StopContainer", BY_CONTAINER, PASS, CHANGES),
    ROW(REMOVE_CONTAINER, RUNTIME, "RemoveContainer", BY_CONTAINER, PASS,
        CHANGES),
    ROW(LIST_CONTAINERS, RUNTIME, "ListContainers", BY_FILTER, MERGE, LOOKS),
    ROW(STREAM_CONTAINERS, RUNTIME, "StreamContainers", BY_FILTER, MERGE,
        STREAMS),
    ROW(CONTAINER_STATUS, RUNTIME, "ContainerStatus", BY_CONTAINER, KNOWN,
        LOOKS),
    ROW(UPDATE_CONTAINER_RESOURCES, RUNTIME, "UpdateContainerResources",
        BY_CONTAINER, TRANSLATE, CHANGES),
    /* the kubelet's files are written here */
    ROW(REOPEN_CONTAINER_LOG, RUNTIME, "ReopenContainerLog", BY_CONTAINER, SELF,
        LOOKS),
    ROW(EXEC_SYNC, RUNTIME, "ExecSync", BY_CONTAINER, PASS, CHANGES),
    ROW(EXEC, RUNTIME, "Exec", BY_CONTAINER, URL, CHANGES),
    ROW(ATTACH, RUNTIME, "Attach", BY_CONTAINER, URL, CHANGES),
    ROW(PORT_FORWARD, RUNTIME, "PortForward", BY_SANDBOX, URL, CHANGES),
    ROW(CONTAINER_STATS, RUNTIME, "ContainerStats", BY_CONTAINER, KNOWN, LOOKS),
    ROW(LIST_CONTAINER_STATS, RUNTIME, "ListContainerStats", BY_FILTER, MERGE,
        LOOKS),
    ROW(STREAM_CONTAINER_STATS, RUNTIME, "StreamContainerStats", BY_FILTER,
        MERGE, STREAMS),
    ROW(POD_SANDBOX_STATS, RUNTIME, "PodSandboxStats", BY_SANDBOX, KNOWN,
        LOOKS),
    ROW(LIST_POD_SANDBOX_STATS, RUNTIME, "ListPodSandboxStats", BY_FILTER,
        MERGE, LOOKS),
    ROW(STREAM_POD_SANDBOX_STATS, RUNTIME, "StreamPodSandboxStats", BY_FILTER,
        MERGE, STREAMS),
    /* the range of addresses of this node's pods, which remotes' are none of */
    ROW(UPDATE_RUNTIME_CONFIG, RUNTIME, "UpdateRuntimeConfig", BY_NOTHING, HOME,
        CHANGES),
    ROW(STATUS, RUNTIME, "Status", BY_NOTHING, TELL, LOOKS),
    /* files of the home would be written by the remote, or read there */
    ROW(CHECKPOINT_CONTAINER, RUNTIME, "CheckpointContainer", BY_CONTAINER,
        REFUSE, CHANGES),
    ROW(CHECKPOINT_POD, RUNTIME, "CheckpointPod", BY_SANDBOX, REFUSE, CHANGES),
    ROW(RESTORE_POD, RUNTIME, "RestorePod", BY_HANDLER, REFUSE, CHANGES),
    ROW(GET_CONTAINER_EVENTS, RUNTIME, "GetContainerEvents", BY_NOTHING, MERGE,
        STREAMS),
    ROW(LIST_METRIC_DESCRIPTORS, RUNTIME, "ListMetricDescriptors", BY_NOTHING,
        HOME, LOOKS),
    /* Values stand there in the order of the runtime's own descriptors, and
     * the kubelet asks for those of one runtime alone. */
    ROW(LIST_POD_SANDBOX_METRICS, RUNTIME, "ListPodSandboxMetrics", BY_NOTHING,
        HOME, LOOKS),
    ROW(STREAM_POD_SANDBOX_METRICS, RUNTIME, "StreamPodSandboxMetrics",
        BY_NOTHING, HOME, STREAMS),
    ROW(RUNTIME_CONFIG, RUNTIME, "RuntimeConfig", BY_NOTHING, HOME, LOOKS),
    /* a pod's cgroup is the home's, and a remote's pod has none there */
    ROW(UPDATE_POD_SANDBOX_RESOURCES, RUNTIME, "UpdatePodSandboxResources",
        BY_SANDBOX, SELF, CHANGES),
    /* these say nothing of whose they are */
    ROW(LIST_IMAGES, IMAGE, "ListImages", BY_NOTHING, HOME, LOOKS),
    ROW(STREAM_IMAGES, IMAGE, "StreamImages", BY_NOTHING, HOME, STREAMS),
    ROW(IMAGE_STATUS, IMAGE, "ImageStatus", BY_IMAGE, TRANSLATE, LOOKS),
    ROW(PULL_IMAGE, IMAGE, "PullImage", BY_IMAGE, TRANSLATE, CHANGES),
    ROW(REMOVE_IMAGE, IMAGE, "RemoveImage", BY_NOTHING, HOME, CHANGES),
    ROW(IMAGE_FS_INFO, IMAGE, "ImageFsInfo", BY_NOTHING, HOME, LOOKS),
};

const struct method *method_find(const char *path)
{
    for (size_t i = 0; path && i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].path, path) == 0)
            return &methods[i];
    return NULL;
}

const struct method *method_get(enum method_id id)
{
    return &methods[id];
}

const char *method_name(const struct method *m)
{
    return strrchr(m->path, '/') + 1;
}
