/* claim_pin - a claim's spec with its devices named: one more CEL selector
 * per pinned request, and every other byte as it was.  kube-scheduler stays
 * the one that allocates.  Pure.
 *
 * A pin never raises a CEL error, on whichever device: kube-scheduler would
 * allocate nothing on that node. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_PIN_H
#define BIGA_MODEL_CLAIM_CLAIM_PIN_H

#include "lib/base/str.h"
#include "model/claim/claim_spec.h"

struct claim_pin {
    const char *request; /* its name */
    const char *cel;     /* the selector */
};

/* Append the spec's JSON with the pins.  0; -EDOM with the request's name: it
 * is not there, is pinned twice, has CLAIM_SELECTORS_MAX selectors already, or
 * the selector is longer than CLAIM_CEL_MAX.  `out` is as it was then. */
int claim_pin(const struct claim_spec *spec, const struct claim_pin *pins,
              size_t n_pins, struct str *out, struct error *err);

/* Append the CEL of a pin.  `addrs` has at least one; a request for several
 * devices gets them all, as it counts as many.
 *
 * Cards of xpu.biga.dev, by the node and the PCI address. */
void claim_pin_cards(const char *node, const struct pci_addr *addrs,
                     size_t n_addrs, struct str *out);
/* Devices of any driver by PCI address, on whichever node; wide domains
 * (above ffff) never match, as pciBusID does not have them. */
void claim_pin_pci(const char *driver, const struct pci_addr *addrs,
                   size_t n_addrs, struct str *out);
/* Devices of a driver below PCIe roots ("pci0000:16"), at least one.  A request
 * for several devices gets as many of those, however many are below each. */
void claim_pin_roots(const char *driver, const char *const *roots,
                     size_t n_roots, struct str *out);

#endif
