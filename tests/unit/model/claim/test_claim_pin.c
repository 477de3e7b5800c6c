#include "model/claim/claim_pin.h"

#include <criterion/criterion.h>
#include <string.h>

static struct claim_spec *spec_of(const char *json)
{
    struct claim_spec *spec = NULL;
    struct error err = {0};
    cr_assert_eq(claim_spec_read(json, strlen(json), &spec, &err), 0, "%s: %s",
                 json, err.text);
    return spec;
}

#define CEL(text) "{\"cel\":{\"expression\":\"" text "\"}}"
#define REQUEST(name, rest)                     \
    "{\"name\":\"" name "\",\"exactly\":{" rest \
    "\"deviceClassName\":\"c\"},\"new\":[1, 2]}"
#define SPEC(requests) "{ \"devices\": {\"requests\":[" requests "]} , \"x\":1}"

/* Every byte but the pin is as it was. */
Test(claim_pin, forms)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {SPEC(REQUEST("a", "")),
         SPEC(REQUEST("a", "\"selectors\":[" CEL("p == \\\"q\\\\\\\"") "],"))},
        {SPEC(REQUEST("a", "\"selectors\": [],")),
         SPEC(REQUEST("a", "\"selectors\": [" CEL("p == \\\"q\\\\\\\"") "],"))},
        {SPEC(REQUEST("a", "\"selectors\":null,")),
         SPEC(REQUEST("a", "\"selectors\":[" CEL("p == \\\"q\\\\\\\"") "],"))},
        {SPEC(REQUEST("a", "\"selectors\":[" CEL("true") " ],")),
         SPEC(REQUEST("a", "\"selectors\":[" CEL("true") " ," CEL(
                               "p == \\\"q\\\\\\\"") "],"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cleanup_with(claim_spec) struct claim_spec *spec =
            spec_of(rows[i].from);
        const struct claim_pin pin = {"a", "p == \"q\\\""};
        cleanup_str struct str out = STR_INIT(4096);
        struct error err = {0};
        cr_assert_eq(claim_pin(spec, &pin, 1, &out, &err), 0, "%s", err.text);
        cr_expect_str_eq(str_text(&out), rows[i].to);
        out.size = 0;
        cr_assert_eq(claim_pin(spec, NULL, 0, &out, &err), 0);
        cr_expect_str_eq(str_text(&out), rows[i].from);
    }
}

/* Two of three requests, in whichever order; what comes out is read again. */
Test(claim_pin, several_requests)
{
    cleanup_with(claim_spec) struct claim_spec *spec = spec_of(
        SPEC(REQUEST("a", "") "," REQUEST("b", "") "," REQUEST("c", "")));
    const struct claim_pin pins[] = {{"c", "true"}, {"a", "false"}};
    cleanup_str struct str out = STR_INIT(4096);
    struct error err = {0};
    cr_assert_eq(claim_pin(spec, pins, 2, &out, &err), 0, "%s", err.text);
    cleanup_with(claim_spec) struct claim_spec *made = spec_of(str_text(&out));
    cr_assert_eq(made->n_requests, 3);
    cr_expect_str_eq(claim_cel_text(made->requests[0].selectors[0]), "false");
    cr_expect_eq(made->requests[1].n_selectors, 0);
    cr_expect_str_eq(claim_cel_text(made->requests[2].selectors[0]), "true");
}

Test(claim_pin, refusals)
{
    cleanup_str struct str full = STR_INIT(1 << 16), out = STR_INIT(4096);
    str_add(&full, "{\"devices\":{\"requests\":[{\"name\":\"a\",\"exactly\":{"
                   "\"deviceClassName\":\"c\",\"selectors\":[" CEL("true"));
    for (unsigned i = 1; i < CLAIM_SELECTORS_MAX; i++)
        str_add(&full, "," CEL("true"));
    str_add(&full, "]}}]}}");
    cleanup_with(claim_spec) struct claim_spec *spec = spec_of(str_text(&full));
    struct claim_pin pins[] = {{"b", "true"}, {"b", "true"}};
    struct error err = {0};
    cr_expect_eq(claim_pin(spec, pins, 1, &out, &err), -EDOM);
    cr_expect_str_eq(err.text, "there is no request \"b\"");
    pins[0].request = pins[1].request = "a";
    cr_expect_eq(claim_pin(spec, pins, 1, &out, &err), -EDOM);
    cr_expect_str_eq(err.text,
                     "request \"a\": has 32 selectors, and Kubernetes allows "
                     "no more: join two of them with &&");
    cr_expect_eq(out.size, 0);
}

static struct pci_addr addr_of(const char *text)
{
    struct pci_addr addr = {0};
    struct error err = {0};
    cr_assert_eq(pci_addr_parse(text, &addr, &err), 0, "%s", err.text);
    return addr;
}

/* A slice with one device per text of attributes. */
static struct claim_slice *devices_of(const char *driver,
                                      const char *const *all, size_t n)
{
    cleanup_str struct str json = STR_INIT(1 << 16);
    struct claim_slice *slice = NULL;
    struct error err = {0};
    str_addf(&json,
             "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"%s\","
             "\"nodeName\":\"n\",\"pool\":{\"name\":\"p\"},\"devices\":[",
             driver);
    for (size_t i = 0; i < n; i++)
        str_addf(&json, "%s{\"name\":\"d%zu\",\"attributes\":{%s}}",
                 i ? "," : "", i, all[i]);
    str_add(&json, "]}}");
    cr_assert_eq(claim_slice_read(str_text(&json), json.size, &slice, &err), 0,
                 "%s", err.text);
    return slice;
}

/* '1' and '0' of each device: a pin never raises an error. */
static void check_pin(const char *cel, const struct claim_slice *slice,
                      const char *wanted)
{
    cleanup_with(claim_cel) struct claim_cel *compiled = NULL;
    struct error err = {0};
    char got[8] = "";
    cr_assert_eq(claim_cel_compile(cel, strlen(cel), &compiled, &err), 0,
                 "%s: %s", cel, err.text);
    for (size_t i = 0; i < slice->n_devices; i++) {
        bool match = false;
        cr_assert_eq(claim_cel_eval(compiled, &slice->devices[i], slice->driver,
                                    &match, &err),
                     0, "%s: %s", cel, err.text);
        got[i] = match ? '1' : '0';
    }
    cr_expect_str_eq(got, wanted, "%s: %s", cel, got);
}

#define PCI(addr) \
    "\"resource.kubernetes.io/pciBusID\":{\"string\":\"" addr "\"}"
#define ROOT(root) \
    "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"" root "\"}"
#define NODE(node) "\"biga.dev/node\":{\"string\":\"" node "\"}"
#define WIDE(addr) "\"biga.dev/pciAddress\":{\"string\":\"" addr "\"}"

Test(claim_pin, cards)
{
    static const char *const devices[] = {
        NODE("n\\\"1") "," PCI("0000:17:00.0"),
        NODE("n\\\"1") "," PCI("0000:18:00.0"),
        NODE("n2") "," PCI("0000:17:00.0"),
        NODE("n\\\"1") "," WIDE("10000:01:00.0"),
        PCI("0000:17:00.0"),
        "",
    };
    cleanup_with(claim_slice) struct claim_slice *slice =
        devices_of("xpu.biga.dev", devices, 6);
    cleanup_with(claim_slice) struct claim_slice *others =
        devices_of("gpu.example.com", devices, 6);
    const struct pci_addr addrs[] = {addr_of("0000:17:00.0"),
                                     addr_of("10000:01:00.0"),
                                     addr_of("0000:18:00.0")};
    cleanup_str struct str cel = STR_INIT(4096);
    claim_pin_cards("n\"1", addrs, 1, &cel);
    cr_expect_str_eq(
        str_text(&cel),
        "device.driver == \"xpu.biga.dev\" && "
        "has(device.attributes[\"biga.dev\"].node) && "
        "device.attributes[\"biga.dev\"].node == \"n\\\"1\" && "
        "has(device.attributes[\"resource.kubernetes.io\"].pciBusID) && "
        "device.attributes[\"resource.kubernetes.io\"].pciBusID == "
        "\"0000:17:00.0\"");
    check_pin(str_text(&cel), slice, "100000");
    check_pin(str_text(&cel), others, "000000");
    cel.size = 0;
    claim_pin_cards("n\"1", addrs + 1, 1, &cel);
    check_pin(str_text(&cel), slice, "000100");
    cel.size = 0;
    claim_pin_cards("n\"1", addrs, 3, &cel);
    check_pin(str_text(&cel), slice, "110100");
}

Test(claim_pin, others)
{
    static const char *const devices[] = {
        PCI("0000:17:00.0") "," ROOT("pci0000:16"),
        PCI("0000:18:00.0"),
        ROOT("pci0000:16"),
        ROOT("pci0000:40"),
        "",
    };
    static const char *const roots[] = {"pci0000:16", "pci0000:40"};
    cleanup_with(claim_slice) struct claim_slice *slice =
        devices_of("gpu.example.com", devices, 5);
    const struct pci_addr addrs[] = {addr_of("0000:17:00.0"),
                                     addr_of("0000:18:00.0"),
                                     addr_of("10000:01:00.0")};
    cleanup_str struct str cel = STR_INIT(4096);
    claim_pin_pci("gpu.example.com", addrs, 1, &cel);
    check_pin(str_text(&cel), slice, "10000");
    cel.size = 0;
    claim_pin_pci("gpu.example.com", addrs, 3, &cel);
    check_pin(str_text(&cel), slice, "11000");
    cel.size = 0;
    claim_pin_pci("gpu.example.com", addrs + 2, 1, &cel);
    check_pin(str_text(&cel), slice, "00000");
    cel.size = 0;
    claim_pin_pci("other.example.com", addrs, 3, &cel);
    check_pin(str_text(&cel), slice, "00000");
    cel.size = 0;
    claim_pin_roots("gpu.example.com", roots, 1, &cel);
    check_pin(str_text(&cel), slice, "10100");
    cel.size = 0;
    claim_pin_roots("gpu.example.com", roots, 2, &cel);
    check_pin(str_text(&cel), slice, "10110");
}
