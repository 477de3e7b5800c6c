/* cardfile - the operator's file: which PCI devices are cards, which are
 * not, and what cannot be discovered about them (schema/cards.md).
 *
 *     {"cards": [
 *       {"match": {"pci": "0000:17:00.0"}, "arch": "arm64", "cores": 16,
 *        "memory-mib": 32768, "fabric-port": "leaf1/7",
 *        "endpoint": "tcp://192.168.100.2:7443",
 *        "tls": {"ca": "/etc/biga/ca.pem", "cert": "/etc/biga/c.pem",
 *                "key": "/etc/biga/c.key"}},
 *       {"match": {"id": "15b3:a2d6"}, "exclude": true}]}
 *
 * An entry that matches a device which is no known card makes it one. When
 * several entries match, each member is taken from the most particular one
 * that has it: PCI address, then serial, then id; the later on a tie. The
 * most particular one alone decides whether the card is excluded. */
#ifndef BIGA_ADVERTISER_DESCRIBE_CARDFILE_H
#define BIGA_ADVERTISER_DESCRIBE_CARDFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/topo/device_set.h"
#include "model/topo/hugepages.h"
#include "model/topo/topo.h"

enum {
    CARDFILE_SIZE_MAX = 1 << 20, /* bytes */
    CARDFILE_ENTRIES_MAX = 1024,
    CARDFILE_PATH_MAX = 1023, /* bytes of a TLS file's path */
    CARDFILE_NODES_MAX = 16,  /* device nodes of one card */
    CARDFILE_NODE_MAX = 63,   /* bytes of one's path */
    CARDFILE_GLOBS_MAX = 8,   /* of one set of devices, each at most
                               * CARDFILE_NODE_MAX bytes */
    CARDFILE_SHARE_MAX = 4096,
};

/* Devices of the card itself, which pods there get by this name. */
struct cardfile_set {
    const char *name;
    uint32_t share; /* pods that may have it at one time */
    size_t n_globs;
    const char *globs[CARDFILE_GLOBS_MAX]; /* "/dev/…" of the card, where *, ?
                                            * and [a-f] are patterns */
    struct hugepages hugepages; /* the most that a pod with the set may use */
    bool ipc_lock; /* its containers may have the capability IPC_LOCK */
};

/* What to match; of the PCI device that a function belongs to. */
struct cardfile_key {
    struct pci_addr pci; /* the function number is not compared */
    uint16_t vendor_id, device_id;
    const char *serial; /* "" when unknown */
};

/* What the file says about one card; texts are borrowed from the file, ""
 * when it does not say; numbers are 0 then. */
struct cardfile_card {
    bool listed;    /* at least one entry matches */
    bool exclude;   /* not a card */
    bool set_aside; /* and, where it is a NIC, not for computing */
    const char *model, *arch, *fabric_port, *endpoint;
    const char *tls_ca, *tls_cert, *tls_key;
    bool plaintext; /* the endpoint is spoken to without TLS; tls_… are "" */
    const char *const *device_nodes; /* "/dev/…", which pods on the host get
                                      * with the card; NULL: none */
    size_t n_device_nodes;
    const struct cardfile_set *sets; /* as in the file; NULL: none */
    size_t n_sets;
    uint32_t cores;
    uint64_t memory_mib;
};

struct cardfile;
void cardfile_destroy(struct cardfile *file); /* NULL allowed */
DEFINE_CLEANUP(cardfile, struct cardfile *, cardfile_destroy)

/* Read the text or the file; strict: an unknown member is an error, and
 * every error names the path of the member ("cards[2].cores"). */
int cardfile_parse(const char *json, size_t size, struct cardfile **ret_file,
                   struct error *err);
int cardfile_load(const char *path, struct cardfile **ret_file,
                  struct error *err);

/* `file` may be NULL: nothing is listed then. */
void cardfile_find(const struct cardfile *file, const struct cardfile_key *key,
                   struct cardfile_card *ret_card);
/* Where there are devices, by the file alone: the addresses that entries match
 * by, in their order, at most `max`.  Returns how many. */
size_t cardfile_addresses(const struct cardfile *file,
                          struct pci_addr *ret_addrs, size_t max);

#endif
