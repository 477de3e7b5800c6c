/* cardexec - biga-card of a remote without a remote: its words for volumes are
 * carried out in this process, in folders of this machine. */
#ifndef BIGA_TESTS_LIB_CARD_CARDEXEC_H
#define BIGA_TESTS_LIB_CARD_CARDEXEC_H

#include <stdbool.h>

#include "advertiser/cri/cri_container.h"
#include "lib/base/error.h"

struct cardexec;
struct cardexec *cardexec_create(void);
void cardexec_destroy(struct cardexec *c);

/* A volume_exec_f; `ctx` is the cardexec. */
int cardexec_run(void *ctx, const char *remote, unsigned lane,
                 const char *const *argv, size_t n_argv, unsigned ms,
                 struct cri_exec *ret_exec, struct error *err);

/* The next `times` calls with that word fail with -code, before they do
 * anything; below 0: afterwards.  "": of any word. */
void cardexec_fail(struct cardexec *c, const char *word, int code, int times);
/* Calls wait until they are let go. */
void cardexec_hold(struct cardexec *c, bool hold);
/* How many wait so, once it is at least `n`. */
void cardexec_await_held(struct cardexec *c, unsigned n);
/* Calls with that word so far. */
unsigned cardexec_calls(struct cardexec *c, const char *word);
/* The longest arguments of a call so far, in bytes as Linux counts them. */
size_t cardexec_args(struct cardexec *c);
/* Was `text` ever in the arguments? */
bool cardexec_seen(struct cardexec *c, const char *text);

#endif
