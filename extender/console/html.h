/* html - text into HTML: all that pages show goes through here, so that what a
 * tenant writes is never markup.  Pure. */
#ifndef BIGA_EXTENDER_CONSOLE_HTML_H
#define BIGA_EXTENDER_CONSOLE_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "lib/base/text.h" /* shell_add_word() */

/* Append `fmt`, which is markup, with its arguments.  Each %s is a text, of
 * whoever, and is escaped: it may stand between tags and in an attribute with
 * quotes.  %d, %u and %x, with l, ll or z, are numbers; nothing else is known
 * here, but for %%. */
void html_addf(struct str *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* One segment of a path, or one value of a query, percent-encoded: it holds no
 * markup and no slash. */
void html_add_segment(struct str *out, const char *text);

/* A link to the page of one thing: <a href="/ui/KIND/A/B">TEXT</a>; `b` may
 * be NULL. */
void html_add_link(struct str *out, const char *kind, const char *a,
                   const char *b, const char *text);

/* A word with a colour: "good", "fair", "worse", "bad", "use", "free", "drain"
 * or "dim". */
void html_add_badge(struct str *out, const char *class, const char *word);
/* The colour of a relation, "PIX". */
const char *relation_class(const char *word);
/* What is `free` of `whole`, as a bar and in words: "12/16 cores free".
 * Nothing when `whole` is 0. */
void html_add_bar(struct str *out, uint64_t free, uint64_t whole,
                  const char *unit);

/* A command that can be copied; what is in it has been quoted for a shell. */
void html_add_command(struct str *out, const char *command);

#endif
