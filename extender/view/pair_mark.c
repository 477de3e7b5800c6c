#include "extender/view/pair_mark.h"

#include <inttypes.h>

#include "extender/achieved/achieved.h"
#include "extender/judge/alignment.h"
#include "lib/base/text.h"

enum {
    CELL_WIDTH = 36,
    CELL_HEIGHT = 18,
    MARK = 10,
    TEXT_MAX = 4096,
};

/* What is achieved when it is less than promised; else NULL. */
static const char *find_loss(const struct job_view *v, const struct job_pair *p)
{
    cleanup_with(achieved_report) struct achieved_report *report = NULL;
    struct achieved x;
    if (!v->achieved || p->place->held)
        return NULL;
    report = achieved_book_get(v->achieved, p->place->node);
    achieved_judge(v->snapshot, p->place, report, &x, NULL);
    return x.state == ACHIEVED_LOST ? achieved_word(&x) : NULL;
}

static const char *class_of(const struct job_pair *p, const char *loss)
{
    if (loss)
        return "ill";
    if (!p->bound)
        return "kept";
    return p->aligned ? "near" : "far";
}

static void begin(const struct job_pair *p, const char *loss, struct str *out)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    char rank[16];
    (void)snprintf(rank, sizeof rank, "%" PRId32, p->rank);
    drawing_group(out, "pair", rank);
    str_addf(&text, "pair %s, %s, %s ", rank,
             p->bound ? "bound" : "its place is held",
             p->aligned ? "aligned," : "not aligned,");
    alignment_tell(p->place, &text);
    if (loss)
        str_addf(&text, "; achieved: %s", loss);
    text_escape(str_text(&text), out);
    drawing_told(out);
}

static const char *card_text(const struct allocation *a)
{
    if (a->n_cards == 0)
        return "no card";
    return a->card_pci && *a->card_pci[0] ? a->card_pci[0] : a->cards[0];
}

void pair_mark_line(const struct job_view *v, const struct job_pair *p, int x,
                    int y, struct str *out)
{
    const char *loss = find_loss(v, p);
    const struct box mark = {x, y - MARK + 1, MARK, MARK};
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    begin(p, loss, out);
    drawing_rect(out, class_of(p, loss), &mark, 2);
    str_addf(&text, "%" PRId32, p->rank);
    drawing_text(out, "b", x + MARK + 8, y, str_text(&text), 16);
    str_reset(&text);
    str_add(&text, card_text(p->place));
    if (p->place->n_cards > 1)
        str_addf(&text, " +%d", p->place->n_cards - 1);
    drawing_text(out, "", x + MARK + 60, y, str_text(&text), 20);
    str_reset(&text);
    str_addf(&text, "%s%s%s%s", alignment_word(v->snapshot, p->place),
             p->bound ? "" : " held", loss ? " lost: " : "", loss ? loss : "");
    drawing_text(out, loss ? "bad e" : "d e", x + PAIR_MARK_LINE_WIDTH, y,
                 str_text(&text), 24);
    drawing_group_end(out);
}

void pair_mark_cell(const struct job_view *v, const struct job_pair *p, int x,
                    int y, struct str *out)
{
    const struct box box = {x, y, CELL_WIDTH, CELL_HEIGHT};
    const char *loss = find_loss(v, p);
    char rank[16];
    (void)snprintf(rank, sizeof rank, "%" PRId32, p->rank);
    begin(p, loss, out);
    drawing_rect(out, class_of(p, loss), &box, 2);
    drawing_text(out, "d e", x + CELL_WIDTH - 3, y + 13, rank, 16);
    drawing_group_end(out);
}
