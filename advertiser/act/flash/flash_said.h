/* flash_said - what a hook that flashes a card has said so far, among other
 * lines: how far it is, and what booted afterwards.
 *
 *     progress 45 writing the image
 *     version bf-bundle-2.9.0-90_24.10_ubuntu-22.04_prod
 *
 * Pure. */
#ifndef BIGA_ADVERTISER_ACT_FLASH_FLASH_SAID_H
#define BIGA_ADVERTISER_ACT_FLASH_FLASH_SAID_H

#include <stddef.h>

enum {
    FLASH_PHASE_MAX = 47,    /* bytes; what is longer is cut */
    FLASH_VERSION_MAX = 127, /* bytes; a longer one counts as none */
};

struct flash_said {
    int percent;                         /* 0 to 100; -1 not said */
    char phase[FLASH_PHASE_MAX + 1];     /* "" not said */
    char version[FLASH_VERSION_MAX + 1]; /* "" not said */
};

/* The last of each, in whole lines of `text`; what is hidden (hidden_text.h)
 * becomes '?'. */
void flash_said_read(const char *text, size_t size, struct flash_said *ret);

#endif
