/* What the words of biga-card share. */
#ifndef BIGA_CARD_CARD_PRIVATE_H
#define BIGA_CARD_CARD_PRIVATE_H

#include "card/card.h"

enum { PAD_ID = (CARD_PAD_ID_SIZE - 1) / 2 };

/* --- folder.c ------------------------------------------------------------- */
/* Open the folder that `path`, a name that is ok, leads to from `dir`, which
 * is taken over. */
int card_open_below(int dir, const char *path, bool make, struct error *err);
/* Open a pod's folder: made with what is missing above it, and from then on
 * nobody's but root's.  What is in it reaches containers by mounts. */
int card_open_pod(const char *path, struct error *err);
int card_write(int fd, const unsigned char *data, size_t size);
/* Open the regular file `path`, whoever made it. */
int card_open_file(const char *path, struct error *err);

/* --- pad.c ---------------------------------------------------------------- */
struct pad {
    unsigned char *data; /* NULL: none, nothing is hidden */
    size_t at, size;
};
/* The pad of that id, which is gone from then on. */
int pad_take(int top, const char *id, struct pad *ret_pad, struct error *err);
/* The next `size` bytes in clear; false when it is too short. */
bool pad_lift(struct pad *pad, unsigned char *data, size_t size);
void pad_fini(struct pad *pad);

/* --- files.c -------------------------------------------------------------- */

/* A number of digits of that base alone, at most `max`; -1 when it is none. */
long card_number(const char *text, int base, long max);
/* Write what the pieces stand for.  -errno; -EBADMSG when one of them is not
 * base64, or the pad too short. */
int card_write_pieces(int fd, const char *const *pieces, size_t n,
                      struct pad *pad);

#endif
