#include "card/follow.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "card/card.h"
#include "card/follow_private.h"
#include "lib/base/mem.h"

enum {
    MORE_S = 30,
    HEAD_ARGS = 7,       /* before the files */
    GATHER_NS = 3000000, /* between looks at files that are written to */
    LAG_NS = 1000000000, /* longer than it lingers, with pieces that are full */
    GATHER_MIN = 65536,  /* unless so many bytes came at once */
};

struct round {
    struct follow_meet meet;
    const char *dir;
    int64_t wait_ns, linger_ns;
    struct follow_file *files;
    size_t n_files;
    struct follow_out out;
};

/* --- arguments ------------------------------------------------------------ */

/* A number that a blank or the text's end follows, and what is behind. */
static bool number_take(const char **text, uint64_t max, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    if (**text < '0' || **text > '9')
        return false;
    unsigned long long value = strtoull(*text, &end, 10);
    if (errno || value > max || (*end && *end != ' '))
        return false;
    *text = *end ? end + 1 : end;
    *ret_value = value;
    return true;
}

static bool number_parse(const char *text, uint64_t max, uint64_t *ret_value)
{
    return number_take(&text, max, ret_value) && !*text;
}

static int file_parse(const char *text, struct follow_file *f,
                      struct error *err)
{
    const char *at = text;
    uint64_t tag, flags;
    if (!number_take(&at, UINT32_MAX, &tag) || !number_take(&at, 1, &flags) ||
        !number_take(&at, INT64_MAX, &f->next) ||
        !number_take(&at, INT64_MAX, &f->freed) ||
        !number_take(&at, INT64_MAX, &f->rate) || at[0] != '/' ||
        !card_name_ok(at + 1))
        return error_set(err, EINVAL,
                         "file \"%.300s\": must be "
                         "\"TAG FLAGS OFFSET FREE RATE PATH\"",
                         text);
    f->tag = (uint32_t)tag;
    f->ends = flags == 1;
    f->path = at;
    f->fd = -1;
    return 0;
}

static bool gen_parse(const char *text, char ret_gen[17])
{
    size_t n = strspn(text, "0123456789abcdef");
    if (n == 0 || n > 16 || text[n])
        return false;
    memcpy(ret_gen, text, n + 1);
    return true;
}

static bool start_parse(const char *text, enum follow_start *ret_start)
{
    static const char *const names[] = {"first", "next", "hurry"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_start = (enum follow_start)i;
            return true;
        }
    return false;
}

static int round_parse(struct round *r, int argc, const char *const *argv,
                       struct error *err)
{
    uint64_t wait, linger, max;
    if (argc < HEAD_ARGS || argc > HEAD_ARGS + FOLLOW_FILES_MAX ||
        !gen_parse(argv[1], r->meet.gen) ||
        !number_parse(argv[2], INT64_MAX, &r->meet.seq) || r->meet.seq == 0 ||
        !start_parse(argv[3], &r->meet.start) ||
        !number_parse(argv[4], FOLLOW_WAIT_MAX, &wait) ||
        !number_parse(argv[5], FOLLOW_WAIT_MAX, &linger) ||
        !number_parse(argv[6], CARD_LOG_MAX, &max))
        return error_set(err, EINVAL,
                         "usage: follow DIR GEN SEQ first|next|hurry WAIT "
                         "LINGER MAX FILE...");
    r->dir = argv[0];
    r->wait_ns = (int64_t)wait * 1000000;
    r->linger_ns = (int64_t)linger * 1000000;
    r->out.room = max;
    r->n_files = (size_t)(argc - HEAD_ARGS);
    r->files = xcalloc(r->n_files + 1, sizeof *r->files);
    for (size_t i = 0; i < r->n_files; i++) {
        int rc = file_parse(argv[HEAD_ARGS + i], &r->files[i], err);
        if (rc)
            return rc;
        if (i > 0 && r->files[i].tag <= r->files[i - 1].tag)
            return error_set(err, EINVAL, "file \"%.300s\": tags must rise",
                             argv[HEAD_ARGS + i]);
    }
    return 0;
}

/* --- a round -------------------------------------------------------------- */

/* A piece of each; `*ret_more` when there may be others at once, `*ret_told`
 * when the host waits for what was said. */
static int give_all(struct round *r, bool *ret_more, bool *ret_told,
                    struct error *err)
{
    int rc = 0;
    *ret_more = false;
    for (size_t i = 0; i < r->n_files && rc >= 0; i++) {
        struct follow_file *f = &r->files[i];
        if (f->fd < 0)
            follow_file_open(f, r->meet.notify);
        rc = r->out.room > 0 ? follow_file_give(f, &r->out, err) : 0;
        *ret_more |= rc > 0;
        if (rc == 0 && r->out.room > 0) {
            rc = follow_file_tell(f, &r->out, err);
            *ret_told |= rc > 0;
        }
    }
    return rc < 0 ? rc : 0;
}

/* When a file with a limit may be read again, when that is before `due`. */
static int64_t limits_due(const struct round *r, int64_t now, int64_t due)
{
    for (size_t i = 0; i < r->n_files; i++)
        if (r->files[i].rate && r->files[i].due_ns > now &&
            r->files[i].due_ns < due)
            due = r->files[i].due_ns;
    return due;
}

static void wait_until(struct round *r, int64_t due)
{
    char events[4096];
    int64_t now = follow_now_ns(), look = (int64_t)FOLLOW_LOOK_MS * 1000000;
    due = limits_due(r, now, due < now + look ? due : now + look);
    due = due > now + 1000000 ? due : now + 1000000;
    struct timespec t = {.tv_sec = (due - now) / 1000000000,
                         .tv_nsec = (due - now) % 1000000000};
    struct pollfd p = {.fd = r->meet.notify, .events = POLLIN};
    (void)ppoll(&p, 1, &t, NULL); /* all is looked at again */
    while (r->meet.notify >= 0 &&
           read(r->meet.notify, events, sizeof events) > 0)
        ;
}

/* A line each time would cost more than the lines. */
static void gather(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = GATHER_NS}, NULL);
}

static int round_give(struct round *r, struct error *err)
{
    int64_t due = follow_now_ns() + r->wait_ns;
    bool begun = false, more, told = false;
    for (;;) {
        uint64_t before = r->out.given;
        int rc = give_all(r, &more, &told, err);
        if (rc)
            return rc;
        int64_t now = follow_now_ns();
        if (r->out.given > before && !begun) {
            begun = true;
            due = now + r->linger_ns < due ? now + r->linger_ns : due;
        }
        follow_meet_look(&r->meet);
        /* who lags behind takes as much as there is, for a time */
        if (r->out.room == 0 || told || (now >= (more ? due + LAG_NS : due)) ||
            (r->meet.hurried && !more))
            return 0;
        if (r->out.given > before && r->out.given - before < GATHER_MIN)
            gather();
        else if (!more)
            wait_until(r, due);
    }
}

static int round_run(struct round *r, struct error *err)
{
    int rc = follow_meet_wait(&r->meet, r->files, r->n_files, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->n_files; i++)
        follow_file_free(&r->files[i]);
    rc = round_give(r, err);
    for (size_t i = 0; i < r->n_files && !rc; i++)
        rc = follow_file_complain(&r->files[i], &r->out, err);
    if (!rc)
        rc = follow_out_end(&r->out, err);
    return rc ? rc : follow_meet_pass(&r->meet, r->files, r->n_files, err);
}

int card_follow(int argc, const char *const *argv, int out, struct error *err)
{
    struct round r = {.out = {.fd = out}};
    r.meet.dir = r.meet.slot = r.meet.notify = -1;
    int rc = round_parse(&r, argc, argv, err);
    if (!rc)
        rc = follow_meet_open(&r.meet, r.dir, err);
    if (!rc) {
        r.out.piece = xmalloc(FOLLOW_PIECE);
        rc = round_run(&r, err);
    }
    for (size_t i = 0; i < r.n_files && r.files; i++)
        follow_file_close(&r.files[i]);
    follow_meet_close(&r.meet);
    free(r.out.piece);
    free(r.files);
    return rc;
}

int card_follow_main(int argc, const char *const *argv)
{
    struct error err;
    uint64_t wait;
    /* its output may be taken by nobody any more: the longest that a host
     * waits, for those before it too, and more */
    if (argc > 4 && number_parse(argv[4], FOLLOW_WAIT_MAX, &wait))
        (void)alarm((unsigned)(3 * wait / 1000) + MORE_S);
    int rc = card_follow(argc, argv, STDOUT_FILENO, &err);
    if (!rc)
        return 0;
    (void)fprintf(stderr, "biga-card: %s\n", err.text);
    return rc == -EINVAL ? 2 : rc == -ESTALE ? FOLLOW_STATUS_STRANGER : 1;
}
