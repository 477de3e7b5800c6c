/* flasher - the cards of this host that are being flashed, or are out of
 * service since.  A card that is flashed has a thread; different cards are
 * flashed beside each other.  Use from any thread; nothing here blocks for
 * longer than a write to the disk. */
#ifndef BIGA_ADVERTISER_ACT_FLASH_FLASHER_H
#define BIGA_ADVERTISER_ACT_FLASH_FLASHER_H

#include "advertiser/act/flash/flash.h"
#include "lib/base/mem.h"

enum flasher_state {
    FLASHER_NONE,    /* nothing to tell */
    FLASHER_RUNNING, /* out of service */
    FLASHER_FAILED,  /* out of service, for `reason`, since it was touched */
    FLASHER_REFUSED, /* for `reason`; it was not touched */
    FLASHER_DONE,    /* it booted what it was to boot */
};
const char *flasher_state_name(enum flasher_state state); /* "running" … */

struct flasher_view {
    enum flasher_state state;
    int percent; /* while it runs */
    char phase[FLASH_PHASE_MAX + 1];
    char reason[FLASH_REASON_MAX + 1]; /* "" none */
    char message[FLASH_MESSAGE_MAX];
};

struct flasher_config {
    const char *dir, *hooks_dir; /* as in struct prep_config */
    /* On the card's thread.  The first says how far it is; at the end the
     * second, and then the first once more; `serves`: the card is as it was
     * before, in service, but for flasher_is_drained(). */
    void (*changed)(void *ctx, const char *card);
    void (*ended)(void *ctx, const char *card, bool serves);
    void *ctx;
};

struct flasher;
/* Cards that were to be flashed in an earlier life, and are out of service
 * since, are among its cards.  `config` and its texts are borrowed. */
int flasher_create(const struct flasher_config *config,
                   struct flasher **ret_flasher, struct error *err);
/* Its threads have ended, and none begins any more; it can be looked at still.
 * Hooks go on by themselves. */
void flasher_stop(struct flasher *f);
/* NULL allowed. */
void flasher_destroy(struct flasher *f);
DEFINE_CLEANUP(flasher, struct flasher *, flasher_destroy)

/* Those that are out of service. */
void flasher_each_out(struct flasher *f,
                      void (*visit)(void *ctx, const char *card), void *ctx);
void flasher_look(struct flasher *f, const char *card,
                  struct flasher_view *ret_view);

/* -EBUSY: it is being flashed already; -EINVAL as flash_ask_check(); the
 * callbacks of `ask` are not used, its texts are copied.  `ask->drained` is of
 * a card that is in service. */
int flasher_begin(struct flasher *f, const struct flash_ask *ask,
                  struct error *err);
/* The operator drained it, besides, or says that it is well: what is written
 * down of it is removed; -EBUSY while it is being flashed. */
void flasher_drained(struct flasher *f, const char *card);
bool flasher_is_drained(struct flasher *f, const char *card);
/* Not beside flasher_begin(). */
int flasher_clear(struct flasher *f, const char *card, struct error *err);

#endif
