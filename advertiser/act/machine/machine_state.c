/* What state a pod is in, and which may follow. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/machine/machine_private.h"
#include "lib/base/mem.h"

/* --- states ------------------------------------------------------------- */

#define TO(state) (1U << (state))
static const unsigned moves[] = {
    [ACT_WANTED] = TO(ACT_PREPARING) | TO(ACT_CREATING) | TO(ACT_STOPPING) |
                   TO(ACT_FAILED),
    [ACT_PREPARING] = TO(ACT_PULLING) | TO(ACT_CREATING) | TO(ACT_STOPPING) |
                      TO(ACT_FAILED),
    [ACT_PULLING] = TO(ACT_PREPARING) | TO(ACT_CREATING) | TO(ACT_STOPPING) |
                    TO(ACT_FAILED),
    [ACT_CREATING] = TO(ACT_PREPARING) | TO(ACT_PULLING) | TO(ACT_RUNNING) |
                     TO(ACT_STOPPING) | TO(ACT_FAILED),
    /* its sandbox is gone: from the beginning, with the next attempt */
    [ACT_RUNNING] = TO(ACT_PREPARING) | TO(ACT_CREATING) | TO(ACT_STOPPING) |
                    TO(ACT_FAILED),
    [ACT_STOPPING] = TO(ACT_GONE),
    [ACT_GONE] = 0,
    [ACT_FAILED] = TO(ACT_STOPPING),
};

bool machine_may(enum act_state from, enum act_state to)
{
    return (size_t)from < ARRAY_LEN(moves) && (moves[from] & TO(to));
}

void machine_move(struct machine *m, enum act_state state)
{
    if (!machine_may(m->intent->state, state))
        return;
    m->intent->state = state;
    m->changed = true;
}

static void say(struct machine *m, const char *reason, const char *fmt,
                va_list args)
{
    char message[ACT_MESSAGE_MAX];
    struct intent *i = m->intent;
    (void)vsnprintf(message, sizeof message, fmt, args);
    if (strcmp(i->reason, reason) == 0 && strcmp(i->message, message) == 0)
        return;
    (void)snprintf(i->reason, sizeof i->reason, "%s", reason);
    memcpy(i->message, message, sizeof message);
    m->changed = true;
}

void machine_say(struct machine *m, const char *reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(m, reason, fmt, args);
    va_end(args);
}

void machine_quiet(struct machine *m)
{
    m->changed |= m->intent->reason[0] || m->intent->message[0];
    m->intent->reason[0] = m->intent->message[0] = '\0';
}

void machine_fail(struct machine *m, const char *reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(m, reason, fmt, args);
    va_end(args);
    machine_move(m, ACT_FAILED);
    m->failures = 0;
    m->retry_ms = 0;
    m->unsaved = true;
}

static const char *const kind_names[] = {
    [MACHINE_WAIT] = "wait",
    [MACHINE_LIST] = "list",
    [MACHINE_PREPARE] = "prepare",
    [MACHINE_LOOK_IMAGE] = "look-image",
    [MACHINE_PULL] = "pull",
    [MACHINE_RUN_SANDBOX] = "run-sandbox",
    [MACHINE_CREATE] = "create",
    [MACHINE_START] = "start",
    [MACHINE_LOOK] = "look",
    [MACHINE_STOP] = "stop",
    [MACHINE_REMOVE] = "remove",
    [MACHINE_STOP_SANDBOX] = "stop-sandbox",
    [MACHINE_REMOVE_SANDBOX] = "remove-sandbox",
    [MACHINE_CLEAN] = "clean",
};

const char *machine_kind_name(enum machine_kind kind)
{
    return (size_t)kind < ARRAY_LEN(kind_names) ? kind_names[kind] : "unknown";
}
