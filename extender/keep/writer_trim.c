/* Memory that hosts leave behind as they join or go. */
#include "extender/keep/writer_private.h"
#include "lib/io/footprint.h"

/* Every snapshot in between had a roster and pages of its own.  Once as many
 * nodes are there as at the sweep before, and a tenth more or less than when
 * it was last done, what is free is given back. */
void trim_after_change(struct writer *w)
{
    size_t n = w->current->n_nodes, last = w->trimmed_nodes;
    bool settled = n == w->swept_nodes;
    w->swept_nodes = n;
    if (!settled || (n > last ? n - last : last - n) <= last / 10)
        return;
    w->trimmed_nodes = n;
    footprint_trim();
}
