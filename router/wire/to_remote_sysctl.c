/* A pod's sysctls on a remote: those that are of its own namespaces there. */
#include <errno.h>
#include <string.h>

#include "router/wire/to_remote_private.h"

/* What the kernel has once for each namespace, as the kubelet names it: its
 * pkg/kubelet/sysctl/namespace.go. */
static const char *const of_ipc[] = {"kernel.sem", "kernel.shm", "kernel.msg",
                                     "fs.mqueue."};
static const char of_network[] = "net.";

static bool begins(struct proto_bytes name, const char *with)
{
    size_t size = strlen(with);
    return name.size >= size && memcmp(name.data, with, size) == 0;
}

static const char *why_not(struct proto_bytes name, bool host_network)
{
    if (begins(name, of_network))
        return host_network ? "is of a network, and the pod has that of the "
                              "remote, which biga-cri was given with --network"
                            : NULL;
    for (size_t i = 0; i < ARRAY_LEN(of_ipc); i++)
        if (begins(name, of_ipc[i]))
            return NULL;
    return "is one of the whole machine";
}

int to_remote_check_sysctl(const struct proto_field *entry,
                           const struct to_remote_pod *pod, bool host_network,
                           struct error *err)
{
    struct proto_bytes name, value;
    int e = proto_read_pair(entry->bytes, &name, &value, err);
    const char *why = e < 0 ? NULL : why_not(name, host_network);
    return why ? error_set(err, EINVAL,
                           "spec.securityContext.sysctls: \"%.*s\" %s; pods on "
                           "%s cannot have it",
                           (int)(name.size < 100 ? name.size : 100), name.data,
                           why, pod->node ? pod->node : "a remote")
               : e;
}
