#include "advertiser/act/prep/prep.h"

#include <stdarg.h>

#include "advertiser/act/prep/prep_private.h"
#include "model/topo/topo.h"

int prep_say(struct prep_outcome *o, const char *reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(o->message, sizeof o->message, fmt, args);
    va_end(args);
    o->reason = reason;
    return 0;
}

int prep_check_card(const struct prep_request *request, struct error *err)
{
    struct pci_addr addr;
    char again[PCI_ADDR_TEXT_MAX];
    if (request->card[0] == '\0' || strlen(request->card) > TOPO_ID_MAX ||
        strchr(request->card, '/'))
        return error_set(err, EINVAL,
                         "card: is \"%.64s\", must be the id of one",
                         request->card);
    if (pci_addr_parse(request->pci, &addr, err) < 0)
        return error_wrap(err, "card %s", request->card);
    pci_addr_format(&addr, again);
    if (strcmp(again, request->pci))
        return error_set(err, EINVAL,
                         "card %s: PCI address is \"%s\", must be \"%s\"",
                         request->card, request->pci, again);
    return 0;
}

int prep_run(const struct prep_config *config,
             const struct prep_request *request,
             struct prep_outcome *ret_outcome, struct error *err)
{
    struct prep_outcome o = {.reason = ""};
    int rc = prep_check_card(request, err);
    if (rc == 0 && request->sriov_vfs >= 0)
        rc = prep_vfs(config, request, &o, err);
    if (rc == 0 && o.reason[0] == '\0' && request->sfs > 0)
        rc = prep_sfs(config, request, &o, err);
    if (rc == 0 && o.reason[0] == '\0' && request->hook && request->hook[0])
        rc = prep_hook(config, request, &o, err);
    if (rc == 0)
        *ret_outcome = o;
    return rc;
}
