/* text - other people's text on a terminal, in a log or in a page: what is
 * hidden there (hidden_text.h) is made visible. */
#ifndef BIGA_LIB_BASE_TEXT_H
#define BIGA_LIB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/* Columns on a terminal: each byte that begins a character of UTF-8 takes
 * one. */
size_t text_width(const char *text);
size_t text_width_n(const char *text, size_t size);

/* Append `text`, of words with one space between, from `column` on in lines of
 * at most `width` columns, of which all but the first begin with `indent`
 * spaces. */
void text_wrap(const char *text, size_t column, size_t indent, size_t width,
               struct str *out);

/* Append `text` with each hidden character replaced by '?'. */
void text_clean(const char *text, struct str *out);

/* Do the same in place, but for newlines and tabs. */
void text_clean_lines(struct str *text);

/* Append `text` as a JSON string in which all that is hidden is escaped
 * ("\u202e"); bytes that are no UTF-8 become U+FFFD. */
void text_quote_n(const char *text, size_t size, struct str *out);

/* The same with what HTML and XML would take for markup escaped. */
void text_escape(const char *text, struct str *out);
void text_escape_n(const char *text, size_t size, struct str *out);
/* The same of at most `max` bytes: a longer one loses its middle ("…"), as names
 * are told apart by how they end. */
void text_escape_short(const char *text, size_t max, struct str *out);

/* The order of names for people: numbers within them count as numbers, so that
 * leaf6 comes before leaf10.  Texts that differ in zeros before numbers alone
 * are in the order of their bytes: only equal texts are equal. */
int text_order(const char *a, const char *b);

/* Is `part`, of `n` bytes in lower case, in it, whatever the case of its
 * letters?  Of ASCII alone, as are those that are made lower. */
void text_lower(char *text); /* in place */
bool text_has(const char *text, size_t size, const char *part, size_t n);

/* Of which characters, and which two and three behind each other, some texts are
 * made, in few bits: what is not a part of any of them is mostly told without a
 * look at the texts.  Letters are the same in either case, as for text_has(). */
struct text_sketch {
    uint64_t chars, pairs, triples;
};
/* Add a text; initialize with zeros. */
void text_sketch_add(struct text_sketch *s, const char *text);

/* `part`: of one text.  False: none of the texts has it. */
static inline bool text_sketch_may_have(const struct text_sketch *s,
                                        const struct text_sketch *part)
{
    return !(part->chars & ~s->chars) && !(part->pairs & ~s->pairs) &&
           !(part->triples & ~s->triples);
}

/* Append a word of a command, in quotes when a shell would see more in it. */
void shell_add_word(struct str *out, const char *word);

#endif
