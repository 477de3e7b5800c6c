/* drawing - an SVG drawing of boxes, texts and bars, put together piece by
 * piece, as nodes and jobs are drawn (node_drawing.h, job_drawing.h).
 *
 * Texts of others are escaped; colours come by classes of the drawing's own
 * rules, for light and dark; nothing is told by colour alone.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_DRAWING_H
#define BIGA_EXTENDER_VIEW_DRAWING_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

enum {
    DRAWING_MARGIN = 20,
    DRAWING_PAD = 10,  /* inside of frames and boxes */
    DRAWING_GAP = 10,  /* between them */
    DRAWING_LINE = 17, /* height of a line of text */
    DRAWING_HEAD = 66, /* from the top to the first frame */
};

/* For an <img> or a file of its own; or in a page whose style sheet has
 * drawing_rules, as its Content-Security-Policy may allow no other. */
enum drawing_form { DRAWING_FILE, DRAWING_INLINE };
#define DRAWING_TYPE "image/svg+xml"
/* What a file of its own may load and run: nothing. */
#define DRAWING_POLICY \
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
/* CSS, all of it below the class "biga-drawing". */
extern const char drawing_rules[];

struct box {
    int x, y, w, h;
};

/* The whole: of what is drawn so far by drawing_… into `body`. */
void drawing_finish(const char *title, const struct str *body, int width,
                    int height, enum drawing_form form, struct str *out);

/* A group with a tooltip, which is to be added until drawing_told(); `key` is
 * a data attribute for scripts (data-KEY="value"), or NULL. */
void drawing_group(struct str *out, const char *key, const char *value);
void drawing_told(struct str *out);
void drawing_group_end(struct str *out);

void drawing_rect(struct str *out, const char *class, const struct box *box,
                  int radius);
/* At most `letters` of them. */
void drawing_text(struct str *out, const char *class, int x, int y,
                  const char *text, size_t letters);
/* How much of something is given, and what is free of it: "cores 3/8". */
void drawing_bar(struct str *out, const struct box *box, uint64_t free,
                 uint64_t total);
/* A line of such squares with their meaning. */
struct drawing_kind {
    const char *class, *text;
};
void drawing_legend(struct str *out, int x, int y,
                    const struct drawing_kind *kinds, size_t n);

/* How many letters of ordinary text fit. */
size_t drawing_letters(int width);

#endif
