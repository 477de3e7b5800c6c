/* reload - a thread that looks after files which may change while the
 * extender runs. */
#ifndef BIGA_EXTENDER_APP_RELOAD_H
#define BIGA_EXTENDER_APP_RELOAD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

enum { RELOAD_ITEMS_MAX = 8 };

struct reload_item {
    void (*poll)(void *ctx); /* on the thread; may wait for the writer */
    void *ctx;
};

struct reload;
/* Calls each item's poll every `every_ms`, from then on. */
int reload_start(const struct reload_item *items, size_t n, int64_t every_ms,
                 struct reload **ret_reload, struct error *err);
void reload_stop(struct reload *r); /* NULL allowed; waits for the thread */
DEFINE_CLEANUP(reload, struct reload *, reload_stop)

#endif
