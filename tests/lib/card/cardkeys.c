#include "tests/lib/card/cardkeys.h"

#include <stdio.h>

#include "tests/lib/http/certs.h"

void cardkeys_write(const char *dir, struct act_place *ret_place)
{
    struct cert *ca = cert_authority("simulated cards");
    const struct cert_spec spec = {.name = "card",
                                   .purposes = CERT_SERVER | CERT_CLIENT,
                                   .local = true,
                                   .from_s = -3600,
                                   .until_s = 86400};
    struct act_place *p = ret_place;
    (void)snprintf(p->ca, sizeof p->ca, "%s/ca.pem", dir);
    (void)snprintf(p->cert, sizeof p->cert, "%s/cert.pem", dir);
    (void)snprintf(p->key, sizeof p->key, "%s/key.pem", dir);
    cert_write(ca, p->ca);
    cert_issue(ca, &spec, p->cert, p->key);
    cert_destroy(ca);
}
