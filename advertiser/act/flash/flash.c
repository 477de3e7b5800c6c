#include "advertiser/act/flash/flash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

enum { TAIL_MAX = 16384 }; /* bytes of the hook's log that are read */

struct flash {
    const struct prep_config *config;
    const struct flash_ask *ask;
    char wanted[FLASH_VERSION_MAX + 1]; /* what is to boot */
    char *log;                          /* the hook's */
    struct flash_image image;
    struct stat seen; /* of the log, at the last look */
    struct flash_said said;
};

static void say(struct flash_outcome *o, const char *reason, const char *fmt,
                ...) __attribute__((format(printf, 3, 4)));
static void say(struct flash_outcome *o, const char *reason, const char *fmt,
                ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(o->message, sizeof o->message, fmt, args);
    va_end(args);
    o->reason = reason;
}

/* --- what is asked -------------------------------------------------------- */

/* The image's name without its folder and ".bfb". */
static void wanted_version(const struct flash_ask *ask,
                           char ret_version[FLASH_VERSION_MAX + 1])
{
    const char *slash = strrchr(ask->bfb, '/');
    const char *name = slash ? slash + 1 : ask->bfb;
    size_t len = strlen(name);
    if (len > 4 && strcmp(name + len - 4, ".bfb") == 0)
        len -= 4;
    if (ask->version[0])
        (void)snprintf(ret_version, FLASH_VERSION_MAX + 1, "%s", ask->version);
    else
        (void)snprintf(ret_version, FLASH_VERSION_MAX + 1, "%.*s", (int)len,
                       name);
}

/* It becomes one line of an environment, and of a log. */
static bool is_plain(const char *text, size_t max)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return len <= max;
}

int flash_ask_check(const struct flash_ask *ask, struct error *err)
{
    char sum[FLASH_SUM_LEN + 1];
    if (ask->bfb[0] != '/' || !is_plain(ask->bfb, FLASH_PATH_MAX))
        return error_set(err, EINVAL,
                         "bfb: is \"%.80s\", must be an absolute path of at "
                         "most %d bytes",
                         ask->bfb, FLASH_PATH_MAX);
    if (ask->sha256[0] && (strlen(ask->sha256) != FLASH_SUM_LEN ||
                           !flash_sum_read(ask->sha256, FLASH_SUM_LEN, sum)))
        return error_set(err, EINVAL,
                         "sha256: is \"%.80s\", must be %d hexadecimal digits",
                         ask->sha256, FLASH_SUM_LEN);
    if (!is_plain(ask->version, FLASH_VERSION_MAX))
        return error_set(err, EINVAL,
                         "version: is \"%.80s\", must be one line of at most "
                         "%d bytes",
                         ask->version, FLASH_VERSION_MAX);
    if (ask->timeout_ms < 1 || ask->timeout_ms > FLASH_S_MAX * INT64_C(1000))
        return error_set(err, EINVAL,
                         "timeout: is %" PRId64 " ms, must be 1 to %d s",
                         ask->timeout_ms, FLASH_S_MAX);
    return 0;
}

/* --- what its hook says --------------------------------------------------- */

/* The end of the log. */
static void read_log(int fd, off_t size, struct flash_said *ret_said)
{
    cleanup_free char *tail = xmalloc(TAIL_MAX);
    ssize_t n = pread(fd, tail, TAIL_MAX,
                      size > TAIL_MAX ? size - TAIL_MAX : 0);
    flash_said_read(tail, n > 0 ? (size_t)n : 0, ret_said);
}

static int open_log(const struct flash *f, struct stat *ret_st)
{
    int fd = open(f->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, ret_st) < 0)
        *ret_st = (struct stat){0};
    return fd;
}

/* How far it is, if the log has changed. */
static void look(struct flash *f)
{
    struct stat st;
    struct flash_said said;
    cleanup_fd int fd = open_log(f, &st);
    if (fd < 0 || (st.st_size == f->seen.st_size &&
                   st.st_mtim.tv_sec == f->seen.st_mtim.tv_sec &&
                   st.st_mtim.tv_nsec == f->seen.st_mtim.tv_nsec))
        return;
    f->seen = st;
    read_log(fd, st.st_size, &said);
    if (said.percent < 0 || (said.percent == f->said.percent &&
                             strcmp(said.phase, f->said.phase) == 0))
        return;
    f->said = said;
    if (f->ask->told)
        f->ask->told(f->ask->ctx, &f->said);
}

/* What booted, once the hook has ended: before, the log may be that of another
 * that is waited for. */
static void read_version(struct flash *f)
{
    struct stat st;
    struct flash_said said = {0};
    cleanup_fd int fd = open_log(f, &st);
    if (fd >= 0)
        read_log(fd, st.st_size, &said);
    memcpy(f->said.version, said.version, sizeof said.version);
}

static bool keep(void *ctx)
{
    struct flash *f = ctx;
    look(f);
    return !f->ask->keep || f->ask->keep(f->ask->ctx);
}

static void tell(struct flash *f, const char *phase)
{
    f->said.percent = 0;
    (void)snprintf(f->said.phase, sizeof f->said.phase, "%s", phase);
    if (f->ask->told)
        f->ask->told(f->ask->ctx, &f->said);
}

/* --- its steps ------------------------------------------------------------ */

/* Leaves a reason when the card is not to be touched; -ECANCELED as keep(). */
static int check(struct flash *f, const struct prep_request *request,
                 struct flash_outcome *o, struct error *err)
{
    struct prep_outcome hook;
    struct error why = {0};
    tell(f, "checking the image");
    prep_hook_check(f->config, request, &hook);
    if (hook.reason[0]) {
        say(o, hook.reason, "%s", hook.message);
        return 0;
    }
    int e = flash_image_check(f->ask->bfb, f->ask->sha256, f->ask->keep,
                              f->ask->ctx, &f->image, &why);
    if (e == -ECANCELED)
        return error_set(err, ECANCELED, "%s", why.text);
    if (e < 0)
        say(o, e == -ENOENT ? "FlashImageMissing" : "FlashImageBad", "%s",
            why.text);
    return 0;
}

static int record(const struct flash *f, const char *reason,
                  const char *message, struct error *err)
{
    struct flash_record r = {.drained = f->ask->drained};
    (void)snprintf(r.reason, sizeof r.reason, "%s", reason);
    (void)snprintf(r.message, sizeof r.message, "%s", message);
    return flash_record_write(f->config->dir, f->ask->card, &r, err);
}

static int record_begun(const struct flash *f, struct error *err)
{
    char message[FLASH_MESSAGE_MAX];
    (void)snprintf(message, sizeof message,
                   "the host or its advertiser was started anew while %.200s "
                   "was being written to the card: see whether a hook still "
                   "runs (hook-%.60s.log), and flash it again, or biga card "
                   "undrain when you know that it is well",
                   f->ask->bfb, f->ask->card);
    return record(f, "FlashInterrupted", message, err);
}

/* What booted is what was to, of the image that was checked. */
static void verify(const struct flash *f, struct flash_outcome *o)
{
    const char *booted = f->said.version;
    if (!flash_image_is_same(f->ask->bfb, &f->image))
        say(o, "FlashImageChanged",
            "%.200s was changed while it was being written to the card, which "
            "may have another: flash it again",
            f->ask->bfb);
    else if (!booted[0])
        say(o, "FlashUnverified",
            "the hook ended well, and did not say what booted: see "
            "hook-%.60s.log",
            f->ask->card);
    else if (strcmp(booted, f->wanted) != 0)
        say(o, "FlashWrongVersion",
            "%s booted, and %s was to: did the card start from its other "
            "partition, or is --expect wrong?",
            booted, f->wanted);
    else
        say(o, "", "%s booted", booted);
}

static int run_hook(struct flash *f, struct prep_request *request,
                    struct flash_outcome *o, struct error *err)
{
    struct prep_outcome hook = {.reason = ""};
    struct prep_config config = *f->config;
    config.hook_ms = f->ask->timeout_ms;
    request->keep = keep;
    request->ctx = f;
    int e = prep_run(&config, request, &hook, err);
    if (e < 0)
        return e;
    look(f);
    read_version(f);
    if (strcmp(hook.reason, "HookTimedOut") == 0)
        say(o, "FlashTimedOut", "at %d %% (%s): %s", f->said.percent,
            f->said.phase, hook.message);
    else if (hook.reason[0])
        say(o, "FlashFailed", "at %d %% (%s): %s", f->said.percent,
            f->said.phase, hook.message);
    else
        verify(f, o);
    return 0;
}

/* From here on the card may not be as it was. */
static int carry_out(struct flash *f, struct prep_request *request,
                     struct flash_outcome *o, struct error *err)
{
    int e = record_begun(f, err);
    if (e < 0)
        return e;
    o->touched = true;
    e = run_hook(f, request, o, err);
    if (e < 0)
        return e;
    return o->reason[0]
               ? record(f, o->reason, o->message, err)
               : flash_record_remove(f->config->dir, f->ask->card, err);
}

int flash_run(const struct prep_config *config, const struct flash_ask *ask,
              struct flash_outcome *ret_outcome, struct error *err)
{
    cleanup_free char *log = xasprintf("%s/hook-%s.log", config->dir,
                                       ask->card);
    cleanup_free char *bfb = xasprintf("BIGA_FLASH_BFB=%s", ask->bfb);
    cleanup_free char *address = xasprintf("BIGA_CARD_ADDRESS=%s",
                                           ask->address);
    const char *const env[] = {bfb, address, NULL};
    struct prep_request request = {
        .card = ask->card,
        .pci = ask->pci,
        .namespace = "biga", /* of no pod */
        .pod = "card-flash",
        .sriov_vfs = -1,
        .hook = FLASH_HOOK,
        .env = env,
    };
    struct flash f = {.config = config, .ask = ask, .log = log};
    struct flash_outcome o = {.reason = ""};
    wanted_version(ask, f.wanted);
    int e = flash_ask_check(ask, err);
    if (e == 0)
        e = check(&f, &request, &o, err);
    if (e == 0 && !o.reason[0])
        e = carry_out(&f, &request, &o, err);
    if (e == 0)
        *ret_outcome = o;
    return e;
}
