/* httpd_layout - does a reading of a request's head account for every byte of
 * it?  Pure.
 *
 * libmicrohttpd 0.9.75 reads a head where it lies, and is lenient: it takes a
 * bare LF for the end of a line, joins a folded line to the header's name,
 * ends texts at a NUL, takes a line without a name for the head's end and
 * leaves white space before a colon in the name.  A proxy in front of us may
 * take the same bytes for another request.  But it
 * tells where each part lies and how long the head was; so all that it left
 * out shows, as a part that does not lie where it would if the head were
 *
 *     method SP target SP version CRLF *( name ":" OWS value CRLF ) CRLF
 *
 * and nothing else.  Two things do not: NUL LF and, at the head's end, ":" LF
 * look like CR LF afterwards; what is skipped before the method is not told. */
#ifndef BIGA_LIB_HTTP_HTTPD_LAYOUT_H
#define BIGA_LIB_HTTP_HTTPD_LAYOUT_H

#include <stddef.h>

struct layout {
    const char *begin, *next; /* where the next part must lie */
    const char *near;         /* the last header that was right; "" */
    const char *fault;        /* the first; NULL: none until now */
};

/* Texts end with a NUL, in place; the target's end may have moved since. */
void layout_line(struct layout *l, const char *method, const char *target,
                 size_t target_size, const char *version);
/* In the order of the lines. */
void layout_field(struct layout *l, const char *name, const char *value);
/* All of the head, with the empty line at its end, has `size` bytes. */
void layout_end(struct layout *l, size_t size);

#endif
