/* The next step of a pod. */
#include "advertiser/act/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/machine/machine_private.h"
#include "lib/base/mem.h"

/* --- making one --------------------------------------------------------- */

static void add_unit(struct machine *m, const struct podspec_container *c,
                     bool init)
{
    struct intent_container *noted = intent_container(m->intent, c->name);
    if (!noted) /* podspec has fewer; an intent of others is full */
        return;
    m->units[m->n_units++] = (struct machine_unit){
        .name = c->name,
        .image = c->image,
        .pull = c->pull,
        .init = init,
        /* podspec knows of a runAsUser that is root's */
        .non_root = c->run_as_non_root && c->run_as_user < 0,
        .noted = noted,
        .running_ms = -1,
    };
}

void machine_init(struct machine *m, struct intent *intent,
                  const struct podspec *spec, const char *boot)
{
    *m = (struct machine){
        .intent = intent,
        .spec = spec,
        .boot = boot,
        .stop_ms = -1,
        .changed = true,
    };
    if (!spec)
        return;
    m->units = xcalloc(spec->n_init + spec->n_containers, sizeof *m->units);
    for (size_t i = 0; i < spec->n_init; i++)
        add_unit(m, &spec->init[i], true);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_unit(m, &spec->containers[i], false);
}

void machine_fini(struct machine *m)
{
    machine_found_fini(&m->found);
    free(m->units);
    *m = (struct machine){0};
}

bool machine_restarts(const struct machine *m, bool init, int32_t exit_code)
{
    if (!m->spec || m->spec->restart == PODSPEC_RESTART_NEVER)
        return false;
    return exit_code != 0 ||
           (!init && m->spec->restart == PODSPEC_RESTART_ALWAYS);
}

/* --- steps -------------------------------------------------------------- */

static void take_id(char ret_id[CRI_ID_MAX + 1], const char *id)
{
    (void)snprintf(ret_id, CRI_ID_MAX + 1, "%s", id);
}

static bool step_on(struct machine_step *step, enum machine_kind kind,
                    const char *id)
{
    step->kind = kind;
    take_id(step->id, id);
    return true;
}

bool machine_step_unit(struct machine_step *step, enum machine_kind kind,
                       const struct machine *m, const struct machine_unit *u)
{
    step->kind = kind;
    step->unit = (size_t)(u - m->units);
    return true;
}

void machine_step_wait(struct machine_step *step, int64_t due_ms)
{
    if (due_ms < step->due_ms)
        step->due_ms = due_ms;
}

/* --- ending ------------------------------------------------------------- */

static bool lives(const struct machine_container *c)
{
    return c->state == CRI_RUNNING || c->state == CRI_UNKNOWN;
}

bool machine_found_lives(const struct machine_found *f)
{
    bool any = false;
    for (size_t i = 0; i < f->n_sandboxes; i++)
        any |= f->sandboxes[i].ready;
    for (size_t i = 0; i < f->n_containers; i++)
        any |= lives(&f->containers[i]);
    return any;
}

static int64_t grace_ms(const struct machine *m)
{
    int64_t s = m->intent->grace_s;
    if (s < 0)
        s = m->spec ? (int64_t)m->spec->grace_s : 30;
    return (s < PODSPEC_GRACE_S_MAX ? s : PODSPEC_GRACE_S_MAX) * 1000;
}

/* Every container is told to end, all at once; who still runs when the grace
 * is over is killed.  False when none runs any more. */
static bool next_halt(struct machine *m, int64_t now, struct machine_step *step)
{
    if (m->stop_ms < 0)
        m->stop_ms = now;
    int64_t end = m->stop_ms + grace_ms(m);
    bool waits = false;
    for (size_t i = 0; i < m->found.n_containers; i++) {
        struct machine_container *c = &m->found.containers[i];
        if (!lives(c))
            continue;
        if (now >= end || c->state == CRI_UNKNOWN)
            return step_on(step, MACHINE_STOP, c->id);
        if (!c->told) {
            step->grace_s = (uint32_t)((end - now + 999) / 1000);
            return step_on(step, MACHINE_STOP, c->id);
        }
        waits = true;
    }
    if (waits)
        machine_step_wait(step, end);
    return waits;
}

static bool next_remove(struct machine *m, struct machine_step *step)
{
    if (m->found.n_sandboxes > 0) {
        const struct machine_sandbox *s = &m->found.sandboxes[0];
        return step_on(step,
                       s->ready ? MACHINE_STOP_SANDBOX : MACHINE_REMOVE_SANDBOX,
                       s->id);
    }
    if (m->found.n_containers > 0)
        return step_on(step, MACHINE_REMOVE, m->found.containers[0].id);
    return false;
}

static void next_end(struct machine *m, int64_t now, struct machine_step *step)
{
    if (m->intent->state != ACT_STOPPING) {
        m->failures = 0;
        m->retry_ms = 0;
    }
    machine_move(m, ACT_STOPPING);
    if (next_halt(m, now, step) || next_remove(m, step))
        return;
    if (!m->cleaned) {
        step->kind = MACHINE_CLEAN;
        return;
    }
    machine_move(m, ACT_GONE);
    if (!m->left)
        machine_quiet(m);
    m->unsaved = true;
}

/* It has failed: nothing of it runs on, what it left stays to be read. */
static void next_failed(struct machine *m, int64_t now,
                        struct machine_step *step)
{
    if (next_halt(m, now, step))
        return;
    for (size_t i = 0; i < m->found.n_sandboxes; i++)
        if (m->found.sandboxes[i].ready) {
            (void)step_on(step, MACHINE_STOP_SANDBOX, m->found.sandboxes[i].id);
            return;
        }
}

/* --- what is in the way ------------------------------------------------- */

static bool is_unit(const struct machine *m, const char *name)
{
    for (size_t i = 0; i < m->n_units; i++)
        if (strcmp(m->units[i].name, name) == 0)
            return true;
    return false;
}

static bool is_stray(struct machine *m, const struct machine_container *c,
                     const struct machine_sandbox *current)
{
    if (!machine_sandbox_of(m, c->sandbox_id))
        return true;
    if (!current || strcmp(c->sandbox_id, current->id) != 0)
        return false; /* goes with its sandbox */
    return !is_unit(m, c->name) || machine_newest(m, current->id, c->name) != c;
}

/* Sandboxes of other attempts, containers without a place.  What lives is in
 * the way of the next attempt until it is gone. */
static bool next_junk(struct machine *m, const struct machine_sandbox *current,
                      int64_t now, struct machine_step *step)
{
    bool blocked = false;
    for (size_t i = 0; i < m->found.n_sandboxes; i++) {
        const struct machine_sandbox *s = &m->found.sandboxes[i];
        if (s == current)
            continue;
        if (s->retry_ms <= now)
            return step_on(
                step, s->ready ? MACHINE_STOP_SANDBOX : MACHINE_REMOVE_SANDBOX,
                s->id);
        blocked |= s->ready;
        machine_step_wait(step, s->retry_ms);
    }
    for (size_t i = 0; i < m->found.n_containers; i++) {
        const struct machine_container *c = &m->found.containers[i];
        if (!is_stray(m, c, current))
            continue;
        if (c->retry_ms <= now)
            return step_on(step, lives(c) ? MACHINE_STOP : MACHINE_REMOVE,
                           c->id);
        blocked |= lives(c);
        machine_step_wait(step, c->retry_ms);
    }
    return blocked;
}

/* --- beginning ---------------------------------------------------------- */

/* A new attempt, unless the one that was announced is not known to have been
 * made, and its name is not taken by what cannot be found. */
static void announce_sandbox(struct machine *m, struct machine_step *step)
{
    struct intent *i = m->intent;
    if (i->attempt == 0 || i->sandbox[0] || m->reserved >= MACHINE_RESERVED) {
        i->attempt++;
        i->sandbox[0] = '\0';
        m->reserved = 0;
    }
    (void)snprintf(i->boot, sizeof i->boot, "%s", m->boot);
    step->attempt = i->attempt;
    step->save = true;
}

static void announce_container(struct machine_unit *u,
                               struct machine_step *step)
{
    struct intent_container *c = u->noted;
    if (c->attempt == 0 || c->id[0] || u->reserved >= MACHINE_RESERVED) {
        c->attempt++;
        c->id[0] = '\0';
        c->restarts += c->exited;
        u->reserved = 0;
    }
    step->attempt = c->attempt;
    step->save = true;
}

static void next_sandbox(struct machine *m, int64_t now,
                         struct machine_step *step)
{
    struct intent *i = m->intent;
    if (i->ran && m->spec->restart == PODSPEC_RESTART_NEVER) {
        machine_fail(m, "SandboxLost",
                     "its sandbox on %s ended by itself (the card was "
                     "rebooted?) and restartPolicy is Never: delete the pod "
                     "and apply it again",
                     i->place);
        return;
    }
    if (!m->prepared) {
        machine_move(m, ACT_PREPARING);
        for (size_t k = 0; k < m->n_units; k++) {
            m->units[k].has = IMAGE_UNKNOWN;
            m->units[k].pulled = false;
        }
        step->kind = MACHINE_PREPARE;
        return;
    }
    for (size_t k = 0; k < m->n_units; k++)
        if (machine_next_image(m, &m->units[k], now, step))
            return;
    machine_move(m, ACT_CREATING);
    step->kind = MACHINE_RUN_SANDBOX;
    announce_sandbox(m, step);
}

/* --- containers --------------------------------------------------------- */

enum unit_is { UNIT_STEPS, UNIT_WAITS, UNIT_UP, UNIT_ENDED };

static enum unit_is next_new(struct machine *m, struct machine_unit *u,
                             const char *sandbox_id, int64_t now,
                             struct machine_step *step)
{
    if (u->retry_ms > now) {
        machine_step_wait(step, u->retry_ms);
        return UNIT_WAITS;
    }
    /* its image may take long to come */
    if (machine_next_image(m, u, now, step))
        return u->image_ms > now ? UNIT_WAITS : UNIT_STEPS;
    if (m->intent->state == ACT_PULLING)
        machine_move(m, ACT_CREATING);
    (void)machine_step_unit(step, MACHINE_CREATE, m, u);
    take_id(step->sandbox_id, sandbox_id);
    step->sandbox_attempt = m->intent->attempt;
    announce_container(u, step);
    return UNIT_STEPS;
}

/* It makes room for the next one: not before `due_ms`, nor soon after that was
 * refused. */
static enum unit_is next_anew(const struct machine_container *c, int64_t due_ms,
                              int64_t now, struct machine_step *step)
{
    int64_t due = due_ms > c->retry_ms ? due_ms : c->retry_ms;
    if (due > now) {
        machine_step_wait(step, due);
        return UNIT_WAITS;
    }
    (void)step_on(step, MACHINE_REMOVE, c->id);
    return UNIT_STEPS;
}

static enum unit_is next_exited(struct machine *m, struct machine_unit *u,
                                const struct machine_container *c, int64_t now,
                                struct machine_step *step)
{
    if (!c->looked) {
        (void)machine_step_unit(step, MACHINE_LOOK, m, u);
        (void)step_on(step, MACHINE_LOOK, c->id);
        return UNIT_STEPS;
    }
    if (!c->never_ran && !machine_restarts(m, u->init, u->noted->exit_code))
        return UNIT_ENDED;
    return next_anew(c, u->retry_ms, now, step);
}

/* One whose making was broken off may be there and be broken: containerd 1.6
 * then takes its sandbox's process for 0. */
static enum unit_is next_created(struct machine *m, struct machine_unit *u,
                                 const struct machine_container *c, int64_t now,
                                 struct machine_step *step)
{
    if (c->made) {
        (void)machine_step_unit(step, MACHINE_START, m, u);
        (void)step_on(step, MACHINE_START, c->id);
        return UNIT_STEPS;
    }
    return next_anew(c, 0, now, step);
}

static enum unit_is next_unit(struct machine *m, struct machine_unit *u,
                              const struct machine_sandbox *s, int64_t now,
                              struct machine_step *step)
{
    struct machine_container *c = machine_newest(m, s->id, u->name);
    if (!c)
        return next_new(m, u, s->id, now, step);
    switch (c->state) {
    case CRI_CREATED:
        return next_created(m, u, c, now, step);
    case CRI_RUNNING:
        if (u->running_ms >= 0 && now - u->running_ms >= MACHINE_CALM_MS)
            u->crashes = 0;
        return UNIT_UP;
    case CRI_EXITED:
        return next_exited(m, u, c, now, step);
    case CRI_UNKNOWN:
        break;
    }
    (void)step_on(step, MACHINE_STOP, c->id);
    return UNIT_STEPS;
}

/* One after the other; false when all have ended well. */
static bool next_init(struct machine *m, const struct machine_sandbox *s,
                      int64_t now, struct machine_step *step)
{
    for (size_t i = 0; i < m->n_units && m->units[i].init; i++) {
        struct machine_unit *u = &m->units[i];
        enum unit_is is = next_unit(m, u, s, now, step);
        if (is != UNIT_ENDED)
            return true;
        if (u->noted->exit_code == 0)
            continue;
        machine_fail(m, "InitFailed",
                     "init container %s ended with exit code %d (%s): biga "
                     "logs %s/%s -c %s",
                     u->name, (int)u->noted->exit_code, u->noted->reason,
                     m->intent->namespace, m->intent->name, u->name);
        return true;
    }
    return false;
}

static void all_ended(struct machine *m)
{
    for (size_t i = 0; i < m->n_units; i++) {
        const struct machine_unit *u = &m->units[i];
        if (!u->init && u->noted->exit_code != 0) {
            machine_fail(m, "Error",
                         "container %s ended with exit code %d (%s): biga "
                         "logs %s/%s -c %s",
                         u->name, (int)u->noted->exit_code, u->noted->reason,
                         m->intent->namespace, m->intent->name, u->name);
            return;
        }
    }
    machine_fail(m, "Completed", "all its containers ended with exit code 0");
}

static void is_up(struct machine *m)
{
    struct intent *i = m->intent;
    if (i->state == ACT_RUNNING && i->ran)
        return;
    machine_move(m, ACT_CREATING);
    machine_move(m, ACT_RUNNING);
    m->failures = 0;
    i->ran = true;
    machine_quiet(m);
    m->unsaved = true;
}

static void next_containers(struct machine *m, const struct machine_sandbox *s,
                            int64_t now, struct machine_step *step)
{
    size_t n = 0, n_begun = 0, n_ended = 0;
    if (next_init(m, s, now, step))
        return;
    for (size_t i = 0; i < m->n_units; i++) {
        struct machine_unit *u = &m->units[i];
        if (u->init)
            continue;
        enum unit_is is = next_unit(m, u, s, now, step);
        if (is == UNIT_STEPS)
            return;
        n++;
        n_ended += is == UNIT_ENDED;
        n_begun += is != UNIT_WAITS || u->noted->exited;
    }
    if (n_begun == n)
        is_up(m);
    if (n_ended == n)
        all_ended(m);
}

/* --- the whole ---------------------------------------------------------- */

static void next_up(struct machine *m, int64_t now, struct machine_step *step)
{
    const struct machine_sandbox *s = machine_current(m);
    if (!m->spec) {
        machine_fail(m, "SpecRefused",
                     "what it is to run cannot be read any more: delete the "
                     "pod and start it again");
        return;
    }
    if (m->hold == MACHINE_HOLD_BEGIN || m->hold == MACHINE_HOLD_START) {
        bool begin = m->hold == MACHINE_HOLD_BEGIN;
        if (m->found.n_sandboxes == 0 && m->found.n_containers == 0) {
            machine_say(m, begin ? "Held" : "WaitsForPair",
                        begin ? "waits until it is told to start"
                              : "begins when the xPU pods of its pair are "
                                "ready: see biga ps");
            return;
        }
    }
    if (next_junk(m, s, now, step))
        return;
    if (!s) {
        next_sandbox(m, now, step);
        return;
    }
    m->prepared = false; /* the next one begins anew, also after one that was
                          * found */
    if (m->intent->state != ACT_RUNNING && m->intent->state != ACT_PULLING)
        machine_move(m, ACT_CREATING);
    next_containers(m, s, now, step);
}

static void next(struct machine *m, int64_t now, struct machine_step *step)
{
    const struct intent *i = m->intent;
    if (i->state == ACT_GONE)
        return;
    if (!m->listed) {
        step->kind = MACHINE_LIST;
        return;
    }
    /* an end is begun at once, whatever was to be tried again */
    bool ends = i->stop && i->state != ACT_STOPPING;
    if (m->retry_ms > now && !ends) {
        machine_step_wait(step, m->retry_ms);
        return;
    }
    if (i->stop && m->hold == MACHINE_HOLD_STOP && machine_current(m) &&
        i->state != ACT_FAILED && i->state != ACT_STOPPING) {
        machine_say(m, "WaitsForHostPod",
                    "ends when the host pod of its pair is gone");
        return;
    }
    if (i->stop || i->state == ACT_STOPPING)
        next_end(m, now, step);
    else if (i->state == ACT_FAILED)
        next_failed(m, now, step);
    else
        next_up(m, now, step);
}

static bool removes(enum machine_kind kind)
{
    return kind == MACHINE_REMOVE || kind == MACHINE_REMOVE_SANDBOX;
}

void machine_next(struct machine *m, int64_t now_ms,
                  struct machine_step *ret_step)
{
    *ret_step = (struct machine_step){
        .kind = MACHINE_WAIT,
        .unit = SIZE_MAX,
        .due_ms = INT64_MAX,
    };
    enum act_state was = m->intent->state;
    next(m, now_ms, ret_step);
    if (was != ACT_FAILED && m->intent->state == ACT_FAILED) {
        /* what ends it comes with the next call */
        ret_step->kind = MACHINE_WAIT;
        ret_step->due_ms = now_ms;
    }
    ret_step->save |= m->unsaved || (m->learned && removes(ret_step->kind));
    if (ret_step->save)
        m->unsaved = m->learned = false;
}

bool machine_is_ready(const struct machine *m)
{
    if (m->intent->state != ACT_RUNNING)
        return false;
    for (size_t i = 0; i < m->n_units; i++) {
        const struct machine_unit *u = &m->units[i];
        const struct machine_container *c =
            machine_newest(m, m->intent->sandbox, u->name);
        if (u->init)
            continue;
        if (!c || (c->state != CRI_RUNNING &&
                   (c->state != CRI_EXITED || !c->looked || c->never_ran ||
                    u->noted->exit_code != 0 || machine_restarts(m, false, 0))))
            return false;
    }
    return true;
}

bool machine_is_over(const struct machine *m)
{
    return m->intent->state == ACT_GONE || m->intent->state == ACT_FAILED;
}
