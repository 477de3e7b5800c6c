/* simcard - a card's runtime, simulated: keeps sandboxes and containers as
 * containerd does, refuses names that are taken, loses requests and replies,
 * carries out late what it seemed to have lost, reboots.  It stops the test
 * when the rules are broken: an attempt made twice, containers of one pod
 * running in two sandboxes, something of others touched. */
#ifndef BIGA_TESTS_LIB_CARD_SIMCARD_H
#define BIGA_TESTS_LIB_CARD_SIMCARD_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/act/machine/machine.h"

enum { SIMCARD_OBJECTS = 64, SIMCARD_MADE = 1024 };

struct simcard_faults {
    unsigned lose_request, lose_reply, late; /* per thousand calls */
    unsigned refuse, full;
    unsigned cut; /* per thousand lost replies: what was made is broken, what
                   * was started is not */
    bool no_image, no_registry;
    bool other_arch; /* of the registry's image */
    bool vanishes;   /* an image, once it was pulled */
    bool keeps;      /* containers: none can be removed */
};

struct simcard_sandbox {
    char id[16];
    uint32_t attempt;
    bool ready, late;
};
struct simcard_container {
    char id[16], sandbox[16], name[16];
    uint32_t attempt;
    enum cri_container_state state;
    int32_t exit_code;
    bool late;
    bool broken; /* it cannot be started */
    bool cut;    /* it ended before it ran */
};
/* What was ever made under a name. */
struct simcard_made {
    char name[16]; /* "" a sandbox */
    uint32_t attempt;
    bool noted; /* by the other side, for good */
};

struct simcard {
    uint64_t random;
    struct simcard_faults faults;
    struct simcard_sandbox sandboxes[SIMCARD_OBJECTS];
    struct simcard_container containers[SIMCARD_OBJECTS];
    size_t n_sandboxes, n_containers;
    struct simcard_made made[SIMCARD_MADE];
    size_t n_made;
    unsigned next_id, n_calls;
    bool had_late; /* two sandboxes may have lived for a while */
    bool pulled;   /* an image */
    int64_t image_uid;
    const char *image_username; /* NULL: none */
};

uint64_t simcard_random(struct simcard *c, uint64_t n); /* 0 … n-1 */
/* Carry out a step (not WAIT or LIST) as the place would. Texts of the result
 * are the simcard's. */
struct machine_result simcard_do(struct simcard *c, const struct machine *m,
                                 const struct machine_step *step);
void simcard_list(struct simcard *c, struct machine_found *ret_found);
/* Requests that seemed lost are carried out. */
void simcard_settle(struct simcard *c);
/* The other side has written down that this was made. */
void simcard_noted(struct simcard *c, const char *name, uint32_t attempt);
void simcard_reboot(struct simcard *c, bool forgets);
/* A running container ends; false when none runs. */
bool simcard_exit_one(struct simcard *c, int32_t exit_code);
size_t simcard_n_ready(const struct simcard *c);

#endif
