/* pci - PCI addresses as text. */
#ifndef BIGA_MODEL_TOPO_PCI_H
#define BIGA_MODEL_TOPO_PCI_H

#include <stdint.h>

#include "lib/base/error.h"

struct pci_addr {
    uint32_t domain; /* may exceed 0xffff (VMD and other virtual domains) */
    uint8_t bus, device, function;
};
enum { PCI_ADDR_TEXT_MAX = 18 };
/* "0000:17:00.0", lower case. */
void pci_addr_format(const struct pci_addr *addr,
                     char ret_text[PCI_ADDR_TEXT_MAX]);
/* Reads "0000:17:00.0" or "17:00.0", either case. 0 or -EINVAL. */
int pci_addr_parse(const char *text, struct pci_addr *ret_addr,
                   struct error *err);
int pci_addr_compare(const struct pci_addr *a, const struct pci_addr *b);

#endif
