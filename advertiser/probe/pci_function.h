/* pci_function - how a PCI function is set up now, as /sys tells: its link, its
 * eswitch, its virtual functions. */
#ifndef BIGA_ADVERTISER_PROBE_PCI_FUNCTION_H
#define BIGA_ADVERTISER_PROBE_PCI_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

enum { PCI_FUNCTION_TEXT_SIZE = 16 };

struct pci_function {
    char
        link[PCI_FUNCTION_TEXT_SIZE]; /* "up", "down" …; "" no network device */
    char mode[PCI_FUNCTION_TEXT_SIZE]; /* "switchdev", "legacy"; "" not told */
    uint32_t link_mbps;                /* 0 unknown, or the link is down */
    uint16_t vfs, vfs_max;             /* 0 of 0: it can have none */
    bool is_virtual;                   /* it is one itself */
};

/* `sysroot` is of the /sys, "" for /; `interface` may be "".  Blocks for a
 * driver to answer.  Never fails: what cannot be read is unknown. */
void pci_function_read(const char *sysroot, const char *pci,
                       const char *interface, struct pci_function *ret_look);

#endif
