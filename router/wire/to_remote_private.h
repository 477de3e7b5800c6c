/* to_remote_private - what the files of to_remote share: to_remote.c does pods
 * and images, to_remote_container.c containers, to_remote_resources.c what
 * they may use, to_remote_security.c and _sysctl.c what they may do. */
#ifndef BIGA_ROUTER_WIRE_TO_REMOTE_PRIVATE_H
#define BIGA_ROUTER_WIRE_TO_REMOTE_PRIVATE_H

#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "router/wire/to_remote.h"

/* A pod's configuration, in the field that it is in. */
int to_remote_config(const struct proto_field *config,
                     const struct to_remote_pod *pod, struct str *out,
                     struct error *err);

/* The security context of a pod or a container: where its members are. */
struct to_remote_security {
    const struct to_remote_pod *pod;
    const char *path; /* what errors call it: "container \"c\"" */
    uint32_t namespaces, privileged, seccomp, seccomp_path, capabilities;
    uint32_t number; /* of the context */
};
/* `context` is empty when there is none: one is written all the same, because
 * it has the network. */
int to_remote_add_security(const struct to_remote_security *s,
                           struct proto_bytes context, struct str *out,
                           struct error *err);

/* 0 when a sysctl is of the pod's own namespaces there, -EINVAL when not. */
int to_remote_check_sysctl(const struct proto_field *entry,
                           const struct to_remote_pod *pod, bool host_network,
                           struct error *err);

/* LinuxContainerResources, as the field `number`. */
int to_remote_add_resources(uint32_t number, struct proto_bytes resources,
                            const struct to_remote_limits *limits,
                            struct str *out, struct error *err);

/* An image's specification, with its handler. */
int to_remote_add_image(const struct proto_field *image, const char *handler,
                        struct str *out, struct error *err);

#endif
