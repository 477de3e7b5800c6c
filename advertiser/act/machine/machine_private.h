/* What the parts of the machine share: machine.c chooses the next step (and
 * machine_image.c that of an image), machine_found.c keeps what is there,
 * machine_done.c takes results in and says what failures mean. */
#ifndef BIGA_ADVERTISER_ACT_MACHINE_MACHINE_PRIVATE_H
#define BIGA_ADVERTISER_ACT_MACHINE_MACHINE_PRIVATE_H

#include "advertiser/act/machine/machine.h"

void machine_fail(struct machine *m, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* NULL when there is none. */
struct machine_sandbox *machine_sandbox_of(struct machine *m, const char *id);
struct machine_container *machine_container_of(struct machine *m,
                                               const char *id);
/* The newest container of that name in a sandbox. */
struct machine_container *machine_newest(const struct machine *m,
                                         const char *sandbox_id,
                                         const char *name);
/* The newest sandbox, when it lives. */
struct machine_sandbox *machine_current(const struct machine *m);
void machine_drop_sandbox(struct machine *m, const char *id);
void machine_drop_container(struct machine *m, const char *id);
/* What is found counts as announced. */
void machine_adopt(struct machine *m);

/* The step is one for the unit; true. */
bool machine_step_unit(struct machine_step *step, enum machine_kind kind,
                       const struct machine *m, const struct machine_unit *u);
/* It is not due later. */
void machine_step_wait(struct machine_step *step, int64_t due_ms);
/* The image of a unit is to be there.  False when it is; a step is chosen, or
 * it is waited for, or the pod has failed, when it is not. */
bool machine_next_image(struct machine *m, struct machine_unit *u, int64_t now,
                        struct machine_step *step);

/* Does a container come back that ended so? */
bool machine_restarts(const struct machine *m, bool init, int32_t exit_code);

#endif
