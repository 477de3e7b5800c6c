/* console_map - the nodes of a fleet under their leaves and spines, each a cell
 * that shows what is free, and what is ill.  Pure. */
#ifndef BIGA_EXTENDER_CONSOLE_CONSOLE_MAP_H
#define BIGA_EXTENDER_CONSOLE_CONSOLE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/gauge/fleet_tally.h"
#include "extender/state/snapshot.h"
#include "extender/view/job_view.h"
#include "lib/base/str.h"

/* Of more nodes the leaves alone are drawn. */
enum { CONSOLE_CELLS_MAX = 5000 };

/* How a node is, in short. */
struct console_health {
    uint32_t cards, idle, gpus, free_gpus;
    bool known;     /* of the past: something is remembered of it */
    bool ill;       /* it is not ready, or a card of it is lost */
    bool drained;   /* some card is */
    bool unaligned; /* a pair on it is placed worse than it prefers, or has
                     * not what it was promised */
};
void console_health_judge(const struct snapshot *s, struct achieved_book *book,
                          const struct node *node,
                          struct console_health *ret_health);
/* What is wrong, as a sentence; nothing when nothing is. */
void console_health_explain(const struct snapshot *s,
                            struct achieved_book *book, const struct node *node,
                            struct str *out);

struct console_map {
    const struct snapshot *snapshot;
    struct achieved_book *achieved;
    const struct job_view *job; /* only its leaves, and its nodes stand out;
                                 * NULL: all */
    const struct console_health *healths; /* as they were, by node of the
                                           * snapshot; NULL: as they are */
    const struct fleet_leaf *leaves; /* without cells these are drawn, of the
                                      * snapshot's fleet_counts; NULL: they are
                                      * counted */
};
void console_map_write(const struct console_map *map, struct str *out);
/* What the colours mean. */
void console_map_write_legend(struct str *out);

#endif
