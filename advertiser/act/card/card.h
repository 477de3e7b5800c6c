/* card - where pods run: a card of this node, or the host itself; how its
 * runtime is reached, and what it is called. */
#ifndef BIGA_ADVERTISER_ACT_CARD_CARD_H
#define BIGA_ADVERTISER_ACT_CARD_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/grpc/grpc.h"
#include "model/topo/device_set.h"
#include "model/topo/hugepages.h"
#include "model/topo/topo.h"

enum {
    ACT_NAME_MAX = 253,
    ACT_UID_MAX = 63,
    ACT_REASON_MAX = 63,   /* "ImageMissing" */
    ACT_MESSAGE_MAX = 512, /* for a person */
    ACT_GLOBS_MAX = 8,     /* of one set of devices */
    ACT_GLOB_MAX = 63,     /* bytes of each */
};

#define ACT_GLOB_CHARS "*?[" /* a path with one of them is a pattern */
/* Devices of a card, which pods there get by this name. */
struct act_device_set {
    char name[DEVICE_SET_NAME_MAX + 1];
    uint32_t share; /* pods that may have it at one time */
    size_t n_globs;
    char globs[ACT_GLOBS_MAX][ACT_GLOB_MAX + 1]; /* paths below /dev, also with
                                                  * *, ? and [a-f] */
    struct hugepages hugepages; /* the most that such a pod may use */
    bool ipc_lock;              /* its containers may have IPC_LOCK */
};

#define ACT_HOST "host" /* the name of the place that is the host */
/* Where pods run.  `name` is the card's id ("card-0000-17-00") or "host". */
struct act_place {
    char name[ACT_NAME_MAX + 1];
    char pci[PCI_ADDR_TEXT_MAX]; /* "" for the host */
    char model[TOPO_TEXT_MAX + 1], serial[TOPO_TEXT_MAX + 1]; /* "" unknown */
    char arch[16];      /* as in image manifests; "" unknown */
    char endpoint[256]; /* "" : no runtime is known: no pod can come to
                                  * a card, and what runs there is as lost; the
                                  * host's pods are run by somebody else, and
                                  * count as running when the others of their
                                  * pair are ready */
    char ca[1024], cert[1024], key[1024];
    int64_t files_ns; /* when one of the three was written last: with another
                       * value the connection is made anew */
    bool plaintext;
    struct act_device_set sets[DEVICE_SETS_MAX];
    size_t n_sets;
    struct grpc_counts *counts; /* of calls to its runtime; NULL: nobody
                                 * counts */
};
/* NULL: it has no such set. */
const struct act_device_set *card_set(const struct act_place *place,
                                      const char *name);
/* What all of its sets give together. */
void card_sets_hugepages(const struct act_place *place,
                         struct hugepages *ret_all);
/* Its runtime sees our own file system. */
bool card_is_host(const struct act_place *place);
/* The host of its endpoint tcp://HOST:PORT, version 6 without brackets; "" of
 * another one. */
void card_host(const struct act_place *place, char ret_host[ACT_NAME_MAX + 1]);
/* The configuration of a connection; `place` must outlive it. */
struct grpc_config card_grpc(const struct act_place *place);

#endif
