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

/* --- the spec ------------------------------------------------------------- */

static int check(const struct claim_spec *spec, const struct claim_pin *pins,
                 size_t i, struct error *err)
{
    const struct claim_request *request = NULL;
    for (size_t j = 0; j < spec->n_requests; j++)
        if (strcmp(spec->requests[j].name, pins[i].request) == 0)
            request = &spec->requests[j];
    if (!request)
        return error_set(err, EDOM, "there is no request \"%s\"",
                         pins[i].request);
    for (size_t j = 0; j < i; j++)
        if (strcmp(pins[j].request, pins[i].request) == 0)
            return error_set(err, EDOM, "request \"%s\": is pinned twice",
                             pins[i].request);
    if (request->n_selectors >= CLAIM_SELECTORS_MAX)
        return error_set(err, EDOM,
                         "request \"%s\": has %zu selectors, and Kubernetes "
                         "allows no more: join two of them with &&",
                         pins[i].request, request->n_selectors);
    if (strlen(pins[i].cel) > CLAIM_CEL_MAX)
        return error_set(err, EDOM,
                         "request \"%s\": its pin has %zu bytes, allowed are "
                         "%d",
                         pins[i].request, strlen(pins[i].cel), CLAIM_CEL_MAX);
    return 0;
}

static void add_selector(struct str *out, enum claim_pin_form form,
                         const char *cel)
{
    static const char *const before[] = {"\"selectors\":[", "[", "", ","};
    static const char *const behind[] = {"],", "]", "", ""};
    str_add(out, before[form]);
    str_add(out, "{\"cel\":{\"expression\":");
    str_add_json(out, cel);
    str_add(out, "}}");
    str_add(out, behind[form]);
}

/* Requests stand in the JSON in their order. */
int claim_pin(const struct claim_spec *spec, const struct claim_pin *pins,
              size_t n_pins, struct str *out, struct error *err)
{
    size_t from = 0;
    for (size_t i = 0; i < n_pins; i++) {
        int rc = check(spec, pins, i, err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < spec->n_requests; i++) {
        const struct claim_request *request = &spec->requests[i];
        for (size_t j = 0; j < n_pins; j++) {
            if (strcmp(pins[j].request, request->name) != 0)
                continue;
            str_add_n(out, spec->json + from, request->pin_at - from);
            add_selector(out, request->pin_form, pins[j].cel);
            from = request->pin_at + request->pin_cut;
        }
    }
    str_add_n(out, spec->json + from, spec->json_size - from);
    return 0;
}
