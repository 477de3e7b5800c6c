/* pair_mark - one pair of a job in a drawing, as a line or as a cell: its rank,
 * its card, and how close its devices are, as promised and as achieved.
 * Pure. */
#ifndef BIGA_EXTENDER_VIEW_PAIR_MARK_H
#define BIGA_EXTENDER_VIEW_PAIR_MARK_H

#include "extender/view/drawing.h"
#include "extender/view/job_view.h"

enum {
    PAIR_MARK_LINE_WIDTH = 270,
    PAIR_MARK_CELL_STEP = 38, /* from one to the next */
};

/* `y`: the base of the line. */
void pair_mark_line(const struct job_view *v, const struct job_pair *p, int x,
                    int y, struct str *out);
void pair_mark_cell(const struct job_view *v, const struct job_pair *p, int x,
                    int y, struct str *out);

#endif
