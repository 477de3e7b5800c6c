#include "model/claim/claim_pin.h"

#include <string.h>

#define CARD_DRIVER "xpu.biga.dev"

/* A text as a CEL literal: names, addresses and what a driver says. */
static void add_literal(struct str *out, const char *text)
{
    str_add_c(out, '"');
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            str_add_c(out, '\\');
        if (c < ' ' || c == 0x7f)
            str_addf(out, "\\x%02x", c);
        else
            str_add_c(out, *p);
    }
    str_add_c(out, '"');
}

/* has(x) && x: what is not there is no error, but no match either. */
static void add_attribute(struct str *out, const char *domain, const char *name)
{
    str_addf(out,
             "has(device.attributes[\"%s\"].%s) && "
             "device.attributes[\"%s\"].%s",
             domain, name, domain, name);
}

/* … == "0000:17:00.0", or … in ["0000:17:00.0","0000:18:00.0"], of the `wide`
 * addresses or of the others. */
static void add_addresses(struct str *out, const struct pci_addr *addrs,
                          size_t n_addrs, bool wide, size_t n)
{
    char text[PCI_ADDR_TEXT_MAX];
    bool first = true;
    str_add(out, n == 1 ? " == " : " in [");
    for (size_t i = 0; i < n_addrs; i++) {
        if ((addrs[i].domain > 0xffff) != wide)
            continue;
        pci_addr_format(&addrs[i], text);
        str_add(out, first ? "" : ",");
        add_literal(out, text);
        first = false;
    }
    str_add(out, n == 1 ? "" : "]");
}

static size_t count_wide(const struct pci_addr *addrs, size_t n_addrs)
{
    size_t n = 0;
    for (size_t i = 0; i < n_addrs; i++)
        n += addrs[i].domain > 0xffff;
    return n;
}

void claim_pin_cards(const char *node, const struct pci_addr *addrs,
                     size_t n_addrs, struct str *out)
{
    size_t wide = count_wide(addrs, n_addrs), narrow = n_addrs - wide;
    str_add(out, "device.driver == \"" CARD_DRIVER "\" && ");
    add_attribute(out, "biga.dev", "node");
    str_add(out, " == ");
    add_literal(out, node);
    str_add(out, wide && narrow ? " && (" : " && ");
    if (narrow) {
        add_attribute(out, "resource.kubernetes.io", "pciBusID");
        add_addresses(out, addrs, n_addrs, false, narrow);
    }
    if (wide && narrow)
        str_add(out, " || ");
    if (wide) {
        add_attribute(out, "biga.dev", "pciAddress");
        add_addresses(out, addrs, n_addrs, true, wide);
    }
    str_add(out, wide && narrow ? ")" : "");
}

static void add_driver(struct str *out, const char *driver)
{
    str_add(out, "device.driver == ");
    add_literal(out, driver);
    str_add(out, " && ");
}

void claim_pin_pci(const char *driver, const struct pci_addr *addrs,
                   size_t n_addrs, struct str *out)
{
    size_t narrow = n_addrs - count_wide(addrs, n_addrs);
    add_driver(out, driver);
    if (!narrow) {
        str_add(out, "false");
        return;
    }
    add_attribute(out, "resource.kubernetes.io", "pciBusID");
    add_addresses(out, addrs, n_addrs, false, narrow);
}

void claim_pin_roots(const char *driver, const char *const *roots,
                     size_t n_roots, struct str *out)
{
    add_driver(out, driver);
    add_attribute(out, "resource.kubernetes.io", "pcieRoot");
    str_add(out, n_roots == 1 ? " == " : " in [");
    for (size_t i = 0; i < n_roots; i++) {
        str_add(out, i ? "," : "");
        add_literal(out, roots[i]);
    }
    str_add(out, n_roots == 1 ? "" : "]");
}
