/* hidden_text - characters that do not show as what they are.
 *
 * A terminal obeys controls, and does not show what reorders, separates or
 * takes no place: a name with such characters looks like another one, and a
 * line of a log like two. */
#ifndef BIGA_LIB_BASE_HIDDEN_TEXT_H
#define BIGA_LIB_BASE_HIDDEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size in bytes (1 to 4) of the character at `text`, and whether it is
 * hidden; `size` > 0.  Hidden are the controls of C0 (also newlines and
 * tabs), DEL and C1; whatever reorders (the bidirectional marks, embeddings
 * and isolates); the separators of lines and paragraphs; what takes no place
 * (the default-ignorable characters of Unicode, tags among them, but for the
 * variation selectors of emoji); U+FFFE and U+FFFF, which are no characters;
 * and each byte that is no UTF-8. */
size_t hidden_text_next(const char *text, size_t size, bool *ret_hidden);

/* Put '?' for each hidden character but newlines and tabs, in place; the size
 * that is left. */
size_t hidden_text_blank(char *text, size_t size);

/* The number of a well-formed sequence of `n` bytes. */
uint32_t hidden_text_number(const char *text, size_t n);

#endif
