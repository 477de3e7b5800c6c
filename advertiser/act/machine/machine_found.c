/* What was found of a pod on its place. */
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/machine/machine_private.h"
#include "lib/base/mem.h"

void machine_found_fini(struct machine_found *f)
{
    free(f->sandboxes);
    free(f->containers);
    *f = (struct machine_found){0};
}

void machine_found_sandbox(struct machine_found *f,
                           const struct machine_sandbox *s)
{
    if (f->n_sandboxes >= MACHINE_FOUND_MAX)
        return;
    f->sandboxes = xrealloc(f->sandboxes, f->n_sandboxes + 1, sizeof *s);
    f->sandboxes[f->n_sandboxes++] = *s;
}

void machine_found_container(struct machine_found *f,
                             const struct machine_container *c)
{
    if (f->n_containers >= MACHINE_FOUND_MAX)
        return;
    f->containers = xrealloc(f->containers, f->n_containers + 1, sizeof *c);
    f->containers[f->n_containers++] = *c;
}

struct machine_sandbox *machine_sandbox_of(struct machine *m, const char *id)
{
    for (size_t i = 0; i < m->found.n_sandboxes; i++)
        if (strcmp(m->found.sandboxes[i].id, id) == 0)
            return &m->found.sandboxes[i];
    return NULL;
}

struct machine_container *machine_container_of(struct machine *m,
                                               const char *id)
{
    for (size_t i = 0; i < m->found.n_containers; i++)
        if (strcmp(m->found.containers[i].id, id) == 0)
            return &m->found.containers[i];
    return NULL;
}

struct machine_container *machine_newest(const struct machine *m,
                                         const char *sandbox_id,
                                         const char *name)
{
    struct machine_container *newest = NULL;
    for (size_t i = 0; i < m->found.n_containers; i++) {
        struct machine_container *c = &m->found.containers[i];
        if (strcmp(c->sandbox_id, sandbox_id) == 0 &&
            strcmp(c->name, name) == 0 &&
            (!newest || c->attempt > newest->attempt))
            newest = c;
    }
    return newest;
}

struct machine_sandbox *machine_current(const struct machine *m)
{
    struct machine_sandbox *newest = NULL;
    for (size_t i = 0; i < m->found.n_sandboxes; i++) {
        struct machine_sandbox *s = &m->found.sandboxes[i];
        if (!newest || s->attempt > newest->attempt)
            newest = s;
    }
    bool other_boot = m->boot[0] && m->intent->boot[0] &&
                      strcmp(m->boot, m->intent->boot) != 0;
    return newest && newest->ready && !other_boot ? newest : NULL;
}

void machine_drop_container(struct machine *m, const char *id)
{
    struct machine_found *f = &m->found;
    for (size_t i = 0; i < f->n_containers; i++)
        if (strcmp(f->containers[i].id, id) == 0) {
            f->containers[i] = f->containers[--f->n_containers];
            return;
        }
}

void machine_drop_sandbox(struct machine *m, const char *id)
{
    struct machine_found *f = &m->found;
    for (size_t i = f->n_containers; i-- > 0;)
        if (strcmp(f->containers[i].sandbox_id, id) == 0)
            f->containers[i] = f->containers[--f->n_containers];
    for (size_t i = 0; i < f->n_sandboxes; i++)
        if (strcmp(f->sandboxes[i].id, id) == 0) {
            f->sandboxes[i] = f->sandboxes[--f->n_sandboxes];
            return;
        }
}

static void adopt_container(struct machine *m,
                            const struct machine_container *c)
{
    /* a name that a card made up has no place */
    struct intent_container *noted = intent_container_find(m->intent, c->name);
    if (!noted || c->attempt < noted->attempt)
        return;
    if (c->attempt > noted->attempt || !noted->id[0]) {
        noted->attempt = c->attempt;
        memcpy(noted->id, c->id, sizeof noted->id);
        m->learned = true;
    }
}

void machine_adopt(struct machine *m)
{
    struct intent *i = m->intent;
    for (size_t k = 0; k < m->found.n_sandboxes; k++) {
        const struct machine_sandbox *s = &m->found.sandboxes[k];
        if (s->attempt < i->attempt ||
            (s->attempt == i->attempt && i->sandbox[0]))
            continue;
        if (s->attempt > i->attempt)
            memset(i->boot, 0, sizeof i->boot);
        i->attempt = s->attempt;
        memcpy(i->sandbox, s->id, sizeof i->sandbox);
        m->learned = true;
    }
    for (size_t k = 0; k < m->found.n_containers; k++)
        adopt_container(m, &m->found.containers[k]);
}

/* What the machine knows of an object goes on from list to list. */
static void remember(struct machine *m, struct machine_found *fresh)
{
    for (size_t i = 0; i < fresh->n_sandboxes; i++) {
        struct machine_sandbox *s = &fresh->sandboxes[i];
        const struct machine_sandbox *old = machine_sandbox_of(m, s->id);
        s->retry_ms = old ? old->retry_ms : 0;
    }
    for (size_t i = 0; i < fresh->n_containers; i++) {
        struct machine_container *c = &fresh->containers[i];
        const struct machine_container *old = machine_container_of(m, c->id);
        c->made = old && old->made;
        c->never_ran = old && old->never_ran && old->state == c->state;
        c->told = old && old->told;
        c->looked = old && old->looked && old->state == c->state;
        c->retry_ms = old ? old->retry_ms : 0;
    }
}

void machine_see(struct machine *m, struct machine_found *found, int64_t now_ms)
{
    remember(m, found);
    machine_found_fini(&m->found);
    m->found = *found;
    *found = (struct machine_found){0};
    m->listed = true;
    machine_adopt(m);
    for (size_t i = 0; i < m->n_units; i++) {
        struct machine_unit *u = &m->units[i];
        const struct machine_container *c =
            machine_newest(m, m->intent->sandbox, u->name);
        if (!c || c->state != CRI_RUNNING)
            u->running_ms = -1;
        else if (u->running_ms < 0)
            u->running_ms = now_ms;
    }
}
