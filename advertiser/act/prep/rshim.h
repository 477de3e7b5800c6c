/* rshim - what the vendor's driver of a BlueField's management interface tells
 * of the card that it is of: /dev/rshimN/misc. */
#ifndef BIGA_ADVERTISER_ACT_PREP_RSHIM_H
#define BIGA_ADVERTISER_ACT_PREP_RSHIM_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RSHIM_TEXT_MAX = 63,
    RSHIM_MISC_MAX = 65536, /* bytes that are read of it */
    RSHIM_MAX = 32,         /* interfaces that are looked at: 0 to 31 */
};

struct rshim {                       /* "" not told; longer ones are cut */
    char device[RSHIM_TEXT_MAX + 1]; /* "pcie-0000:17:00.2" */
    char mode[RSHIM_TEXT_MAX + 1];   /* "DPU mode", "NIC mode" */
    char info[RSHIM_TEXT_MAX + 1];   /* "BlueField-3(Rev 1)" */
    char part[RSHIM_TEXT_MAX + 1];   /* its OPN: "900-9D3B6-00CV-AA0" */
};
/* Lines "NAME   VALUE"; pure. */
void rshim_read(const char *text, size_t size, struct rshim *ret_rshim);
/* Is it an interface of the card with the function "0000:17:00.0"?  Drivers of
 * before do not tell the domain. */
bool rshim_is_of(const struct rshim *rshim, const char *pci);

/* That of the card, below `dev` ("/dev"); false: there is none. */
bool rshim_find(const char *dev, const char *pci, struct rshim *ret_rshim);

#endif
