/* card - the commands of `biga card` that have a file of their own. */
#ifndef BIGA_CLI_VERB_CARD_H
#define BIGA_CLI_VERB_CARD_H

#include "cli/base/cli.h"

/* The name of the command at `i`, which may be that before it; NULL at the
 * end. */
const char *card_command(size_t i);

verb_f verb_card_flash, verb_card_show; /* CARD */

#endif
