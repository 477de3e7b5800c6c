/* achieved_watch - the thread that looks, after each change of what nodes tell
 * and of the snapshot, which pods got less than they were promised. */
#ifndef BIGA_EXTENDER_ACHIEVED_ACHIEVED_WATCH_H
#define BIGA_EXTENDER_ACHIEVED_ACHIEVED_WATCH_H

#include "extender/achieved/achieved_book.h"
#include "extender/achieved/achieved_marks.h"
#include "extender/keep/writer.h"

enum {
    ACHIEVED_PAUSE_MS = 1000,     /* between two looks */
    ACHIEVED_AGAIN_MS = 5 * 60000 /* lost pods are told again, for whoever
                                   * could not tell of them before */
};

struct achieved_watch;
struct achieved_watch_config {
    struct writer *writer;
    struct achieved_book *book;
    struct achieved_told told; /* called by the thread, without a lock */
};
int achieved_watch_start(const struct achieved_watch_config *config,
                         struct achieved_watch **ret_watch, struct error *err);
/* Before writer and book are gone.  NULL allowed */
void achieved_watch_stop(struct achieved_watch *w);
DEFINE_CLEANUP(achieved_watch, struct achieved_watch *, achieved_watch_stop)

#endif
