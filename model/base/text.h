/* text - other people's text on a terminal or in a page.
 *
 * Control characters are those of C0, DEL, and C1 as UTF-8 writes it: a
 * terminal obeys them all. */
#ifndef BIGA_BASE_TEXT_H
#define BIGA_BASE_TEXT_H

#include <stddef.h>

#include "model/base/str.h"

/* Columns on a terminal: each byte that begins a character of UTF-8 takes
 * one. */
size_t text_width(const char *text);
size_t text_width_n(const char *text, size_t size);

/* Append `text` with each control character replaced by '?'. */
void text_clean(const char *text, struct str *out);

/* The same with what HTML and XML would take for markup escaped. */
void text_escape(const char *text, struct str *out);
void text_escape_n(const char *text, size_t size, struct str *out);

/* The order of names for people: numbers within them count as numbers, so that
 * leaf6 comes before leaf10.  Texts that differ in zeros before numbers alone
 * are in the order of their bytes: only equal texts are equal. */
int text_order(const char *a, const char *b);

#endif
