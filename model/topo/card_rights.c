#include "model/topo/card_rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool card_rights_parse(const char *text, uint64_t *ret_rights)
{
    if (strspn(text, "0123456789abcdef") != CARD_RIGHTS_TEXT_SIZE - 1 ||
        text[CARD_RIGHTS_TEXT_SIZE - 1])
        return false;
    *ret_rights = strtoull(text, NULL, 16);
    return true;
}

void card_rights_text(uint64_t rights, char ret_text[CARD_RIGHTS_TEXT_SIZE])
{
    (void)snprintf(ret_text, CARD_RIGHTS_TEXT_SIZE, "%016" PRIx64, rights);
}
