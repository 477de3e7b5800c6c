/* method - the calls of CRI v1 (cri-api 0.37) and of its image service: by
 * what each says what it is about, and where it goes.  Pure.
 *
 * A call that is not in this table is the home's, like everything that is
 * newer than Biga. */
#ifndef BIGA_ROUTER_WIRE_METHOD_H
#define BIGA_ROUTER_WIRE_METHOD_H

#include <stdbool.h>
#include <stddef.h>

/* By what a request says what it is about (request.h reads it). */
enum method_key {
    METHOD_BY_NOTHING,
    METHOD_BY_HANDLER,   /* RuntimeClass handler: a sandbox is made */
    METHOD_BY_SANDBOX,   /* its id */
    METHOD_BY_CONTAINER, /* its id */
    METHOD_BY_IMAGE,     /* annotations or handler of an ImageSpec */
    METHOD_BY_FILTER,    /* of a list: none, one, or all of them */
};

/* What is done with it when it is about something of a remote. */
enum method_way {
    METHOD_HOME, /* never about a remote: relayed to the home */
    METHOD_PASS, /* the request goes there as it is; the reply is checked */
    METHOD_TRANSLATE, /* to_remote and from_remote */
    METHOD_KNOWN,     /* answered from what is known of the remote */
    METHOD_MERGE,     /* a list: the home's reply, and what is known of all
                       * remotes */
    METHOD_TELL,      /* the home's reply, with what the router adds */
    METHOD_URL,       /* the reply is a URL; lead the caller to ours */
    METHOD_SELF,      /* the router's own business; no remote is asked */
    METHOD_REFUSE,    /* not for what runs on a remote */
};

enum method_id {
    /* runtime.v1.RuntimeService */
    METHOD_VERSION,
    METHOD_RUN_POD_SANDBOX,
    METHOD_STOP_POD_SANDBOX,
    METHOD_REMOVE_POD_SANDBOX,
    METHOD_POD_SANDBOX_STATUS,
    METHOD_LIST_POD_SANDBOX,
    METHOD_STREAM_POD_SANDBOXES,
    METHOD_CREATE_CONTAINER,
    METHOD_START_CONTAINER,
    METHOD_STOP_CONTAINER,
    METHOD_REMOVE_CONTAINER,
    METHOD_LIST_CONTAINERS,
    METHOD_STREAM_CONTAINERS,
    METHOD_CONTAINER_STATUS,
    METHOD_UPDATE_CONTAINER_RESOURCES,
    METHOD_REOPEN_CONTAINER_LOG,
    METHOD_EXEC_SYNC,
    METHOD_EXEC,
    METHOD_ATTACH,
    METHOD_PORT_FORWARD,
    METHOD_CONTAINER_STATS,
    METHOD_LIST_CONTAINER_STATS,
    METHOD_STREAM_CONTAINER_STATS,
    METHOD_POD_SANDBOX_STATS,
    METHOD_LIST_POD_SANDBOX_STATS,
    METHOD_STREAM_POD_SANDBOX_STATS,
    METHOD_UPDATE_RUNTIME_CONFIG,
    METHOD_STATUS,
    METHOD_CHECKPOINT_CONTAINER,
    METHOD_CHECKPOINT_POD,
    METHOD_RESTORE_POD,
    METHOD_GET_CONTAINER_EVENTS,
    METHOD_LIST_METRIC_DESCRIPTORS,
    METHOD_LIST_POD_SANDBOX_METRICS,
    METHOD_STREAM_POD_SANDBOX_METRICS,
    METHOD_RUNTIME_CONFIG,
    METHOD_UPDATE_POD_SANDBOX_RESOURCES,
    /* runtime.v1.ImageService */
    METHOD_LIST_IMAGES,
    METHOD_STREAM_IMAGES,
    METHOD_IMAGE_STATUS,
    METHOD_PULL_IMAGE,
    METHOD_REMOVE_IMAGE,
    METHOD_IMAGE_FS_INFO,
    METHOD_COUNT
};

struct method {
    enum method_id id;
    const char *path; /* "/runtime.v1.RuntimeService/Version" */
    enum method_key key;
    enum method_way way;
    bool stream;  /* the server answers with many messages */
    bool changes; /* something is made, ended or run by it: it is audited */
};

/* By ":path"; NULL when there is none. */
const struct method *method_find(const char *path);
const struct method *method_get(enum method_id id);
/* "RunPodSandbox" */
const char *method_name(const struct method *m);

#endif
