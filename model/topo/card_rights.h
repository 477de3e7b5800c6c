/* card_rights - what a card's node lets pods there ask for, as bits; and as the
 * text that a slice has of them, 16 hexadecimal digits.  Pure. */
#ifndef BIGA_MODEL_TOPO_CARD_RIGHTS_H
#define BIGA_MODEL_TOPO_CARD_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Capabilities have the bits of their numbers in Linux, up to 40, as in
 * /proc/PID/status. */
#define CARD_RIGHTS_IPC_LOCK (UINT64_C(1) << 14)
/* Pods with the n-th of the card's sets of devices may have IPC_LOCK. */
#define CARD_RIGHTS_SET_LOCKS(n) (UINT64_C(1) << (48 + (n)))
#define CARD_RIGHTS_ANY_CAPABILITY (UINT64_C(1) << 60) /* also unknown ones */
#define CARD_RIGHTS_PRIVILEGED (UINT64_C(1) << 61)
#define CARD_RIGHTS_HOST_PID (UINT64_C(1) << 62)
#define CARD_RIGHTS_HOST_IPC (UINT64_C(1) << 63)

enum { CARD_RIGHTS_TEXT_SIZE = 16 + 1 };

bool card_rights_parse(const char *text, uint64_t *ret_rights);
void card_rights_text(uint64_t rights, char ret_text[CARD_RIGHTS_TEXT_SIZE]);

#endif
