/* from_remote_private - what from_remote.c (statuses), from_remote_list.c,
 * from_remote_object.c and from_remote_made.c share. */
#ifndef BIGA_ROUTER_WIRE_FROM_REMOTE_PRIVATE_H
#define BIGA_ROUTER_WIRE_FROM_REMOTE_PRIVATE_H

#include "router/wire/edit.h"
#include "router/wire/fields.h"
#include "router/wire/from_remote.h"

/* Of a sandbox `container` is NULL. */
struct object {
    const struct known_sandbox *sandbox;
    const struct known_container *container;
};

/* The id that a message of this kind says it is about: PodSandboxStatus,
 * PodSandbox, ContainerStatus, Container and the attributes of stats. */
int from_remote_take_id(enum fields_message m, struct proto_bytes message,
                        char ret_id[FROM_REMOTE_ID_SIZE + 1],
                        struct error *err);
/* Append the fields of such a message, which was checked, as the kubelet is to
 * have them; what belongs to its identity is the object's. */
int from_remote_add_object(enum fields_message m, struct proto_bytes message,
                           const struct object *o, struct str *out,
                           struct error *err);
/* A container's status within its sandbox's; one that is not known, or of
 * another sandbox, is left out. */
int from_remote_add_container(const struct proto_field *status,
                              const struct known *known,
                              const struct known_sandbox *sandbox,
                              struct str *out, struct error *err);

/* Append labels, annotations and mounts of what was kept; 0: not that. */
struct made_numbers {
    uint32_t labels, annotations, mounts;
};
void from_remote_add_made(struct proto_bytes made,
                          const struct made_numbers *numbers, struct str *out);

#endif
