/* health_file - how the cards of a node fare, in a file that biga-cri writes
 * and the node's advertiser publishes (schema/cards.md):
 *
 *     {"cards":[{"name":"card-0000-17-00","health":"lost","reason":"…"}]} */
#ifndef BIGA_ADVERTISER_ACT_CARD_HEALTH_FILE_H
#define BIGA_ADVERTISER_ACT_CARD_HEALTH_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/act/card/card.h"
#include "lib/base/error.h"

enum { HEALTH_FILE_CARDS_MAX = 32, HEALTH_FILE_BYTES_MAX = 256 << 10 };

struct health_file_card {
    char name[ACT_NAME_MAX + 1];
    bool lost;                    /* else ready; what is suspect is as it was */
    char reason[ACT_MESSAGE_MAX]; /* for a person; "" */
};

struct health_file {
    size_t n;
    struct health_file_card cards[HEALTH_FILE_CARDS_MAX];
};

/* -ENOENT: there is none; -EINVAL with the path, the member and the value. */
int health_file_load(const char *path, struct health_file *ret_file,
                     struct error *err);
/* Whoever reads it sees the old one or the new. */
int health_file_store(const char *path, const struct health_file *file,
                      struct error *err);
/* True when that is news; so is the first of a card.  False, too, when there is
 * no room for one more. */
bool health_file_set(struct health_file *file, const char *name, bool lost,
                     const char *reason);

#endif
