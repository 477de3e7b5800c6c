#include "bench/replay/plot.h"

#include <math.h>
#include <string.h>

#include "lib/base/text.h"

enum {
    ROW = 24,
    BAR = 15,
    LABEL = 168, /* width of the policies' names */
    WIDTH = 900,
    HALF = 480,
    VALUE = 78, /* room for a number at the right */
    LINES_HEIGHT = 260,
    LINES_LEFT = 48,
    LINES_BOTTOM = 30,
    TICKS = 5,
};

static void begin_svg(int width, int height, const char *title, struct str *out)
{
    str_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
             width, height);
    text_escape(title, out);
    str_add(out, "\">\n");
}

static void label(int row, const char *text, bool own, struct str *out)
{
    str_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"%s>", LABEL - 8,
             row * ROW + BAR - 2, own ? " class=\"own\"" : "");
    text_escape(text, out);
    str_add(out, "</text>\n");
}

/* Three digits that count, and no more than are needed. */
static void number(double value, struct str *out)
{
    int digits = value >= 100 || value <= 0 ? 0 : value >= 10 ? 1 : 2;
    if (value > 0 && value < 0.01)
        str_add(out, "&lt; 0.01");
    else
        str_addf(out, "%.*f", digits, value);
}

void plot_bars(const struct plot_bar *bars, size_t n, const char *title,
               struct str *out)
{
    double most = 0, room = HALF - LABEL - VALUE;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, bars[i].value);
    begin_svg(HALF, (int)n * ROW + 4, title, out);
    for (size_t i = 0; i < n; i++) {
        double width = most > 0 ? room * bars[i].value / most : 0;
        int y = (int)i * ROW;
        label((int)i, bars[i].label, bars[i].own, out);
        str_addf(out,
                 "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
                 "rx=\"2\" style=\"fill:var(--%s)\"/>\n",
                 LABEL, y, fmax(width, 1), BAR, bars[i].own ? "own" : "other");
        str_addf(out, "<text x=\"%.1f\" y=\"%d\"%s>", LABEL + width + 6,
                 y + BAR - 2, bars[i].own ? " class=\"own\"" : "");
        number(bars[i].value, out);
        str_add(out, "</text>\n");
    }
    str_add(out, "</svg>\n");
}

static void relation_bar(const struct replay_result *x, int row,
                         struct str *out)
{
    double at = LABEL, room = WIDTH - LABEL - VALUE;
    for (unsigned k = 0; k < RELATION_COUNT; k++) {
        double part = share(x->by_relation[k], x->pairs), width = part * room;
        if (x->by_relation[k] == 0)
            continue;
        str_addf(out,
                 "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
                 "style=\"fill:var(--r%u)\"><title>%s %s: %.2f %%</title>"
                 "</rect>\n",
                 at, row * ROW, fmax(width - 1, 0.5), BAR, k,
                 replay_policy_name(x->policy), relation_name(k), 100 * part);
        at += width;
    }
    str_addf(out, "<text x=\"%d\" y=\"%d\"%s>%.2f %%</text>\n",
             WIDTH - VALUE + 8, row * ROW + BAR - 2,
             x->policy == POLICY_BIGA ? " class=\"own\"" : "",
             100 * share(x->aligned, x->pairs));
}

void plot_relations(const struct replay_report *r, struct str *out)
{
    begin_svg(WIDTH, (int)r->n * ROW + 4, "Share of pairs by relation", out);
    for (size_t i = 0; i < r->n; i++) {
        label((int)i, replay_policy_name(r->results[i].policy),
              r->results[i].policy == POLICY_BIGA, out);
        relation_bar(&r->results[i], (int)i, out);
    }
    str_add(out, "</svg>\n");
}

/* --- lines over time ---------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, so that TICKS of them reach `most`. */
static double tick_of(double most)
{
    double step = pow(10, floor(log10(most / TICKS)));
    static const double times[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (step * times[i] * TICKS >= most)
            return step * times[i];
    return step * 10;
}

struct frame {
    double x0, y0, width, height; /* of the lines */
    double most, span;
};

static void time_axis(const struct frame *f, struct str *out)
{
    static const struct {
        double s;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t unit = 0;
    while (unit < 3 && f->span < 3 * units[unit].s)
        unit++;
    double tick = tick_of(f->span / units[unit].s);
    for (double t = 0; t * units[unit].s <= f->span; t += tick) {
        double x = f->x0 + f->width * t * units[unit].s / f->span;
        str_addf(out,
                 "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"middle\">%g %s</text>\n",
                 x, f->y0 + f->height + 18, t, units[unit].name);
    }
}

static void axes(const struct frame *f, double tick, struct str *out)
{
    for (double v = 0; v <= f->most + tick / 2; v += tick) {
        double y = f->y0 + f->height * (1 - v / f->most);
        str_addf(out,
                 "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                 "y2=\"%.1f\"/>\n<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"end\">%g</text>\n",
                 f->x0, f->x0 + f->width, y, y, f->x0 - 6, y + 4, v);
    }
    time_axis(f, out);
}

static void line(const struct frame *f, const struct replay_result *x,
                 struct str *out)
{
    bool own = x->policy == POLICY_BIGA;
    str_addf(out,
             "<polyline fill=\"none\" stroke-linejoin=\"round\" "
             "style=\"stroke:var(--p%d)\" stroke-width=\"%s\" points=\"",
             (int)x->policy, own ? "2.6" : "1.3");
    for (size_t i = 0; i < x->n_samples; i++)
        str_addf(out, "%s%.1f,%.1f", i ? " " : "",
                 f->x0 + f->width * seconds(x->samples[i].at_us) / f->span,
                 f->y0 + f->height * (1 - x->samples[i].jobs / f->most));
    str_addf(out, "\"><title>%s</title></polyline>\n",
             replay_policy_name(x->policy));
}

void plot_room(const struct replay_report *r, struct str *out)
{
    struct frame f = {
        LINES_LEFT, 8, WIDTH - LINES_LEFT - 24, LINES_HEIGHT - LINES_BOTTOM - 8,
        1,          1};
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->results[i].n_samples; k++) {
            const struct replay_sample *s = &r->results[i].samples[k];
            f.most = fmax(f.most, s->jobs);
            f.span = fmax(f.span, seconds(s->at_us));
        }
    double tick = fmax(tick_of(f.most), 1);
    f.most = ceil(f.most / tick) * tick;
    begin_svg(WIDTH, LINES_HEIGHT, "8-pair jobs that still fit, over time",
              out);
    axes(&f, tick, out);
    for (size_t i = 0; i < r->n; i++)
        line(&f, &r->results[i], out);
    str_add(out, "</svg>\n");
}
