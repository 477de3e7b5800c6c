#include "router/volume/volume_send.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "advertiser/act/card/helper.h"
#include "lib/io/log.h"
#include "router/volume/volume_listing.h"

enum {
    CONTENTS_MAX = 1 << 20, /* bytes of one call (card/card.h) */
    ARGS_MAX = 1500000,     /* bytes of its arguments, of 2 MiB */
};

static const char *const words[] = {
    [VOLUME_MAKE] = "folder",     [VOLUME_WRITE] = "file",
    [VOLUME_INPLACE] = "inplace", [VOLUME_LEAD] = "link",
    [VOLUME_DROP] = "drop",       [VOLUME_TMPFS] = "tmpfs",
    [VOLUME_PART] = "part",
};

/* -EIO with biga-card's own words; `ret_exec` is to be wiped in any case. */
static int run(const struct volume_place *place, const struct helper_args *args,
               struct cri_exec *ret_exec, struct error *err)
{
    int rc = place->exec(place->ctx, place->remote, place->lane, args->argv,
                         args->n, HELPER_CALL_MS, ret_exec, err);
    if (rc || ret_exec->exit_code == 0)
        return rc;
    const char *said = str_text(&ret_exec->err);
    size_t len = strlen(said);
    while (len > 0 && said[len - 1] == '\n')
        len--;
    return error_set(err, EIO,
                     "biga-card %s on %s ended with exit code %d: %.*s",
                     args->argv[1], place->remote, (int)ret_exec->exit_code,
                     len < 300 ? (int)len : 300, said);
}

/* --- steps ------------------------------------------------------------------ */

static size_t contents_of(const struct volume_step *s)
{
    return s->verb == VOLUME_WRITE || s->verb == VOLUME_INPLACE
               ? (size_t)s->item->size
               : 0;
}

/* What it takes of the arguments, at most. */
static size_t cost_of(const struct volume_step *s)
{
    return 96 + strlen(s->name) + (s->of ? strlen(s->of) : 0) +
           (s->item && s->item->target ? strlen(s->item->target) : 0) +
           contents_of(s) / 3 * 4 + 16 * helper_args_pieces(contents_of(s));
}

__attribute__((format(printf, 2, 3))) static void add_f(struct helper_args *p,
                                                        const char *fmt, ...)
{
    char text[48];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    helper_args_add(p, text);
}

static void add_step(struct helper_args *p, const struct volume_step *s,
                     const char *pad)
{
    helper_args_add(p, words[s->verb]);
    helper_args_add(p, s->name);
    if (s->verb == VOLUME_DROP)
        return;
    if (s->verb == VOLUME_LEAD) {
        helper_args_add(p, s->item->target);
        return;
    }
    add_f(p, "%o", (unsigned)s->item->mode);
    add_f(p, "%u:%u", (unsigned)s->item->uid, (unsigned)s->item->gid);
    if (s->verb == VOLUME_TMPFS)
        add_f(p, "%" PRIu64, s->limit);
    if (s->verb == VOLUME_PART)
        helper_args_add(p, s->of);
    if (s->verb != VOLUME_WRITE && s->verb != VOLUME_INPLACE)
        return;
    add_f(p, "%zu", helper_args_pieces(contents_of(s)));
    if (contents_of(s) > 0)
        helper_args_add_pieces(p, s->item->data, contents_of(s), pad);
}

/* How many steps from `from` on go into one call, and their contents. */
static size_t batch(const struct volume_plan *plan, size_t from,
                    size_t *ret_contents)
{
    size_t n = 0, contents = 0, cost = 0;
    for (; from + n < plan->n; n++) {
        const struct volume_step *s = &plan->steps[from + n];
        if (n > 0 && (contents + contents_of(s) > CONTENTS_MAX ||
                      cost + cost_of(s) > ARGS_MAX))
            break;
        contents += contents_of(s);
        cost += cost_of(s);
    }
    *ret_contents = contents;
    return n;
}

static int ask_pad(const struct volume_place *place, size_t size,
                   struct cri_exec *exec, struct helper_args_pad *ret_pad,
                   struct error *err)
{
    struct helper_args ask;
    helper_args_init(&ask, "pad", place->memory);
    add_f(&ask, "%zu", size);
    int rc = run(place, &ask, exec, err);
    helper_args_fini(&ask);
    return rc ? rc
              : helper_args_pad(&exec->out, &exec->err, size, ret_pad, err);
}

/* What biga-card says about folders in memory without their limit. */
static void note_unlimited(const struct volume_place *place, const char *said)
{
    for (const char *at = said; (at = strstr(at, "unlimited=")); at++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 10, "\n"),
                       at + 10);
        log_event(LOG_WARN, "volume-unlimited", "remote", place->remote,
                  "volume", name, NULL);
    }
}

static int send_batch(const struct volume_place *place,
                      const struct volume_plan *plan, size_t from, size_t n,
                      const struct helper_args_pad *pad, struct error *err)
{
    struct helper_args args;
    struct cri_exec exec = {0};
    const char *at = pad ? pad->bytes : NULL;
    helper_args_init(&args, "volume", place->disk);
    helper_args_add(&args, place->memory);
    helper_args_add(&args, pad ? pad->id : "-");
    for (size_t i = from; i < from + n; i++) {
        add_step(&args, &plan->steps[i], at);
        if (at)
            at += contents_of(&plan->steps[i]);
    }
    int rc = run(place, &args, &exec, err);
    if (!rc)
        note_unlimited(place, str_text(&exec.err));
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return rc;
}

int volume_send_plan(const struct volume_place *place,
                     const struct volume_plan *plan, struct error *err)
{
    size_t contents;
    int rc = 0;
    for (size_t at = 0, n; !rc && at < plan->n; at += n) {
        struct cri_exec exec = {0};
        struct helper_args_pad pad;
        n = batch(plan, at, &contents);
        if (contents > 0) {
            exec.max = CONTENTS_MAX;
            rc = ask_pad(place, contents, &exec, &pad, err);
        }
        if (!rc)
            rc = send_batch(place, plan, at, n, contents > 0 ? &pad : NULL,
                            err);
        helper_exec_wipe(&exec);
    }
    return rc;
}

/* --- what else there is ------------------------------------------------------ */

int volume_send_look(const struct volume_place *place,
                     struct volume_tree *ret_tree, struct error *err)
{
    struct helper_args args;
    struct cri_exec exec = {.max = VOLUME_LISTING_MAX};
    helper_args_init(&args, "tree", place->disk);
    helper_args_add(&args, place->memory);
    int rc = run(place, &args, &exec, err);
    if (!rc)
        rc = volume_listing_read(str_text(&exec.out), exec.out.size, ret_tree,
                                 err);
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return rc;
}

int volume_send_last(const struct volume_place *place, const char *name,
                     size_t max, struct str *ret_text, struct error *err)
{
    enum { MISSING = 3 }; /* biga-card's word for it */
    bool on_disk = strncmp(name, "disk/", 5) == 0;
    cleanup_free char *path = xasprintf(
        "%s/%s", on_disk ? place->disk : place->memory, strchr(name, '/') + 1);
    struct helper_args args;
    struct cri_exec exec = {0};
    uint64_t next;
    helper_args_init(&args, "last", path);
    add_f(&args, "%zu", max);
    int rc = run(place, &args, &exec, err);
    if (rc == -EIO && exec.exit_code == MISSING)
        rc = error_set(err, ENOENT, "%s: is not there", name);
    if (!rc)
        rc = helper_next(&exec, &next, err);
    if (!rc && exec.out.size > max)
        rc = error_set(err, EPROTO, "biga-card last: %zu bytes instead of %zu",
                       exec.out.size, max);
    if (!rc)
        str_add_n(ret_text, str_text(&exec.out), exec.out.size);
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return rc;
}

int volume_send_remove(const struct volume_place *place, struct error *err)
{
    struct helper_args args;
    struct cri_exec exec = {0};
    helper_args_init(&args, "forget", place->memory);
    helper_args_add(&args, place->disk);
    int rc = run(place, &args, &exec, err);
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return rc;
}

/* Whole, and each a name that may be a pod's. */
static int read_names(const struct str *out, struct str *ret_names,
                      struct error *err)
{
    const char *text = str_text(out), *end = text + out->size;
    size_t n = 0;
    char last[32] = "";
    for (const char *at = text; at < end; at += strlen(at) + 1, n++) {
        if (!memchr(at, '\0', (size_t)(end - at)))
            break;
        (void)snprintf(last, sizeof last, "end %zu", n);
        if (strcmp(at, last) == 0 && at + strlen(at) + 1 == end)
            return 0;
        if (!volume_name_ok(at) || strchr(at, '/'))
            break;
        str_add_n(ret_names, at, strlen(at) + 1);
    }
    return error_set(err, EPROTO, "biga-card pods: is cut off, or no list");
}

int volume_send_pods(const struct volume_place *place, struct str *ret_names,
                     struct error *err)
{
    struct helper_args args;
    struct cri_exec exec = {0};
    helper_args_init(&args, "pods", place->disk);
    helper_args_add(&args, place->memory);
    int rc = run(place, &args, &exec, err);
    if (!rc)
        rc = read_names(&exec.out, ret_names, err);
    helper_args_fini(&args);
    helper_exec_wipe(&exec);
    return rc;
}
