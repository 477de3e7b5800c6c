/* The fabric as an SVG drawing: domains as frames, leaves as blocks, a square
 * for every host, coloured by its idle cards. */
#include <string.h>

#include "cli/verb/fabric.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "model/fabric/fabric.h"

enum {
    WIDTH = 1280, /* that rows are filled to */
    MARGIN = 20,
    PAD = 12, /* inside of frames and blocks */
    GAP = 10, /* between them */
    CELL = 12,
    CELL_STEP = 14,
    TITLE = 20,   /* height of a line of text */
    HEAD = 88,    /* of the whole drawing */
    LETTER = 8,   /* width of a letter of a title, about */
    LETTERS = 18, /* of a leaf's name, the rest is in its tooltip */
    COLUMNS_MIN = 5,
    BAR = 4,
};

struct box {
    int x, y, w, h; /* place within the parent's, or the drawing */
};

struct drawing {
    const struct picture *p;
    struct box *boxes; /* by domain */
    struct box unknown;
    struct str *out;
};

/* --- where everything goes ---------------------------------------------- */

static int columns_for(size_t n, int width)
{
    int columns = COLUMNS_MIN, most = (width - 2 * PAD) / CELL_STEP;
    while (columns < most && (size_t)columns * (size_t)columns < 2 * n)
        columns++;
    return columns;
}

static int rows_for(size_t n, int columns)
{
    return (int)((n + (size_t)columns - 1) / (size_t)columns);
}

/* A block of hosts under two lines of text and a bar. */
static struct box block_box(size_t n_hosts, size_t letters)
{
    int columns = columns_for(n_hosts, WIDTH);
    int text = (int)(letters < LETTERS ? letters : LETTERS) * LETTER;
    struct box box = {.w = columns * CELL_STEP};
    box.w = 2 * PAD + (box.w > text ? box.w : text);
    box.h = 2 * PAD + 2 * TITLE + BAR + rows_for(n_hosts, columns) * CELL_STEP;
    return box;
}

static int32_t next_child(const struct picture *p, int32_t parent, int32_t at)
{
    if (at != PICTURE_NONE)
        return p->domains[at].next_sibling;
    return parent == PICTURE_NONE ? p->first_root
                                  : p->domains[parent].first_child;
}

static struct box measure(struct drawing *d, int32_t at, int width);

/* The children of a domain (or all without a parent) in rows; the size that
 * they take. */
static struct box flow(struct drawing *d, int32_t parent, int left, int top,
                       int width)
{
    struct box all = {0};
    int x = 0, y = 0, row = 0;
    for (int32_t c = next_child(d->p, parent, PICTURE_NONE); c >= 0;
         c = next_child(d->p, parent, c)) {
        struct box box = measure(d, c, width);
        if (x > 0 && x + box.w > width) {
            x = 0;
            y += row + GAP;
            row = 0;
        }
        box.x = left + x;
        box.y = top + y;
        d->boxes[c] = box;
        x += box.w + GAP;
        row = box.h > row ? box.h : row;
        all.w = x - GAP > all.w ? x - GAP : all.w;
        all.h = y + row;
    }
    return all;
}

static struct box measure(struct drawing *d, int32_t at, int width)
{
    const struct picture_domain *domain = &d->p->domains[at];
    if (domain->first_child == PICTURE_NONE)
        return block_box(domain->n_hosts, strlen(domain->name));
    struct box inner = flow(d, at, PAD, PAD + TITLE, width - 2 * PAD);
    int text = (int)(strlen(domain->name) + 40) * LETTER;
    inner.w = 2 * PAD + (inner.w > text ? inner.w : text);
    inner.h += 2 * PAD + TITLE;
    return inner;
}

/* --- writing it --------------------------------------------------------- */

/* Plain rules, not variables: not every viewer knows those. */
static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,sans-serif;fill:#1f2328}\n"
    ".h{font-size:18px;font-weight:600}.b{font-weight:600}\n"
    ".d{fill:#59636e;font-size:11px}.bg{fill:#fff}\n"
    ".f{fill:#f3f5f8;stroke:#c8d1da}.l{fill:#fff;stroke:#c8d1da}\n"
    ".a{fill:#0757ba}.m{fill:#4493f8}.w{fill:#b3d7ff}.n{fill:#e3b264}\n"
    ".u,.z{fill:none;stroke:#a3aeb9}.u{stroke-dasharray:2 2}\n"
    "@media(prefers-color-scheme:dark){\n"
    "text{fill:#e6edf3}.d{fill:#9198a1}.bg{fill:#0d1117}\n"
    ".f{fill:#151b23;stroke:#3d444d}.l{fill:#0d1117;stroke:#3d444d}\n"
    ".a{fill:#79c0ff}.m{fill:#3a84d8}.w{fill:#1d4578}.n{fill:#8a5d14}\n"
    ".u,.z{stroke:#656c76}}\n"
    "</style>\n";

static const char *cell_class(int32_t cards, int32_t idle)
{
    if (cards < 0)
        return "u";
    if (cards == 0)
        return "z";
    if (idle <= 0)
        return "n";
    if (idle == cards)
        return "a";
    return 2 * idle >= cards ? "m" : "w";
}

/* A leaf, or the hosts of unknown place. */
struct block {
    const char *name;
    size_t first, n;
    uint64_t cards, idle;
};

static void draw_cells(struct drawing *d, const struct block *b, int x, int y)
{
    int columns = columns_for(b->n, WIDTH);
    for (size_t i = 0; i < b->n; i++) {
        const struct picture_host *h = &d->p->hosts[b->first + i];
        const char *class = cell_class(h->cards, h->idle);
        int half = *class == 'u' || *class == 'z'; /* strokes stay inside */
        str_addf(d->out,
                 "<rect class=\"%s\" x=\"%d%s\" y=\"%d%s\" width=\"%d\" "
                 "height=\"%d\" rx=\"2\"><title>",
                 class, x + (int)(i % (size_t)columns) * CELL_STEP,
                 half ? ".5" : "", y + (int)(i / (size_t)columns) * CELL_STEP,
                 half ? ".5" : "", CELL - half, CELL - half);
        text_escape(h->name, d->out);
        if (h->cards < 0)
            str_add(d->out, ": has not published");
        else if (h->cards == 0)
            str_add(d->out, ": no card");
        else
            str_addf(d->out, ": %d of %d cards idle", (int)h->idle,
                     (int)h->cards);
        str_add(d->out, "</title></rect>\n");
    }
}

/* How many of the cards are idle, as a bar. */
static void draw_bar(struct drawing *d, const struct box *box, int x, int y,
                     const struct block *b)
{
    int width = box->w - 2 * PAD;
    int part = b->cards ? (int)((uint64_t)width * b->idle / b->cards) : 0;
    if (!b->cards)
        return;
    str_addf(d->out,
             "<rect class=\"n\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
             "<rect class=\"a\" x=\"%d\" y=\"%d\" width=\"%d\" "
             "height=\"%d\"/>\n",
             x, y, width, BAR - 1, x, y, part, BAR - 1);
}

static void draw_block(struct drawing *d, const struct box *box, int x, int y,
                       const struct block *b)
{
    int text = x + PAD;
    str_addf(d->out,
             "<rect class=\"l\" x=\"%d.5\" y=\"%d.5\" width=\"%d\" "
             "height=\"%d\" rx=\"5\"/>\n<text class=\"b\" x=\"%d\" y=\"%d\">",
             x, y, box->w, box->h, text, y + PAD + 10);
    text_escape_short(b->name, LETTERS, d->out);
    str_add(d->out, "<title>");
    text_escape(b->name, d->out);
    str_addf(d->out, "</title></text>\n<text class=\"d\" x=\"%d\" y=\"%d\">",
             text, y + PAD + TITLE + 6);
    if (b->cards)
        str_addf(d->out, "%llu/%llu idle", (unsigned long long)b->idle,
                 (unsigned long long)b->cards);
    else
        str_addf(d->out, "%zu host%s", b->n, b->n == 1 ? "" : "s");
    str_add(d->out, "</text>\n");
    draw_bar(d, box, text, y + PAD + TITLE + 11, b);
    draw_cells(d, b, text, y + PAD + 2 * TITLE + BAR);
}

static void draw_domain(struct drawing *d, int32_t at, int x, int y)
{
    const struct picture_domain *domain = &d->p->domains[at];
    const struct box *box = &d->boxes[at];
    x += box->x;
    y += box->y;
    if (domain->first_child == PICTURE_NONE) {
        struct block block = {domain->name, domain->first_host, domain->n_hosts,
                              domain->cards, domain->idle};
        draw_block(d, box, x, y, &block);
        return;
    }
    str_addf(d->out,
             "<rect class=\"f\" x=\"%d.5\" y=\"%d.5\" width=\"%d\" "
             "height=\"%d\" rx=\"8\"/>\n<text x=\"%d\" y=\"%d\">"
             "<tspan class=\"b\">%s ",
             x, y, box->w, box->h, x + PAD, y + PAD + 10,
             fabric_tier_name(domain->tier));
    text_escape(domain->name, d->out);
    str_addf(d->out, "</tspan><tspan class=\"d\" dx=\"8\">%u host%s",
             domain->hosts, domain->hosts == 1 ? "" : "s");
    if (domain->cards)
        str_addf(d->out, ", %u of %u cards idle", domain->idle, domain->cards);
    str_add(d->out, "</tspan></text>\n");
    for (int32_t c = domain->first_child; c >= 0;
         c = d->p->domains[c].next_sibling)
        draw_domain(d, c, x, y);
}

/* --- head and legend ---------------------------------------------------- */

static void add_sums(const struct picture_host *hosts, size_t n,
                     uint64_t *cards, uint64_t *idle)
{
    for (size_t i = 0; i < n; i++) {
        *cards += hosts[i].cards > 0 ? (uint64_t)hosts[i].cards : 0;
        *idle += hosts[i].idle > 0 ? (uint64_t)hosts[i].idle : 0;
    }
}

static void draw_legend(struct drawing *d)
{
    static const struct {
        const char *class, *text;
    } kinds[] = {
        {"a", "all cards idle"}, {"m", "half or more"},
        {"w", "fewer"},          {"n", "none idle"},
        {"z", "no card"},        {"u", "has not published"},
    };
    int x = MARGIN;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        str_addf(d->out,
                 "<rect class=\"%s\" x=\"%d.5\" y=\"61.5\" width=\"11\" "
                 "height=\"11\" rx=\"2\"/><text class=\"d\" x=\"%d\" "
                 "y=\"71\">%s</text>\n",
                 kinds[i].class, x, x + CELL_STEP + 4, kinds[i].text);
        x += CELL_STEP + 20 + (int)strlen(kinds[i].text) * LETTER;
    }
}

static void draw_head(struct drawing *d)
{
    const struct picture *p = d->p;
    uint64_t cards = 0, idle = 0;
    size_t leaves = 0;
    for (size_t i = 0; i < p->n_domains; i++)
        leaves += p->domains[i].tier == 0;
    add_sums(p->hosts, p->n_hosts, &cards, &idle);
    str_addf(d->out,
             "<text class=\"h\" x=\"%d\" y=\"30\">Fabric</text>\n"
             "<text class=\"d\" x=\"%d\" y=\"50\">%zu host%s on %zu "
             "lea%s; %llu of %llu cards idle</text>\n",
             MARGIN, MARGIN, p->n_hosts - p->n_unknown,
             p->n_hosts - p->n_unknown == 1 ? "" : "s", leaves,
             leaves == 1 ? "f" : "ves", (unsigned long long)idle,
             (unsigned long long)cards);
    draw_legend(d);
}

static void draw_unknown(struct drawing *d)
{
    struct block block = {"unknown place", 0, d->p->n_unknown, 0, 0};
    add_sums(d->p->hosts, block.n, &block.cards, &block.idle);
    draw_block(d, &d->unknown, d->unknown.x, d->unknown.y, &block);
}

void picture_svg(const struct picture *p, struct str *out)
{
    cleanup_free struct box *boxes = xcalloc(p->n_domains + 1, sizeof *boxes);
    struct drawing d = {.p = p, .boxes = boxes, .out = out};
    struct box all = flow(&d, PICTURE_NONE, MARGIN, HEAD, WIDTH - 2 * MARGIN);
    int width = all.w, bottom = HEAD + all.h;
    if (p->n_unknown) {
        d.unknown = block_box(p->n_unknown, LETTERS);
        d.unknown.x = MARGIN;
        d.unknown.y = bottom + (all.h ? GAP : 0);
        bottom = d.unknown.y + d.unknown.h;
        width = d.unknown.w > width ? d.unknown.w : width;
    }
    width = (width < WIDTH / 2 ? WIDTH / 2 : width) + 2 * MARGIN;
    str_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
             "height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>Fabric</title>\n%s"
             "<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n",
             width, bottom + MARGIN, width, bottom + MARGIN, style);
    draw_head(&d);
    for (int32_t i = next_child(p, PICTURE_NONE, PICTURE_NONE); i >= 0;
         i = next_child(p, PICTURE_NONE, i))
        draw_domain(&d, i, 0, 0);
    if (p->n_unknown)
        draw_unknown(&d);
    str_add(out, "</svg>\n");
}
