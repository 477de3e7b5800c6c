/* nearest_word - which of the words that there are was probably meant.  Pure. */
#ifndef BIGA_LIB_BASE_NEAREST_WORD_H
#define BIGA_LIB_BASE_NEAREST_WORD_H

#include <stddef.h>

/* How many letters to add, drop, change or swap to make one of the other. */
size_t nearest_word_distance(const char *a, const char *b);

/* How far `word` is from a name that may have been meant: 0 when it is its
 * beginning, of two letters or more; NEAREST_WORD_NOT when it is too far to guess. */
#define NEAREST_WORD_NOT ((size_t)-1)
size_t nearest_word_guess(const char *word, const char *name);

#endif
