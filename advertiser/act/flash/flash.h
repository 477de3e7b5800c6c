/* flash - writes an image to a card by the operator's hook FLASH_HOOK, and
 * finds out what booted afterwards.
 *
 * Blocks until it is done.  The image is checked before anything is written
 * down; then the card is touched, and what is written down (flash_record.h)
 * says so until it has booted what it was to boot.  The hook is run as any
 * (prep.h): it goes on by itself when this process ends. */
#ifndef BIGA_ADVERTISER_ACT_FLASH_FLASH_H
#define BIGA_ADVERTISER_ACT_FLASH_FLASH_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/flash/flash_image.h"
#include "advertiser/act/flash/flash_record.h"
#include "advertiser/act/flash/flash_said.h"
#include "advertiser/act/prep/prep.h"

#define FLASH_HOOK "flash-bfb"

enum {
    FLASH_S = 2700, /* a hook that takes longer is killed */
    FLASH_S_MAX = 21600,
};

struct flash_ask {
    const char *card, *pci; /* as in struct prep_request */
    const char *address;    /* where the card answers; "" not known */
    const char *bfb;        /* the image; absolute */
    const char *sha256;     /* of it; "": as FILE.sha256 says */
    const char *version;    /* that is to boot; "": the image's name without
                             * ".bfb" */
    int64_t timeout_ms;
    bool drained;                                           /* for the record */
    void (*told)(void *ctx, const struct flash_said *said); /* NULL allowed */
    bool (*keep)(void *ctx); /* as in struct prep_request */
    void *ctx;
};

struct flash_outcome {
    const char *reason; /* a constant: "" when the card has booted it, else a
                         * word of docs/cards.md */
    char message[FLASH_MESSAGE_MAX]; /* what happened; what to do next */
    bool touched; /* the card may not be as it was, and that is written down */
};

/* -EINVAL with the member, its value, and what is allowed. */
int flash_ask_check(const struct flash_ask *ask, struct error *err);
/* 0 when it came to an end, as `*ret_outcome` says; -ECANCELED when keep() said
 * so; -errno when it could not be written down.  What is written down stays
 * then. */
int flash_run(const struct prep_config *config, const struct flash_ask *ask,
              struct flash_outcome *ret_outcome, struct error *err);

#endif
