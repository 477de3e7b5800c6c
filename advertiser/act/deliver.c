/* What a pod needs on its card before its sandbox: the card's configuration,
 * directories and files; and their end. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/act_private.h"
#include "advertiser/act/hostdir.h"
#include "advertiser/act/prep.h"
#include "model/base/base64.h"
#include "model/base/mem.h"

enum {
    PIECE = 73728,        /* bytes; 98304 characters of base64 */
    PIECES_MAX = 2 << 20, /* bytes of arguments */
};

/* --- the card ----------------------------------------------------------- */

/* It runs there, may run there, or is about to, on the card as it is now. */
static bool uses_card(const struct entry *e)
{
    const struct machine *m = &e->m;
    bool used = !entry_is_over(e) && (e->configured || m->prepared);
    for (size_t i = 0; i < m->found.n_sandboxes; i++)
        used |= m->found.sandboxes[i].ready;
    for (size_t i = 0; i < m->found.n_containers; i++)
        used |= m->found.containers[i].state == CRI_RUNNING ||
                m->found.containers[i].state == CRI_UNKNOWN;
    /* what an earlier life of ours made is not known before the first list */
    used |= !m->listed && e->intent->attempt > 0;
    return used && e->intent->state != ACT_GONE;
}

static bool in_use(struct place *at, const struct entry *e)
{
    bool used = false;
    (void)pthread_mutex_lock(&at->a->lock);
    for (size_t i = 0; i < at->a->n_entries; i++) {
        const struct entry *other = at->a->entries[i];
        used |= other != e && !entry_is_ours(other) && uses_card(other) &&
                strcmp(other->intent->place, at->what.name) == 0;
    }
    (void)pthread_mutex_unlock(&at->a->lock);
    return used;
}

/* From now on the card is to stay as it is for this pod, or not any more. */
static void set_configured(struct actuator *a, struct entry *e, bool configured)
{
    (void)pthread_mutex_lock(&a->lock);
    e->configured = configured;
    (void)pthread_mutex_unlock(&a->lock);
}

static bool keeps(void *ctx)
{
    struct actuator *a = ctx;
    (void)pthread_mutex_lock(&a->lock);
    bool goes_on = !a->stopping;
    (void)pthread_mutex_unlock(&a->lock);
    return goes_on;
}

static void run_prep(struct place *at, const struct prep_request *request,
                     struct machine_result *r, struct error *err)
{
    const struct actuator *a = at->a;
    const struct prep_config config = {
        .sysfs = a->sysfs, .hooks_dir = a->hooks_dir, .dir = a->dir};
    struct prep_outcome outcome = {0};
    r->e = keeps(at->a) ? prep_run(&config, request, &outcome, err)
                        : error_set(err, ECANCELED, "the advertiser ends");
    if (r->e < 0) {
        r->reason = "PrepareFailed";
    } else if (outcome.reason[0]) {
        r->e = error_set(err, EIO, "%s", outcome.message);
        r->reason = outcome.reason;
        r->permanent = !outcome.again;
        r->waits = outcome.waits;
    }
}

/* Who asks for no number takes the card with what it has; that stays so from
 * then on, too. */
static void deliver_vfs(struct place *at, const struct prep_request *given,
                        struct entry *e, struct machine_result *r,
                        struct error *err)
{
    struct prep_request request = *given;
    request.hook = NULL;
    (void)pthread_mutex_lock(&at->vfs);
    set_configured(at->a, e, false);
    request.in_use = in_use(at, e);
    if (request.sriov_vfs >= 0)
        run_prep(at, &request, r, err);
    if (r->e == 0)
        set_configured(at->a, e, true);
    (void)pthread_mutex_unlock(&at->vfs);
}

void deliver_card(struct place *at, const struct act_place *what,
                  struct entry *e, struct machine_result *r, struct error *err)
{
    struct prep_request request = {
        .card = what->name,
        .pci = what->pci,
        .namespace = e->intent->namespace,
        .pod = e->intent->name,
        .sriov_vfs = e->intent->sriov_vfs,
        .hook = e->intent->hook,
        .keep = keeps,
        .ctx = at->a,
    };
    bool asks = request.sriov_vfs >= 0 || request.hook[0];
    if (config_is_local(what))
        return;
    if (asks)
        (void)pthread_mutex_lock(&at->prep);
    deliver_vfs(at, &request, e, r, err);
    request.sriov_vfs = -1; /* it has them */
    if (r->e == 0 && request.hook[0])
        run_prep(at, &request, r, err);
    if (asks)
        (void)pthread_mutex_unlock(&at->prep);
}

/* --- files by the helper ------------------------------------------------ */

struct args {
    const char **list;
    size_t n, cap;
    struct arena arena;
    size_t size;
};

static void add_arg(struct args *args, const char *text, size_t size)
{
    args->list = xgrow(args->list, args->n, &args->cap, sizeof *args->list);
    args->list[args->n++] = arena_strndup(&args->arena, text, size);
    args->size += size + 1;
}

static void add(struct args *args, const char *text)
{
    add_arg(args, text, strlen(text));
}

static void args_fini(struct args *args)
{
    free(args->list);
    arena_fini(&args->arena);
}

static void add_number(struct args *args, const char *fmt, unsigned value)
{
    char text[16];
    (void)snprintf(text, sizeof text, fmt[1] == 'o' ? "%o" : "%u", value);
    add(args, text);
}

static void add_file(struct args *args, const char *volume,
                     const struct podspec_file *f)
{
    cleanup_free char *name = xasprintf("volumes/%s/%s", volume, f->path);
    unsigned n = (unsigned)((f->size + PIECE - 1) / PIECE);
    add(args, name);
    add_number(args, "%o", f->mode & 0777);
    add_number(args, "%u", n);
    for (size_t at = 0; at < f->size; at += PIECE) {
        cleanup_str struct str piece = STR_INIT(STR_MAX_DEFAULT);
        base64_add(&piece, f->data + at,
                   f->size - at < PIECE ? f->size - at : PIECE);
        add_arg(args, str_text(&piece), piece.size);
    }
}

size_t deliver_n_files(const struct entry *e)
{
    size_t n = 0;
    for (size_t i = 0; e->spec && i < e->spec->n_volumes; i++)
        n += e->spec->volumes[i].n_files;
    return n;
}

/* The program's own words, or how it ended. */
static int judge(const struct cri_exec *exec, const char *what,
                 struct error *err)
{
    if (exec->exit_code == 0)
        return 0;
    return error_set(err, EIO, "%s: biga-card ended with exit code %d: %.300s",
                     what, (int)exec->exit_code, str_text(&exec->err));
}

static int run(struct cri *cri, const char *id, const struct args *args,
               const char *what, struct error *err)
{
    struct cri_exec exec = {0};
    int e = helper_run(cri, id, args->list, args->n, &exec, err);
    if (e < 0)
        return e;
    e = judge(&exec, what, err);
    str_fini(&exec.out);
    str_fini(&exec.err);
    return e;
}

static int deliver_by(struct actuator *a, const char *id, struct cri *cri,
                      struct entry *e, struct error *err)
{
    struct args args = {0};
    cleanup_free char *dir = config_pod_dir(a, e);
    add(&args, "/biga-card");
    add(&args, "files");
    add(&args, dir);
    for (size_t i = 0; i < e->spec->n_volumes; i++)
        for (size_t k = 0; k < e->spec->volumes[i].n_files; k++)
            add_file(&args, e->spec->volumes[i].name,
                     &e->spec->volumes[i].files[k]);
    int r = args.size > PIECES_MAX
                ? error_set(err, E2BIG, "files: more than %d bytes in all",
                            PODSPEC_FILES_SIZE_MAX)
                : run(cri, id, &args, "files", err);
    args_fini(&args);
    return r;
}

static void not_delivered(const struct actuator *a, struct entry *e,
                          struct machine_result *r, struct error *err)
{
    if (deliver_n_files(e) == 0)
        return;
    r->permanent = true;
    r->reason = "HelperMissing";
    r->e = a->helper_image
               ? error_set(err, ENOENT,
                           "its files cannot be written on %s, where Biga's "
                           "helper (image %s) does not run: import the image "
                           "there, delete the pod and apply it again",
                           e->intent->place, a->helper_image)
               : error_set(err, ENOENT,
                           "its files cannot be written on %s: give the "
                           "advertiser the image of Biga's helper",
                           e->intent->place);
}

void deliver_files(struct place *at, const struct act_place *what,
                   struct cri *cri, struct entry *e, struct machine_result *r,
                   struct error *err)
{
    struct actuator *a = at->a;
    char id[CRI_ID_MAX + 1];
    cleanup_free char *dir = config_pod_dir(a, e);
    if (config_is_local(what)) {
        r->e = hostdir_make(dir, e->spec, err);
        r->reason = r->e < 0 ? "FilesFailed" : NULL;
        return;
    }
    (void)pthread_mutex_lock(&a->lock);
    helper_id(a, what->name, id);
    (void)pthread_mutex_unlock(&a->lock);
    if (!id[0]) {
        not_delivered(a, e, r, err);
        return;
    }
    if (deliver_n_files(e) > 0)
        r->e = deliver_by(a, id, cri, e, err);
    if (r->e < 0)
        r->reason = "FilesFailed";
}

/* --- their end ---------------------------------------------------------- */

int deliver_end(struct place *at, const struct act_place *what, struct cri *cri,
                struct entry *e, struct error *err)
{
    struct actuator *a = at->a;
    char id[CRI_ID_MAX + 1];
    cleanup_free char *dir = config_pod_dir(a, e);
    if (config_is_local(what))
        return hostdir_remove(dir, err);
    if (e->intent->attempt == 0 && deliver_n_files(e) == 0)
        return 0; /* nothing was begun */
    (void)pthread_mutex_lock(&a->lock);
    helper_id(a, what->name, id);
    (void)pthread_mutex_unlock(&a->lock);
    if (!id[0]) /* nothing was written, or nobody can remove it */
        return 0;
    struct args args = {0};
    add(&args, "/biga-card");
    add(&args, "rm");
    add(&args, dir);
    int r = run(cri, id, &args, "removing the pod's files", err);
    args_fini(&args);
    return r;
}
