/* biga logs, biga exec */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/local.h"
#include "cli/onhost.h"
#include "cli/verbs.h"
#include "model/base/base64.h"
#include "model/base/mem.h"

enum {
    PIECE_MAX = 256 << 10, /* bytes of a log asked for at once */
    PAUSE_MS = 1000,       /* between looks for more */
    EXEC_SPARE_S = 5,      /* for the way there and back */
};

/* A pod that must be on `card` is. */
static int check_card(struct local *l, const char *pod, const char *card)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    if (!card)
        return 0;
    local_pod_path(pod, "", &path);
    int rc = local_try(l, "GET", str_text(&path), &json);
    if (rc < 0)
        return local_complain(l);
    if (rc == 0 && strcmp(json_text(json, "place"), card) != 0) {
        cleanup_str struct str clean = STR_INIT(512);
        text_clean(json_text(json, "place"), &clean);
        fprintf(stderr, "biga: %s is on %s, not on %s\n", pod, str_text(&clean),
                card);
        return CLI_FAILED;
    }
    return rc;
}

/* A member that is base64; empty when it is not. */
static void add_decoded(const cJSON *json, const char *name, struct str *out)
{
    const char *text = json_text(json, name);
    (void)base64_decode(text, strlen(text), out);
}

void log_clean(const char *data, size_t size, struct str *out)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char b = (unsigned char)data[i];
        unsigned char next = i + 1 < size ? (unsigned char)data[i + 1] : 0;
        bool plain = (b >= 0x20 && b != 0x7f) || strchr("\n\t\r", b);
        /* C1 as UTF-8 writes it */
        if (b == 0xc2 && next >= 0x80 && next <= 0x9f) {
            plain = false;
            i++;
        }
        str_add_c(out, plain && b ? (char)b : '?');
    }
}

static int print_bytes(FILE *to, const struct str *bytes)
{
    cleanup_str struct str clean = STR_INIT(STR_MAX_DEFAULT);
    const struct str *shown = bytes;
    if (isatty(fileno(to))) {
        log_clean(str_text(bytes), bytes->size, &clean);
        shown = &clean;
    }
    if (fwrite(str_text(shown), 1, shown->size, to) == shown->size &&
        fflush(to) == 0)
        return 0;
    perror("biga: output");
    return CLI_FAILED;
}

/* --- logs ----------------------------------------------------------------- */

struct following {
    struct local l;
    const char *pod;
    uint64_t offset;
    int64_t printed;
    bool complained; /* that the card does not answer */
};

/* The next piece: its size, 0 when there is no more at present, or less than
 * 0 after a failure of the advertiser. */
static int print_piece(struct following *f, int64_t *ret_size)
{
    const struct cli_settings *s = &f->l.cli->set;
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_str struct str text = STR_INIT(PIECE_MAX);
    cleanup_with(json) cJSON *json = NULL;
    int64_t max = s->limit_bytes - f->printed;
    local_pod_path(f->pod, "/logs", &path);
    str_addf(&path, "?offset=%" PRIu64 "&max=%" PRId64 "&container=", f->offset,
             max < PIECE_MAX ? max : PIECE_MAX);
    cli_add_encoded(&path, s->container);
    int rc = local_try(&f->l, "GET", str_text(&path), &json);
    if (rc != 0)
        return rc;
    add_decoded(json, "data", &text);
    double next = json_number(json, "next");
    if (next >= (double)f->offset)
        f->offset = (uint64_t)next;
    f->printed += (int64_t)text.size;
    *ret_size = (int64_t)text.size;
    return print_bytes(stdout, &text);
}

static void pause_ms(long ms)
{
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000L};
    (void)nanosleep(&nap, NULL);
}

/* Can the pod write more? */
static bool goes_on(struct following *f)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    local_pod_path(f->pod, "/state", &path);
    if (local_try(&f->l, "GET", str_text(&path), &json) != 0)
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
        (void)local_complain(&f->l);
    f->complained = true;
    return true;
}

static int follow(struct following *f)
{
    const struct cli_settings *s = &f->l.cli->set;
    bool last = false; /* after the pod's end, what came until then */
    while (f->printed < s->limit_bytes) {
        int64_t size = 0;
        int rc = print_piece(f, &size);
        if (rc > 0)
            return rc;
        if (rc < 0 && !is_patient(f))
            return local_complain(&f->l);
        f->complained &= rc < 0;
        if (size > 0)
            continue;
        if (!s->follow || last)
            return 0;
        last = rc == 0 && !goes_on(f);
        if (!last)
            pause_ms(PAUSE_MS);
    }
    fprintf(stderr,
            "biga: that were %" PRId64 " bytes; more with "
            "--limit-bytes\n",
            f->printed);
    return 0;
}

int show_logs(struct cli *c, const char *pod, const char *card)
{
    struct following f = {.pod = pod};
    int rc = local_open(c, &f.l);
    if (rc)
        return rc;
    rc = check_card(&f.l, pod, card);
    if (rc == 0)
        rc = follow(&f);
    local_close(&f.l);
    return rc;
}

int verb_logs(struct cli *c, int argc, char **argv)
{
    (void)argc;
    return show_logs(c, argv[0], NULL);
}

/* --- exec ----------------------------------------------------------------- */

static void write_body(const struct cli *c, int argc, char **argv,
                       struct str *body)
{
    str_add(body, "{\"container\":");
    str_add_json(body, c->set.container);
    str_addf(body, ",\"timeout\":%" PRId64 ",\"argv\":[", c->set.exec_timeout);
    for (int i = 0; i < argc; i++) {
        if (i)
            str_add_c(body, ',');
        str_add_json(body, argv[i]);
    }
    str_add(body, "]}");
}

/* What the command wrote, and its exit code. */
static int show_result(const cJSON *json)
{
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str err = STR_INIT(STR_MAX_DEFAULT);
    add_decoded(json, "stdout", &out);
    add_decoded(json, "stderr", &err);
    if (print_bytes(stdout, &out) || print_bytes(stderr, &err))
        return CLI_FAILED;
    double code = json_number(json, "exitCode");
    return code >= 0 && code <= 255 ? (int)code : CLI_FAILED;
}

int run_command(struct cli *c, const char *pod, const char *card, int argc,
                char **argv)
{
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(1 << 20);
    cleanup_with(json) cJSON *json = NULL;
    struct local l;
    int rc = local_open(c, &l);
    if (rc)
        return rc;
    rc = check_card(&l, pod, card);
    local_pod_path(pod, "/exec", &path);
    write_body(c, argc, argv, &body);
    if (rc == 0)
        rc = local_ask(&l, "POST", str_text(&path), &body,
                       (unsigned)c->set.exec_timeout + EXEC_SPARE_S, &json);
    if (rc == 0 && json)
        rc = show_result(json);
    local_close(&l);
    return rc;
}

int verb_exec(struct cli *c, int argc, char **argv)
{
    return run_command(c, argv[0], NULL, argc - 1, argv + 1);
}
