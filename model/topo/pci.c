#include "model/topo/pci.h"

#include <stdbool.h>
#include <string.h>

/* Reads `digits` hex digits at most, at least `least`; the number read, or
 * -1. */
static int64_t hex_read(const char **p, unsigned least, unsigned most)
{
    int64_t value = 0;
    unsigned n = 0;
    for (; n < most; n++) {
        char c = **p;
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            break;
        value = value * 16 + digit;
        (*p)++;
    }
    return n < least ? -1 : value;
}

static bool char_skip(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

/* Addresses are written too often for printf().  Returns their end. */
static char *hex_write(char *to, uint32_t value, unsigned digits)
{
    for (unsigned i = digits; i-- > 0; value >>= 4)
        to[i] = "0123456789abcdef"[value & 15];
    return to + digits;
}

void pci_addr_format(const struct pci_addr *addr,
                     char ret_text[PCI_ADDR_TEXT_MAX])
{
    unsigned digits = 4;
    while (digits < 8 && addr->domain >> 4 * digits)
        digits++;
    char *p = hex_write(ret_text, addr->domain, digits);
    *p++ = ':';
    p = hex_write(p, addr->bus, 2);
    *p++ = ':';
    p = hex_write(p, addr->device & 0x1fu, 2);
    *p++ = '.';
    *hex_write(p, addr->function & 7u, 1) = '\0';
}

int pci_addr_parse(const char *text, struct pci_addr *ret_addr,
                   struct error *err)
{
    const char *p = text;
    int64_t domain = 0, bus, device = -1, function = -1;
    const char *colon = strchr(text, ':');
    if (colon && strchr(colon + 1, ':')) {
        domain = hex_read(&p, 1, 8);
        if (!char_skip(&p, ':'))
            domain = -1;
    }
    bus = hex_read(&p, 2, 2);
    if (bus >= 0 && char_skip(&p, ':'))
        device = hex_read(&p, 2, 2);
    if (device >= 0 && char_skip(&p, '.'))
        function = hex_read(&p, 1, 1);
    if (domain < 0 || function < 0 || device > 0x1f || function > 7 || *p)
        return error_set(err, EINVAL,
                         "\"%.40s\" is no PCI address, which looks like "
                         "0000:17:00.0",
                         text);
    *ret_addr = (struct pci_addr){.domain = (uint32_t)domain,
                                  .bus = (uint8_t)bus,
                                  .device = (uint8_t)device,
                                  .function = (uint8_t)function};
    return 0;
}

int pci_addr_compare(const struct pci_addr *a, const struct pci_addr *b)
{
    if (a->domain != b->domain)
        return a->domain < b->domain ? -1 : 1;
    if (a->bus != b->bus)
        return a->bus < b->bus ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->function > b->function) - (a->function < b->function);
}
