/* cardkeys - keys for simulated cards with mutual TLS. */
#ifndef BIGA_TESTS_LIB_CARD_CARDKEYS_H
#define BIGA_TESTS_LIB_CARD_CARDKEYS_H

#include "advertiser/act/card/card.h"

/* Makes ca.pem, cert.pem and key.pem in `dir`, of an authority and of one that
 * is card and node alike, for a day; sets where they are in the place. */
void cardkeys_write(const char *dir, struct act_place *ret_place);

#endif
