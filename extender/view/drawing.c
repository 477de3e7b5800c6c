#include "extender/view/drawing.h"

#include <string.h>

#include "lib/base/text.h"

enum { LETTER = 7 }; /* width of one, about */

#define D ".biga-drawing "
/* Plain rules, not variables: not every viewer knows those. */
const char drawing_rules[] = D
    "text{font:12px system-ui,sans-serif;fill:#1f2328}\n" D
    ".h{font-size:18px;font-weight:600}" D ".b{font-weight:600}\n" D
    ".e{text-anchor:end}" D ".d{fill:#59636e;font-size:11px}\n" D
    ".bad{fill:#b3261e;font-weight:600}\n" D ".bg{fill:#fff}" D
    ".p{fill:none;stroke:#8c959f}" D ".f{fill:#f3f5f8;stroke:#c8d1da}\n" D
    ".s{fill:#fff;stroke:#c8d1da}" D ".c{fill:#fff;stroke:#8c959f}\n" D
    ".ill{fill:#fff;stroke:#b3261e;stroke-dasharray:5 3}\n" D
    ".out{fill:#f3f5f8;stroke:#8c959f;stroke-dasharray:2 3}\n" D
    ".has{fill:#0969da}" D ".whole{fill:#9a6700}\n" D
    ".free{fill:none;stroke:#8c959f}\n" D
    ".near{fill:#cfe5ff;stroke:#0969da}\n" D
    ".far{fill:#fff1cc;stroke:#9a6700;stroke-width:2}\n" D
    ".kept{fill:none;stroke:#59636e;stroke-dasharray:3 2}\n"
    "@media(prefers-color-scheme:dark){\n" D "text{fill:#e6edf3}" D
    ".d{fill:#9198a1}" D ".bad{fill:#ff8b85}\n" D ".bg{fill:#0d1117}" D
    ".p{stroke:#656c76}" D ".f{fill:#151b23;stroke:#3d444d}\n" D
    ".s{fill:#0d1117;stroke:#3d444d}" D ".c{fill:#151b23;stroke:#656c76}\n" D
    ".ill{fill:#151b23;stroke:#ff8b85}" D
    ".out{fill:#0d1117;stroke:#656c76}\n" D ".has{fill:#4493f8}" D
    ".whole{fill:#d29922}" D ".free{stroke:#656c76}\n" D
    ".near{fill:#12345c;stroke:#4493f8}\n" D
    ".far{fill:#3d2e00;stroke:#d29922}" D ".kept{stroke:#9198a1}}\n";
#undef D

void drawing_finish(const char *title, const struct str *body, int width,
                    int height, enum drawing_form form, struct str *out)
{
    str_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" "
             "class=\"biga-drawing\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\"><title>",
             width, height, width, height);
    text_escape(title, out);
    str_add(out, "</title>\n");
    if (form == DRAWING_FILE)
        str_addf(out,
                 "<style>\n%s</style>\n"
                 "<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n",
                 drawing_rules);
    str_add_n(out, str_text(body), body->size);
    str_add(out, "</svg>\n");
    out->overflow |= body->overflow;
}

/* --- pieces --------------------------------------------------------------- */

void drawing_group(struct str *out, const char *key, const char *value)
{
    str_add(out, "<g");
    if (key) {
        str_addf(out, " data-%s=\"", key);
        text_escape(value, out);
        str_add_c(out, '"');
    }
    str_add(out, "><title>");
}

void drawing_told(struct str *out)
{
    str_add(out, "</title>\n");
}

void drawing_group_end(struct str *out)
{
    str_add(out, "</g>\n");
}

void drawing_rect(struct str *out, const char *class, const struct box *box,
                  int radius)
{
    str_addf(out,
             "<rect class=\"%s\" x=\"%d.5\" y=\"%d.5\" width=\"%d\" "
             "height=\"%d\" rx=\"%d\"/>\n",
             class, box->x, box->y, box->w, box->h, radius);
}

void drawing_text(struct str *out, const char *class, int x, int y,
                  const char *text, size_t letters)
{
    str_addf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    text_escape_short(text, letters, out);
    str_add(out, "</text>\n");
}

void drawing_bar(struct str *out, const struct box *box, uint64_t free,
                 uint64_t total)
{
    struct box part = *box;
    uint64_t given = free < total ? total - free : 0;
    part.w = total ? (int)((uint64_t)box->w * given / total) : 0;
    if (given && part.w == 0)
        part.w = 1;
    if (part.w)
        drawing_rect(out, "has", &part, 2);
    drawing_rect(out, "free", box, 2);
}

void drawing_legend(struct str *out, int x, int y,
                    const struct drawing_kind *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct box box = {x, y - 10, 11, 11};
        drawing_rect(out, kinds[i].class, &box, 2);
        drawing_text(out, "d", x + 18, y, kinds[i].text, 64);
        x += 40 + (int)strlen(kinds[i].text) * LETTER;
    }
}

size_t drawing_letters(int width)
{
    return width > LETTER ? (size_t)width / LETTER : 1;
}
