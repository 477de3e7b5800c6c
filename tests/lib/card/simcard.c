#include "tests/lib/card/simcard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

#define BROKEN(...)                                     \
    do {                                                \
        (void)fprintf(stderr, "simcard: " __VA_ARGS__); \
        (void)fprintf(stderr, "\n");                    \
        abort();                                        \
    } while (0)

uint64_t simcard_random(struct simcard *c, uint64_t n)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random % n;
}

static bool chance(struct simcard *c, unsigned per_thousand)
{
    return per_thousand && simcard_random(c, 1000) < per_thousand;
}

/* --- the rules ---------------------------------------------------------- */

static struct simcard_made *made(struct simcard *c, const char *name,
                                 uint32_t attempt)
{
    for (size_t i = 0; i < c->n_made; i++)
        if (strcmp(c->made[i].name, name) == 0 && c->made[i].attempt == attempt)
            return &c->made[i];
    return NULL;
}

static void note_made(struct simcard *c, const char *name, uint32_t attempt)
{
    if (made(c, name, attempt))
        BROKEN("%s: attempt %u was made before", *name ? name : "sandbox",
               attempt);
    if (attempt == 0 || c->n_made == SIMCARD_MADE)
        BROKEN("%s: attempt %u, %zu made", *name ? name : "sandbox", attempt,
               c->n_made);
    struct simcard_made *m = &c->made[c->n_made++];
    *m = (struct simcard_made){.attempt = attempt};
    (void)snprintf(m->name, sizeof m->name, "%s", name);
}

void simcard_noted(struct simcard *c, const char *name, uint32_t attempt)
{
    struct simcard_made *m = made(c, name, attempt);
    if (m)
        m->noted = true;
}

static void check(const struct simcard *c)
{
    const char *in = NULL;
    size_t n_ready = simcard_n_ready(c);
    for (size_t i = 0; i < c->n_containers; i++) {
        const struct simcard_container *o = &c->containers[i];
        if (o->state != CRI_RUNNING)
            continue;
        if (in && strcmp(in, o->sandbox) != 0)
            BROKEN("containers run in two sandboxes");
        in = o->sandbox;
    }
    if (n_ready > 1 && !c->had_late)
        BROKEN("%zu sandboxes live", n_ready);
}

size_t simcard_n_ready(const struct simcard *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_sandboxes; i++)
        n += c->sandboxes[i].ready && !c->sandboxes[i].late;
    return n;
}

/* --- objects ------------------------------------------------------------ */

static struct simcard_sandbox *sandbox_of(struct simcard *c, const char *id)
{
    for (size_t i = 0; i < c->n_sandboxes; i++)
        if (strcmp(c->sandboxes[i].id, id) == 0)
            return &c->sandboxes[i];
    return NULL;
}

static struct simcard_container *container_of(struct simcard *c, const char *id)
{
    for (size_t i = 0; i < c->n_containers; i++)
        if (strcmp(c->containers[i].id, id) == 0)
            return &c->containers[i];
    return NULL;
}

static void drop_containers(struct simcard *c, const char *sandbox)
{
    for (size_t i = c->n_containers; i-- > 0;)
        if (strcmp(c->containers[i].sandbox, sandbox) == 0)
            c->containers[i] = c->containers[--c->n_containers];
}

static struct machine_result error_of(int e, int code, const char *text)
{
    return (struct machine_result){.e = e, .code = code, .text = text};
}

static struct machine_result ok(void)
{
    return (struct machine_result){.code = GRPC_OK};
}

static struct machine_result run_sandbox(struct simcard *c, uint32_t attempt,
                                         bool late)
{
    for (size_t i = 0; i < c->n_sandboxes; i++)
        if (c->sandboxes[i].attempt == attempt)
            return error_of(-EEXIST, GRPC_UNKNOWN,
                            "name is reserved for another");
    if (c->n_sandboxes == SIMCARD_OBJECTS)
        BROKEN("too many sandboxes");
    struct simcard_sandbox *s = &c->sandboxes[c->n_sandboxes++];
    *s = (struct simcard_sandbox){
        .attempt = attempt, .ready = true, .late = late};
    (void)snprintf(s->id, sizeof s->id, "%08x", ++c->next_id);
    c->had_late |= late;
    note_made(c, "", attempt);
    struct machine_result r = ok();
    r.id = s->id;
    return r;
}

static struct machine_result create(struct simcard *c, const struct machine *m,
                                    const struct machine_step *step, bool late)
{
    const char *name = m->units[step->unit].name;
    struct simcard_sandbox *s = sandbox_of(c, step->sandbox_id);
    if (!s || s->late)
        return error_of(-ENOENT, GRPC_NOT_FOUND, "no such sandbox");
    if (!s->ready)
        return error_of(-EREMOTEIO, GRPC_UNKNOWN, "sandbox is not ready");
    for (size_t i = 0; i < c->n_containers; i++)
        if (strcmp(c->containers[i].name, name) == 0 &&
            c->containers[i].attempt == step->attempt)
            return error_of(-EEXIST, GRPC_UNKNOWN,
                            "name is reserved for another");
    if (c->n_containers == SIMCARD_OBJECTS)
        BROKEN("too many containers");
    struct simcard_container *o = &c->containers[c->n_containers++];
    *o = (struct simcard_container){.attempt = step->attempt, .late = late};
    (void)snprintf(o->id, sizeof o->id, "%08x", ++c->next_id);
    (void)snprintf(o->name, sizeof o->name, "%s", name);
    memcpy(o->sandbox, s->id, sizeof o->sandbox);
    note_made(c, name, step->attempt);
    struct machine_result r = ok();
    r.id = o->id;
    return r;
}

static struct machine_result on_sandbox(struct simcard *c,
                                        const struct machine_step *step)
{
    struct simcard_sandbox *s = sandbox_of(c, step->id);
    if (!s)
        return step->kind == MACHINE_REMOVE_SANDBOX
                   ? ok()
                   : error_of(-ENOENT, GRPC_NOT_FOUND, "no such sandbox");
    if (step->kind == MACHINE_STOP_SANDBOX) {
        s->ready = false;
        for (size_t i = 0; i < c->n_containers; i++)
            if (strcmp(c->containers[i].sandbox, s->id) == 0 &&
                c->containers[i].state == CRI_RUNNING)
                c->containers[i].state = CRI_EXITED;
        return ok();
    }
    drop_containers(c, s->id);
    *s = c->sandboxes[--c->n_sandboxes];
    return ok();
}

/* As containerd 1.6 has it of a start that came to nothing. */
static void end_unstarted(struct simcard_container *o)
{
    o->state = CRI_EXITED;
    o->exit_code = 128;
    o->cut = true;
}

/* Its caller was gone before the call was over. */
static void cut_off(struct simcard *c, const struct machine_step *step)
{
    struct simcard_container *o = container_of(c, step->id);
    if (step->kind == MACHINE_START && o && o->state == CRI_RUNNING)
        end_unstarted(o);
    if (step->kind == MACHINE_CREATE && c->n_containers > 0)
        c->containers[c->n_containers - 1].broken = true;
}

static struct machine_result on_container(struct simcard *c,
                                          const struct machine_step *step)
{
    struct simcard_container *o = container_of(c, step->id);
    struct machine_result r = ok();
    if (!o)
        return error_of(-ENOENT, GRPC_NOT_FOUND, "no such container");
    switch (step->kind) {
    case MACHINE_START:
        if (o->state != CRI_CREATED)
            return error_of(-EREMOTEIO, GRPC_UNKNOWN, "is not created");
        if (!sandbox_of(c, o->sandbox) || !sandbox_of(c, o->sandbox)->ready)
            return error_of(-EREMOTEIO, GRPC_UNKNOWN, "sandbox not running");
        if (o->broken) {
            end_unstarted(o);
            return error_of(-EREMOTEIO, GRPC_UNKNOWN,
                            "lstat /proc/0/ns/ipc: no such file or directory");
        }
        o->state = CRI_RUNNING;
        break;
    case MACHINE_STOP:
        /* some need to be killed */
        if (step->grace_s && simcard_random(c, 3) == 0)
            return error_of(-ETIMEDOUT, -1, "no answer in time");
        if (o->state == CRI_RUNNING)
            o->exit_code = 137;
        if (o->state != CRI_CREATED)
            o->state = CRI_EXITED;
        break;
    case MACHINE_LOOK:
        r.state = o->state;
        r.exit_code = o->exit_code;
        r.exit_reason = o->cut         ? "StartError"
                        : o->exit_code ? "Error"
                                       : "Completed";
        break;
    default: /* MACHINE_REMOVE */
        if (o->state == CRI_RUNNING)
            BROKEN("a running container is removed");
        if (c->faults.keeps)
            return error_of(-EREMOTEIO, GRPC_UNKNOWN,
                            "cannot delete running task");
        *o = c->containers[--c->n_containers];
        break;
    }
    return r;
}

static struct machine_result carry_out(struct simcard *c,
                                       const struct machine *m,
                                       const struct machine_step *step,
                                       bool late)
{
    struct machine_result r = ok();
    switch (step->kind) {
    case MACHINE_PREPARE:
    case MACHINE_CLEAN:
        return r;
    case MACHINE_LOOK_IMAGE:
        if (c->pulled && c->faults.other_arch)
            return error_of(-ENOEXEC, GRPC_OK, "image i is for arm64");
        r.present = !c->faults.no_image || (c->pulled && !c->faults.vanishes);
        r.uid = c->image_uid;
        r.username = c->image_username;
        return r;
    case MACHINE_PULL:
        if (c->faults.no_registry)
            return error_of(-EREMOTEIO, GRPC_UNKNOWN, "failed to resolve");
        c->pulled = true;
        return r;
    case MACHINE_RUN_SANDBOX:
        return run_sandbox(c, step->attempt, late);
    case MACHINE_CREATE:
        return create(c, m, step, late);
    case MACHINE_STOP_SANDBOX:
    case MACHINE_REMOVE_SANDBOX:
        return on_sandbox(c, step);
    default:
        return on_container(c, step);
    }
}

struct machine_result simcard_do(struct simcard *c, const struct machine *m,
                                 const struct machine_step *step)
{
    static const struct machine_result lost = {
        .e = -ETIMEDOUT, .code = -1, .text = "no answer in time"};
    bool makes = step->kind == MACHINE_RUN_SANDBOX ||
                 step->kind == MACHINE_CREATE;
    c->n_calls++;
    if (chance(c, c->faults.lose_request))
        return lost;
    if (makes && chance(c, c->faults.full))
        return error_of(-ENOSPC, GRPC_UNKNOWN, "no space left on device");
    if (chance(c, c->faults.refuse))
        return error_of(-EREMOTEIO, GRPC_UNKNOWN, "it does not want to");
    bool late = makes && chance(c, c->faults.late);
    struct machine_result r = carry_out(c, m, step, late);
    check(c);
    if (!late && !chance(c, c->faults.lose_reply))
        return r;
    if (r.e == 0 && chance(c, c->faults.cut))
        cut_off(c, step);
    return lost;
}

void simcard_list(struct simcard *c, struct machine_found *ret_found)
{
    *ret_found = (struct machine_found){0};
    for (size_t i = 0; i < c->n_sandboxes; i++) {
        const struct simcard_sandbox *s = &c->sandboxes[i];
        struct machine_sandbox found = {.attempt = s->attempt,
                                        .ready = s->ready};
        if (s->late)
            continue;
        (void)snprintf(found.id, sizeof found.id, "%s", s->id);
        machine_found_sandbox(ret_found, &found);
    }
    for (size_t i = 0; i < c->n_containers; i++) {
        const struct simcard_container *o = &c->containers[i];
        struct machine_container found = {.attempt = o->attempt,
                                          .state = o->state};
        if (o->late)
            continue;
        (void)snprintf(found.id, sizeof found.id, "%s", o->id);
        (void)snprintf(found.sandbox_id, sizeof found.sandbox_id, "%s",
                       o->sandbox);
        (void)snprintf(found.name, sizeof found.name, "%s", o->name);
        machine_found_container(ret_found, &found);
    }
}

void simcard_settle(struct simcard *c)
{
    for (size_t i = 0; i < c->n_sandboxes; i++)
        c->sandboxes[i].late = false;
    for (size_t i = 0; i < c->n_containers; i++)
        c->containers[i].late = false;
}

void simcard_reboot(struct simcard *c, bool forgets)
{
    simcard_settle(c);
    for (size_t i = 0; i < c->n_sandboxes; i++)
        c->sandboxes[i].ready = false;
    for (size_t i = 0; i < c->n_containers; i++) {
        struct simcard_container *o = &c->containers[i];
        if (o->state == CRI_RUNNING) {
            o->state = CRI_EXITED;
            o->exit_code = 255;
        }
    }
    if (!forgets)
        return;
    c->n_sandboxes = c->n_containers = 0;
    for (size_t i = c->n_made; i-- > 0;)
        if (!c->made[i].noted) /* nobody ever knew of it */
            c->made[i] = c->made[--c->n_made];
}

bool simcard_exit_one(struct simcard *c, int32_t exit_code)
{
    for (size_t i = 0; i < c->n_containers; i++)
        if (c->containers[i].state == CRI_RUNNING) {
            c->containers[i].state = CRI_EXITED;
            c->containers[i].exit_code = exit_code;
            return true;
        }
    return false;
}
