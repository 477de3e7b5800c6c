/* What the end of a step means. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/machine/machine_private.h"
#include "lib/base/backoff.h"
#include "lib/base/mem.h"

enum { JUNK_RETRY_MS = 10000 }; /* what could not be removed */

/* --- failures ----------------------------------------------------------- */

/* Whether it may help to try again. */
enum again { AGAIN_ALWAYS, AGAIN_SOME, AGAIN_NEVER };

struct meaning {
    int e;            /* -errno as in cri.h; 0 any */
    int code;         /* of gRPC; -1 any */
    const char *says; /* a part of the text; NULL any */
    unsigned kinds;   /* of steps */
    const char *reason;
    enum again again;
    const char *next; /* what a person is to do */
};

#define ON(kind) (1U << (kind))
#define ON_ANY (~0U)
#define ON_BEGIN \
    (ON(MACHINE_RUN_SANDBOX) | ON(MACHINE_CREATE) | ON(MACHINE_START))
#define ON_IMAGE (ON(MACHINE_PULL) | ON(MACHINE_LOOK_IMAGE))

#define SAYS_FREE \
    "free space there (ctr -n k8s.io images rm), it is tried again"
#define SAYS_ARCH \
    "it is made for other cores: take an image for the card's architecture"
#define SAYS_IMPORT                                                     \
    "import the image there (ctr -n k8s.io images import), or let the " \
    "card reach its registry"

/* The first that fits. */
static const struct meaning meanings[] = {
    {-ENOSPC, -1, NULL, ON_ANY, "DiskFull", AGAIN_SOME, SAYS_FREE},
    {0, -1, "no space left", ON_ANY, "DiskFull", AGAIN_SOME, SAYS_FREE},
    {-ENOEXEC, -1, NULL, ON(MACHINE_LOOK_IMAGE), "ImageArch", AGAIN_NEVER,
     SAYS_ARCH},
    {0, -1, "exec format error", ON_ANY, "ImageArch", AGAIN_NEVER, SAYS_ARCH},
    {0, -1, "no match for platform", ON_ANY, "ImageArch", AGAIN_NEVER,
     SAYS_ARCH},
    {0, -1, "does not match the specified platform", ON_ANY, "ImageArch",
     AGAIN_NEVER, SAYS_ARCH},
    {-EKEYREJECTED, -1, NULL, ON_ANY, "CardRefused", AGAIN_ALWAYS,
     "see to the certificates of both sides (deploy/certs.sh)"},
    {-ETIMEDOUT, -1, NULL, ~ON(MACHINE_PULL), "CardSilent", AGAIN_ALWAYS,
     "it is looked at again, and what was made there is adopted"},
    {-EAGAIN, -1, NULL, ON_ANY, "CardSilent", AGAIN_ALWAYS,
     "see whether its containerd runs; it is tried again"},
    {-EPROTO, -1, NULL, ON_ANY, "CardProtocol", AGAIN_ALWAYS,
     "its runtime answers against the protocol: see what listens there"},
    {-EMSGSIZE, -1, NULL, ON_ANY, "CardProtocol", AGAIN_ALWAYS,
     "its runtime answers too much: see what listens there"},
    {0, -1, "sandbox image", ON(MACHINE_RUN_SANDBOX), "ImageMissing",
     AGAIN_SOME,
     "import the image that its containerd has as sandbox_image there"},
    {0, -1, NULL, ON_IMAGE, "ImageMissing", AGAIN_SOME, SAYS_IMPORT},
    {0, -1, "executable file not found", ON_BEGIN, "CreateRefused", AGAIN_NEVER,
     "correct the container's command"},
    {0, -1, "no such file or directory", ON(MACHINE_START), "CreateRefused",
     AGAIN_NEVER, "correct the container's command, or its image"},
    {0, -1, ": permission denied", ON(MACHINE_START), "CreateRefused",
     AGAIN_NEVER, "correct the container's command, or its image"},
    {0, GRPC_INVALID_ARGUMENT, NULL, ON_BEGIN, "CreateRefused", AGAIN_NEVER,
     "correct the pod"},
    {0, -1, "no such image", ON(MACHINE_CREATE), "ImageMissing", AGAIN_SOME,
     SAYS_IMPORT},
    {0, -1, NULL, ON_BEGIN, "CreateRefused", AGAIN_SOME,
     "see the journal of the card's containerd"},
    {0, -1, NULL, ON(MACHINE_PREPARE), "PrepareFailed", AGAIN_SOME,
     "see the card"},
    {0, -1, NULL, ON_ANY, "RuntimeError", AGAIN_ALWAYS,
     "see the journal of the card's containerd"},
};

/* No answer, or none that could be read: nothing is known of the step. */
static bool is_silent(int e)
{
    switch (-e) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ENOENT: /* no such socket; an object that is gone is handled before */
    case EIO:
        return true;
    default:
        return false;
    }
}

static const struct meaning *meaning_of(const struct machine_step *step,
                                        const struct machine_result *r)
{
    static const struct meaning silent = {
        .reason = "CardSilent",
        .again = AGAIN_ALWAYS,
        .next = "see whether its containerd runs; it is tried again",
    };
    const char *text = r->text ? r->text : "";
    if (r->code < 0 && is_silent(r->e) && step->kind != MACHINE_PREPARE)
        return &silent;
    for (size_t i = 0; i < ARRAY_LEN(meanings) - 1; i++) {
        const struct meaning *m = &meanings[i];
        if ((m->kinds & ON(step->kind)) && (m->e == 0 || m->e == r->e) &&
            (m->code < 0 || m->code == r->code) &&
            (!m->says || strstr(text, m->says)))
            return m;
    }
    return &meanings[ARRAY_LEN(meanings) - 1];
}

static void retry_later(struct machine *m, int64_t now)
{
    m->failures++;
    m->retry_ms = now + backoff_grown(MACHINE_RETRY_MIN_MS,
                                      MACHINE_RETRY_MAX_MS, m->failures);
}

/* A place that does not answer is asked for ever; one that says no is not, for
 * the pods of its pair wait for this one's end.  False when it did not say. */
static bool not_cleaned(struct machine *m, const struct machine_result *r)
{
    const char *text = r->text ? r->text : "";
    if (!r->permanent && (r->code < 0 || r->e == -ETIMEDOUT))
        return false;
    if (!r->permanent && ++m->refusals < MACHINE_TRIES) {
        machine_say(m, "FilesLeft", "%.350s: it is tried again", text);
        return true;
    }
    m->cleaned = m->left = true;
    m->failures = 0;
    m->retry_ms = 0;
    machine_say(m, "FilesLeft",
                "%.350s: it is left on %.60s, and tried again now and then; "
                "see to it there (lsattr, findmnt)",
                text, m->intent->place);
    return true;
}

static void failed(struct machine *m, const struct machine_step *step,
                   const struct machine_result *r, int64_t now)
{
    const struct meaning *meaning = meaning_of(step, r);
    const char *reason = r->reason ? r->reason : meaning->reason;
    /* what ran is not ended because a part of it cannot be begun again */
    bool goes_on = r->waits || m->intent->ran;
    enum again again = r->permanent ? AGAIN_NEVER
                       : goes_on    ? AGAIN_ALWAYS
                                    : meaning->again;
    const char *text = r->text ? r->text : "";
    bool up = m->intent->state != ACT_STOPPING &&
              m->intent->state != ACT_FAILED;
    m->listed = false;
    retry_later(m, now);
    /* a person may import it while nobody can pull it */
    if (step->kind == MACHINE_PULL && step->unit < m->n_units)
        m->units[step->unit].has = IMAGE_UNKNOWN;
    if (step->kind == MACHINE_CLEAN && not_cleaned(m, r))
        return;
    if (!up) { /* ending goes on until it is done */
        if (m->intent->state == ACT_STOPPING)
            machine_say(m, reason, "%s: %s", text, meaning->next);
        return;
    }
    bool last = again == AGAIN_NEVER ||
                (again == AGAIN_SOME && ++m->tries >= MACHINE_TRIES);
    if (last)
        machine_fail(m, reason, r->reason ? "%s" : "%s: %s", text,
                     meaning->next);
    else
        machine_say(m, reason, r->reason ? "%s" : "%s: %s", text,
                    meaning->next);
}

/* The name is taken; the list says whether by what is ours. */
static void name_reserved(struct machine *m, struct machine_unit *u,
                          const struct machine_result *r, int64_t now)
{
    unsigned *n = u ? &u->reserved : &m->reserved;
    ++*n;
    m->listed = false;
    m->retry_ms = now +
                  backoff_grown(MACHINE_RETRY_MIN_MS, MACHINE_RETRY_MAX_MS, *n);
    machine_say(m, "NameReserved",
                "%s: what holds the name is adopted when it is ours, else "
                "the next attempt is begun",
                r->text ? r->text : "");
}

/* What it was to be made in is gone: the list says so, too. */
static bool is_vanished(const struct machine_step *step,
                        const struct machine_result *r)
{
    return r->e == -ENOENT && r->code >= 0 &&
           (step->kind == MACHINE_START ||
            (step->kind == MACHINE_CREATE &&
             !(r->text && strstr(r->text, "image"))));
}

static void look_again(struct machine *m, int64_t now)
{
    m->listed = false;
    m->retry_ms = now + MACHINE_RETRY_MIN_MS;
}

/* --- each step ---------------------------------------------------------- */

static void progress(struct machine *m)
{
    m->failures = 0;
    m->retry_ms = 0;
    if (m->intent->state != ACT_FAILED)
        machine_quiet(m);
}

static void sandbox_runs(struct machine *m, const struct machine_step *step,
                         const struct machine_result *r)
{
    struct machine_sandbox s = {.attempt = step->attempt, .ready = true};
    (void)snprintf(s.id, sizeof s.id, "%s", r->id);
    machine_found_sandbox(&m->found, &s);
    memcpy(m->intent->sandbox, s.id, sizeof s.id);
    m->learned = true;
    m->reserved = 0;
    m->prepared = false; /* the next one begins anew */
    progress(m);
}

static void container_is_made(struct machine *m,
                              const struct machine_step *step,
                              const struct machine_result *r)
{
    struct machine_unit *u = &m->units[step->unit];
    struct machine_container c = {
        .attempt = step->attempt, .state = CRI_CREATED, .made = true};
    (void)snprintf(c.id, sizeof c.id, "%s", r->id);
    (void)snprintf(c.name, sizeof c.name, "%s", u->name);
    memcpy(c.sandbox_id, step->sandbox_id, sizeof c.sandbox_id);
    machine_found_container(&m->found, &c);
    memcpy(u->noted->id, c.id, sizeof c.id);
    m->learned = true;
    u->reserved = 0;
    if (m->tries == 0)
        progress(m);
}

/* What ran and does not any more is begun again, ever later. */
static void crashed(struct machine_unit *u, int64_t now)
{
    u->crashes++;
    u->retry_ms = now + backoff_grown(MACHINE_CRASH_MIN_MS,
                                      MACHINE_CRASH_MAX_MS, u->crashes);
}

static void container_ended(struct machine *m, const struct machine_step *step,
                            const struct machine_result *r, int64_t now)
{
    struct machine_container *c = machine_container_of(m, step->id);
    struct machine_unit *u = &m->units[step->unit];
    if (r->state != CRI_EXITED || !c) {
        look_again(m, now);
        return;
    }
    c->looked = true;
    /* the start itself has failed: what that means was said when it did, and
     * when nobody heard it, it is begun again whatever the restartPolicy is */
    c->never_ran = r->exit_reason && strcmp(r->exit_reason, "StartError") == 0;
    if (c->never_ran) {
        if (m->intent->ran)
            crashed(u, now);
        return;
    }
    u->noted->exited = true;
    u->noted->exit_code = r->exit_code;
    (void)snprintf(u->noted->reason, sizeof u->noted->reason, "%s",
                   r->exit_reason ? r->exit_reason : "");
    u->running_ms = -1;
    m->changed = true;
    if (!machine_restarts(m, u->init, r->exit_code))
        return;
    crashed(u, now);
    machine_say(m, "CrashLoop",
                "container %s ended with exit code %d (%s) and is begun "
                "again: biga logs %s/%s -c %s",
                u->name, (int)r->exit_code, u->noted->reason,
                m->intent->namespace, m->intent->name, u->name);
}

/* Something else removes it as soon as it is there? */
static void image_vanished(struct machine *m, struct machine_unit *u,
                           int64_t now)
{
    u->has = IMAGE_UNKNOWN;
    u->pulled = false;
    retry_later(m, now);
    machine_say(m, "ImageMissing",
                "container %s: image %s was pulled, and is not on %s: it is "
                "tried again; see whether something removes it there",
                u->name, u->image, m->intent->place);
}

static void image_looked(struct machine *m, struct machine_unit *u,
                         const struct machine_result *r, int64_t now)
{
    if (u->pulled && !r->present) {
        image_vanished(m, u, now);
        return;
    }
    u->has = r->present ? IMAGE_PRESENT : IMAGE_MISSING;
    u->looked = r->present;
    u->uid = r->uid;
    (void)snprintf(u->username, sizeof u->username, "%s",
                   r->username ? r->username : "");
}

static void mark_exited(struct machine *m, const char *id)
{
    struct machine_container *c = machine_container_of(m, id);
    if (c)
        c->state = CRI_EXITED;
}

static void sandbox_stopped(struct machine *m, const char *id)
{
    struct machine_sandbox *s = machine_sandbox_of(m, id);
    if (s)
        s->ready = false;
    for (size_t i = 0; i < m->found.n_containers; i++) {
        struct machine_container *c = &m->found.containers[i];
        if (strcmp(c->sandbox_id, id) == 0 && c->state == CRI_RUNNING)
            c->state = CRI_EXITED;
    }
}

static void succeeded(struct machine *m, const struct machine_step *step,
                      const struct machine_result *r, int64_t now)
{
    struct machine_unit *u = step->unit < m->n_units ? &m->units[step->unit]
                                                     : NULL;
    struct machine_container *c = NULL;
    switch (step->kind) {
    case MACHINE_PREPARE:
        m->prepared = true;
        progress(m);
        break;
    case MACHINE_LOOK_IMAGE:
        image_looked(m, u, r, now);
        break;
    case MACHINE_PULL:
        u->has = IMAGE_PRESENT;
        u->pulled = true;
        u->looked = false;
        progress(m);
        break;
    case MACHINE_RUN_SANDBOX:
        sandbox_runs(m, step, r);
        break;
    case MACHINE_CREATE:
        container_is_made(m, step, r);
        break;
    case MACHINE_START:
        c = machine_container_of(m, step->id);
        if (c)
            c->state = CRI_RUNNING;
        u->running_ms = now;
        m->tries = 0;
        progress(m);
        m->changed = true;
        break;
    case MACHINE_LOOK:
        container_ended(m, step, r, now);
        break;
    case MACHINE_STOP:
        mark_exited(m, step->id);
        break;
    case MACHINE_REMOVE:
        machine_drop_container(m, step->id);
        break;
    case MACHINE_STOP_SANDBOX:
        sandbox_stopped(m, step->id);
        break;
    case MACHINE_REMOVE_SANDBOX:
        machine_drop_sandbox(m, step->id);
        break;
    case MACHINE_CLEAN:
        m->cleaned = true;
        break;
    case MACHINE_WAIT:
    case MACHINE_LIST:
        break;
    }
}

/* What could not be removed, of a pod that goes on, is tried again by
 * itself. */
static bool junk_stays(struct machine *m, const struct machine_step *step,
                       const struct machine_result *r, int64_t now)
{
    struct machine_sandbox *s = machine_sandbox_of(m, step->id);
    struct machine_container *c = machine_container_of(m, step->id);
    if (r->code < 0 || m->intent->state == ACT_STOPPING ||
        m->intent->state == ACT_FAILED)
        return false;
    if (s)
        s->retry_ms = now + JUNK_RETRY_MS;
    if (c)
        c->retry_ms = now + JUNK_RETRY_MS;
    m->listed = false;
    return s || c;
}

static bool gone(struct machine *m, const struct machine_step *step)
{
    switch (step->kind) {
    case MACHINE_LOOK:
    case MACHINE_STOP:
    case MACHINE_REMOVE:
        machine_drop_container(m, step->id);
        return true;
    case MACHINE_STOP_SANDBOX:
    case MACHINE_REMOVE_SANDBOX:
        machine_drop_sandbox(m, step->id);
        return true;
    default:
        return false;
    }
}

void machine_done(struct machine *m, const struct machine_step *step,
                  const struct machine_result *result, int64_t now_ms)
{
    struct machine_container *c = machine_container_of(m, step->id);
    bool removes = step->kind == MACHINE_STOP || step->kind == MACHINE_REMOVE ||
                   step->kind == MACHINE_STOP_SANDBOX ||
                   step->kind == MACHINE_REMOVE_SANDBOX;
    bool tells = step->kind == MACHINE_STOP && step->grace_s > 0;
    if (tells && c && (result->e == 0 || result->e == -ETIMEDOUT))
        c->told = true;
    if (step->kind == MACHINE_CREATE && result->e < 0)
        m->units[step->unit].has = IMAGE_UNKNOWN;
    if (result->e == 0)
        succeeded(m, step, result, now_ms);
    else if (result->e == -ENOENT && result->code >= 0 && gone(m, step))
        m->changed = true; /* it is gone: somebody else removed it */
    else if (tells && result->e == -ETIMEDOUT)
        return; /* it ends; the lists will say when */
    else if (is_vanished(step, result))
        look_again(m, now_ms);
    else if (result->e == -EEXIST && step->kind == MACHINE_RUN_SANDBOX)
        name_reserved(m, NULL, result, now_ms);
    else if (result->e == -EEXIST && step->kind == MACHINE_CREATE)
        name_reserved(m, &m->units[step->unit], result, now_ms);
    else if (!removes || !junk_stays(m, step, result, now_ms))
        failed(m, step, result, now_ms);
}
