/* card_models - what a PCI function is, by its ids and its class. */
#ifndef BIGA_ADVERTISER_DESCRIBE_CARD_MODELS_H
#define BIGA_ADVERTISER_DESCRIBE_CARD_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One kind of card: a device with cores of its own that can run pods. */
struct card_model {
    uint16_t vendor_id, device_id;
    const char *vendor, *model, *arch; /* "" when it varies */
};

extern const struct card_model card_models[];
extern const size_t n_card_models;

/* NULL when these ids are no known card. */
const struct card_model *card_model_find(uint16_t vendor_id,
                                         uint16_t device_id);

/* True when cards of this vendor have a PCIe switch of their own, with each of
 * their functions as a PCI device behind it. */
bool card_models_have_switch(uint16_t vendor_id);

enum pci_role { PCI_ROLE_OTHER, PCI_ROLE_GPU, PCI_ROLE_NIC };

/* What a function that belongs to no card is.  A display controller whose
 * only work is a remote console (a BMC's, a virtual machine's) is other. */
enum pci_role pci_role(uint16_t class_id, uint16_t vendor_id,
                       uint16_t device_id);

/* The usual short name of a vendor, "" when unknown. */
const char *pci_vendor_name(uint16_t vendor_id);

#endif
