/* biga logs, exec and attach: of this host, or far_*.c */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/host_socket.h"
#include "cli/base/say.h"
#include "cli/pod/far.h"
#include "cli/pod/log_clean.h"
#include "cli/verb/logs.h"
#include "cli/verb/verb.h"
#include "lib/base/base64.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    PIECE_FIRST = 256 << 10, /* bytes of a log asked for at once */
    PIECE_MAX = 8 << 20,
    PIECE_OLD = 1 << 20, /* what advertisers of before give */
    QUICK_MS = 500,
    SLOW_MS = 2000,
    TIMEOUT_S = 25,   /* an advertiser gives a card 20 */
    PAUSE_MS = 1000,  /* between looks for more */
    EXEC_SPARE_S = 5, /* for the way there and back */
};

/* A pod that must be on `card` is. */
static int check_card(struct host_socket *l, const char *pod, const char *card)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    if (!card)
        return 0;
    host_socket_pod_path(pod, "", &path);
    int rc = host_socket_try(l, "GET", str_text(&path), &json);
    if (rc < 0)
        return host_socket_complain(l);
    if (rc == 0 && strcmp(json_text(json, "place"), card) != 0) {
        cleanup_str struct str clean = STR_INIT(512);
        text_clean(json_text(json, "place"), &clean);
        return cli_fail("%s is on %s, not on %s", pod, str_text(&clean), card);
    }
    return rc;
}

/* Append a member that is base64: an exit code. */
static int add_decoded(const cJSON *json, const char *name, struct str *out)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(json, name);
    if (cJSON_IsString(text) &&
        base64_decode(text->valuestring, strlen(text->valuestring), out))
        return 0;
    return cli_fail("the advertiser's answer cannot be read: \"%s\" must be "
                    "base64 of at most %zu bytes",
                    name, out->max - out->size);
}

static int print_bytes(FILE *to, const struct str *bytes, struct log_cut *cut)
{
    cleanup_str struct str clean = STR_INIT(STR_MAX_DEFAULT);
    const struct str *shown = bytes;
    if (isatty(fileno(to))) {
        log_clean(str_text(bytes), bytes->size, cut, &clean);
        shown = &clean;
    }
    if (fwrite(str_text(shown), 1, shown->size, to) == shown->size &&
        fflush(to) == 0)
        return 0;
    perror("biga: output");
    return CLI_FAILED;
}

/* --- logs -----------------------------------------------------------------
 *
 * A log is asked for in pieces, the next one while the last one is printed:
 * large ones while they come quickly, for each costs a command on the card,
 * and small ones at first and where the way is slow, for each has a deadline.
 */

struct following {
    struct host_socket l;
    const char *pod;
    /* where to go on; attempt 0: the advertiser knows none */
    uint64_t offset, attempt;
    size_t ask, ask_max; /* bytes of the next piece, of any */
    struct str piece;    /* the last one that came */
    bool news;           /* it brought us further */
    int64_t taken;       /* bytes that came so far */
    struct log_cut cut;  /* of what was printed */
    bool complained;     /* that the card does not answer */
};

static void add_path(const struct following *f, size_t max, struct str *path)
{
    host_socket_pod_path(f->pod, "/logs", path);
    str_addf(path, "?offset=%" PRIu64 "&max=%zu", f->offset, max);
    if (f->attempt)
        str_addf(path, "&attempt=%" PRIu64, f->attempt);
    cli_add_query(path, "container", f->l.cli->set.container);
}

static bool take_header(const struct following *f, const char *name,
                        uint64_t *ret_value)
{
    const char *text = http_client_header(f->l.http, name);
    char *end = NULL;
    errno = 0;
    if (!text || *text < '0' || *text > '9')
        return false;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *ret_value = value;
    return true;
}

static void fit_pieces(struct following *f, size_t asked, int64_t took_ms)
{
    if (took_ms > SLOW_MS && f->ask > PIECE_FIRST)
        f->ask /= 2;
    else if (took_ms < QUICK_MS && f->piece.size >= asked / 2 &&
             f->ask < f->ask_max)
        f->ask *= 2;
}

/* Where to go on, by the answer; an exit code. */
static int take_place(struct following *f)
{
    uint64_t next = 0, attempt = 0;
    if (!take_header(f, "Biga-Next", &next))
        return cli_fail("the advertiser's answer has no number in Biga-Next, "
                        "so where the log goes\non is not known.  Does "
                        "biga-advertiser serve this socket, in biga's "
                        "version?");
    if (!take_header(f, "Biga-Attempt", &attempt))
        attempt = 0;
    f->news = next != f->offset || (f->attempt && attempt != f->attempt);
    f->offset = next;
    f->attempt = attempt;
    return 0;
}

/* The next piece; an exit code, or less than 0 after a failure of the
 * advertiser. */
static int fetch(struct following *f)
{
    int64_t left = f->l.cli->set.limit_bytes - f->taken, began = clock_ms();
    size_t asked = left < (int64_t)f->ask ? (size_t)left : f->ask;
    cleanup_str struct str path = STR_INIT(4096);
    add_path(f, asked, &path);
    str_reset(&f->piece);
    f->news = false;
    int rc = host_socket_try_text(&f->l, str_text(&path), TIMEOUT_S);
    if (rc < 0 && f->l.answer.status == 400 && asked > PIECE_OLD) {
        f->ask = f->ask_max = PIECE_OLD; /* an advertiser of before */
        return fetch(f);
    }
    if (rc == 0)
        rc = take_place(f);
    if (rc)
        return rc;
    str_move(&f->piece, &f->l.answer.body);
    if ((int64_t)f->piece.size > left) /* of a host's pod: whole lines */
        f->piece.size = (size_t)left;
    f->taken += (int64_t)f->piece.size;
    fit_pieces(f, asked, clock_ms() - began);
    return 0;
}

struct ahead {
    struct following *f;
    int rc;
};

static void *fetch_ahead(void *arg)
{
    struct ahead *a = arg;
    thread_name("fetch", NULL);
    a->rc = fetch(a->f);
    return NULL;
}

/* What came last, while the next piece comes: as fetch(). */
static int print_and_fetch(struct following *f)
{
    cleanup_str struct str piece = STR_INIT(PIECE_MAX);
    struct ahead a = {.f = f};
    pthread_t thread;
    str_move(&piece, &f->piece);
    f->news = false;
    if (f->taken >= f->l.cli->set.limit_bytes)
        return print_bytes(stdout, &piece, &f->cut);
    bool apart = pthread_create(&thread, NULL, fetch_ahead, &a) == 0;
    int rc = print_bytes(stdout, &piece, &f->cut);
    if (rc)
        atomic_store(&f->l.stop, true);
    if (apart)
        (void)pthread_join(thread, NULL); /* a thread of ours: joinable */
    else if (rc == 0)
        a.rc = fetch(f);
    return rc ? rc : a.rc;
}

static void pause_ms(long ms)
{
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    (void)nanosleep(&nap, NULL); /* a signal: we look sooner */
}

/* Can the pod write more? */
static bool goes_on(struct following *f)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    host_socket_pod_path(f->pod, "/state", &path);
    if (host_socket_try(&f->l, "GET", str_text(&path), &json) != 0)
        return f->l.answer.status >= 500;
    const char *state = json_text(json, "state");
    return strcmp(state, "failed") != 0 && strcmp(state, "gone") != 0;
}

/* A card that does not answer may do so again. */
static bool is_patient(struct following *f)
{
    long status = f->l.answer.status;
    if (!f->l.cli->set.follow || status < 502 || status > 504)
        return false;
    if (!f->complained)
        (void)host_socket_complain(&f->l); /* and goes on */
    f->complained = true;
    return true;
}

static int follow(struct following *f)
{
    const struct cli_settings *s = &f->l.cli->set;
    bool last = false; /* after the pod's end, what came until then */
    int rc = fetch(f);
    for (;;) {
        if (rc > 0)
            return rc;
        if (rc < 0 && !is_patient(f))
            return host_socket_complain(&f->l);
        f->complained &= rc < 0;
        if (f->news) {
            rc = print_and_fetch(f);
        } else if (f->taken >= s->limit_bytes) {
            break;
        } else {
            if (!s->follow || last)
                return 0;
            last = rc == 0 && !goes_on(f);
            if (!last)
                pause_ms(PAUSE_MS);
            rc = fetch(f);
        }
    }
    fprintf(stderr,
            "biga: that were %" PRId64 " bytes; more with "
            "--limit-bytes\n",
            f->taken);
    return 0;
}

int show_logs(struct cli *c, const char *pod, const char *card)
{
    struct following f = {.pod = pod,
                          .ask = PIECE_FIRST,
                          .ask_max = PIECE_MAX,
                          .piece = STR_INIT(PIECE_MAX)};
    int rc = host_socket_open(c, &f.l);
    if (rc)
        return rc;
    rc = check_card(&f.l, pod, card);
    if (rc == 0)
        rc = follow(&f);
    host_socket_close(&f.l);
    str_fini(&f.piece);
    return rc;
}

/* What the advertiser's socket does not know. */
static bool asks_more(const struct cli *c)
{
    return c->set.tail >= 0 || *c->set.since || c->set.previous ||
           c->set.timestamps;
}

int verb_logs(struct cli *c, int argc, char **argv)
{
    bool chosen = c->set.selector && *c->set.selector;
    if (!argc == !chosen)
        return cli_usage("logs: which pods? POD, job/NAME, or --selector");
    if (!argc || strncmp(argv[0], "job/", 4) == 0)
        return far_logs(c, argc ? argv[0] : NULL);
    int rc = cli_qualify(c, "logs", &argv[0]);
    if (rc)
        return rc;
    return far_is_here(c) && !asks_more(c) ? show_logs(c, argv[0], NULL)
                                           : far_logs(c, argv[0]);
}

/* --- exec ----------------------------------------------------------------- */

static void write_body(const struct cli *c, int argc, char **argv,
                       struct str *body)
{
    jwrite_object(body, NULL);
    jwrite_text(body, "container", c->set.container);
    jwrite_int(body, "timeout", c->set.exec_timeout);
    jwrite_array(body, "argv");
    for (int i = 0; i < argc; i++)
        jwrite_text(body, NULL, argv[i]);
    str_add(body, "]}");
}

/* What the command wrote, and its exit code. */
static int show_result(const cJSON *json)
{
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str err = STR_INIT(STR_MAX_DEFAULT);
    struct log_cut cuts[2] = {{.n = 0}, {.n = 0}};
    if (add_decoded(json, "stdout", &out) ||
        add_decoded(json, "stderr", &err) ||
        print_bytes(stdout, &out, &cuts[0]) ||
        print_bytes(stderr, &err, &cuts[1]))
        return CLI_FAILED;
    double code = json_number(json, "exitCode");
    return code >= 0 && code <= 255 ? (int)code : CLI_FAILED;
}

int run_command(struct cli *c, const char *pod, const char *card, int argc,
                char **argv)
{
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(1 << 20);
    cleanup_with(json) cJSON *json = NULL;
    struct host_socket l;
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    rc = check_card(&l, pod, card);
    host_socket_pod_path(pod, "/exec", &path);
    write_body(c, argc, argv, &body);
    if (rc == 0)
        rc = host_socket_ask(&l, "POST", str_text(&path), &body,
                             (unsigned)c->set.exec_timeout + EXEC_SPARE_S,
                             &json);
    if (rc == 0 && json)
        rc = show_result(json);
    host_socket_close(&l);
    return rc;
}

/* By the extender, unless it is for this host alone. */
static int run_far(struct cli *c, const char *pod, const char *const *argv)
{
    const struct far_command command = {.argv = argv,
                                        .input = c->set.interactive,
                                        .tty = c->set.tty,
                                        .in = STDIN_FILENO,
                                        .out = STDOUT_FILENO};
    return far_command_run(c, pod, &command);
}

int verb_exec(struct cli *c, int argc, char **argv)
{
    if (far_is_here(c) && !c->set.interactive && !c->set.tty)
        return run_command(c, argv[0], NULL, argc - 1, argv + 1);
    return run_far(c, argv[0], (const char *const *)argv + 1);
}

int verb_attach(struct cli *c, int argc, char **argv)
{
    (void)argc;
    return run_far(c, argv[0], NULL);
}
