/* wire_keys - keys of labels and annotations that the router writes on remotes,
 * and those by which the kubelet knows its own. */
#ifndef BIGA_ROUTER_WIRE_WIRE_KEYS_H
#define BIGA_ROUTER_WIRE_WIRE_KEYS_H

#define WIRE_PREFIX "biga.dev/"
/* An annotation of sandboxes and containers: what is needed to know again what
 * they are, whose form is router/keep's. */
#define WIRE_KEPT "biga.dev/kept"

/* Labels; the kubelet takes what it lists for the pod that they name. */
#define WIRE_POD_NAME "io.kubernetes.pod.name"
#define WIRE_POD_NAMESPACE "io.kubernetes.pod.namespace"
#define WIRE_POD_UID "io.kubernetes.pod.uid"
#define WIRE_CONTAINER_NAME "io.kubernetes.container.name"

/* Annotations of containers that have the runtime give them devices of its
 * machine (Container Device Interface). */
#define WIRE_CDI_PREFIX "cdi.k8s.io/"
/* What devices of cards that were claimed begin with (schema/claims.md): of the
 * host's side, which a pod on the card itself has no use for. */
#define WIRE_CARD_CDI "xpu.biga.dev/card="

#endif
