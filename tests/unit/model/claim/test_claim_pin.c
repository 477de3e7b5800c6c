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
