/* job_drawing - one job as an SVG drawing: leaves, their nodes, and the pairs
 * there with how close their devices are, as promised and as achieved.  Large
 * jobs are drawn with less of each pair.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_JOB_DRAWING_H
#define BIGA_EXTENDER_VIEW_JOB_DRAWING_H

#include "extender/view/drawing.h"
#include "extender/view/job_view.h"

enum {
    JOB_DRAWING_LINES = 256,   /* pairs that get a line each */
    JOB_DRAWING_CELLS = 4096,  /* pairs that get a cell each; of larger jobs
                               * leaves are drawn alone */
    JOB_DRAWING_LEAVES = 1024, /* the rest is counted */
};

void job_drawing_write(const struct job_view *v, enum drawing_form form,
                       struct str *out);

#endif
