/* flash_record - why a card is out of service since it was to be flashed, in
 * the file DIR/flash-CARD.  It is written before the card is touched, with the
 * reason that it has if nobody comes to write another one, and removed when
 * the card has booted what it was to boot, or the operator says so. */
#ifndef BIGA_ADVERTISER_ACT_FLASH_FLASH_RECORD_H
#define BIGA_ADVERTISER_ACT_FLASH_FLASH_RECORD_H

#include <stdbool.h>

#include "lib/base/error.h"

enum {
    FLASH_REASON_MAX = 63,   /* "FlashInterrupted" */
    FLASH_MESSAGE_MAX = 512, /* with the NUL */
    FLASH_RECORD_MAX = 8192, /* bytes of the file */
};

struct flash_record {
    bool drained; /* by the operator, before: it stays so when all is well */
    char reason[FLASH_REASON_MAX + 1];
    char message[FLASH_MESSAGE_MAX];
};

/* Durable when it returns 0. */
int flash_record_write(const char *dir, const char *card,
                       const struct flash_record *record, struct error *err);
int flash_record_remove(const char *dir, const char *card, struct error *err);
/* Each card that has one.  One that cannot be read counts as that of a flash
 * that was interrupted. */
int flash_record_each(const char *dir,
                      void (*visit)(void *ctx, const char *card,
                                    const struct flash_record *record),
                      void *ctx, struct error *err);

#endif
