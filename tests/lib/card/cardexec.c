#include "tests/lib/card/cardexec.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/volume.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "router/volume/volume_sync.h"

enum { WORDS = 8, ALL_ARGS_MAX = 64 << 20 };

struct cardexec {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;
    unsigned n_held;
    char fails[16];
    int code, times;
    struct {
        char word[16];
        unsigned n;
    } calls[WORDS];
    size_t args;
    unsigned lanes[8]; /* of each remote: a bit for each that has a call */
    struct str all;
};

struct cardexec *cardexec_create(void)
{
    struct cardexec *c = xcalloc(1, sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->changed, NULL);
    c->all = STR_INIT(ALL_ARGS_MAX);
    return c;
}

void cardexec_destroy(struct cardexec *c)
{
    str_fini(&c->all);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

void cardexec_fail(struct cardexec *c, const char *word, int code, int times)
{
    hold_lock(&c->lock);
    (void)snprintf(c->fails, sizeof c->fails, "%s", word);
    c->code = code;
    c->times = times;
}

void cardexec_hold(struct cardexec *c, bool hold)
{
    hold_lock(&c->lock);
    c->held = hold;
    (void)pthread_cond_broadcast(&c->changed);
}

void cardexec_await_held(struct cardexec *c, unsigned n)
{
    hold_lock(&c->lock);
    while (c->n_held < n)
        (void)pthread_cond_wait(&c->changed, &c->lock);
}

unsigned cardexec_calls(struct cardexec *c, const char *word)
{
    hold_lock(&c->lock);
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(c->calls[i].word, word) == 0)
            return c->calls[i].n;
    return 0;
}

size_t cardexec_args(struct cardexec *c)
{
    hold_lock(&c->lock);
    return c->args;
}

bool cardexec_seen(struct cardexec *c, const char *text)
{
    hold_lock(&c->lock);
    return memmem(str_text(&c->all), c->all.size, text, strlen(text)) != NULL;
}

/* --- a call ------------------------------------------------------------------- */

static void note(struct cardexec *c, const char *const *argv, size_t n)
{
    size_t size = 0, i = 0;
    for (size_t k = 0; k < n; k++) {
        size += strlen(argv[k]) + 1 + sizeof argv[k];
        str_add(&c->all, argv[k]);
        str_add_c(&c->all, '\n');
    }
    if (size > c->args)
        c->args = size;
    while (c->calls[i].word[0] && strcmp(c->calls[i].word, argv[1]) != 0)
        i++;
    (void)snprintf(c->calls[i].word, sizeof c->calls[i].word, "%s", argv[1]);
    c->calls[i].n++;
}

/* The error that this call is to have, 0 none; `after`: once it was done. */
static int fault(struct cardexec *c, const char *word, bool after)
{
    hold_lock(&c->lock);
    if (c->times == 0 || (c->times < 0) != after ||
        (c->fails[0] && strcmp(c->fails, word) != 0))
        return 0;
    c->times += after ? 1 : -1;
    return c->code;
}

/* Remotes are called "card-0" to "card-7". */
static unsigned *lanes_of(struct cardexec *c, const char *remote)
{
    return &c->lanes[remote[strlen(remote) - 1] & 7];
}

static void begin(struct cardexec *c, const char *remote, unsigned lane,
                  const char *const *argv, size_t n)
{
    hold_lock(&c->lock);
    if (lane >= VOLUME_LANES || (*lanes_of(c, remote) & 1u << lane))
        abort(); /* two calls of one lane */
    *lanes_of(c, remote) |= 1u << lane;
    note(c, argv, n);
    c->n_held++;
    (void)pthread_cond_broadcast(&c->changed);
    while (c->held)
        (void)pthread_cond_wait(&c->changed, &c->lock);
    c->n_held--;
}

static int carry_out(const char *const *argv, int n, int out, struct str *said,
                     struct error *err)
{
    const char *word = argv[0];
    char id[CARD_PAD_ID_SIZE];
    size_t size;
    int rc;
    if (strcmp(word, "volume") == 0)
        return card_volume(n - 1, argv + 1, err);
    if (strcmp(word, "tree") == 0)
        return card_tree(argv[1], argv[2], out, err);
    if (strcmp(word, "pods") == 0)
        return card_pods(n - 1, argv + 1, out, err);
    if (strcmp(word, "forget") == 0) {
        rc = card_remove(argv[1], err);
        return rc ? rc : card_remove(argv[2], err);
    }
    if (strcmp(word, "last") == 0) {
        rc = card_last(argv[1], strtoul(argv[2], NULL, 10), out, &size, err);
        str_addf(said, "bytes=%zu\nnext=0\n", rc ? 0 : size);
        return rc;
    }
    if (strcmp(word, "pad") != 0)
        abort();
    rc = card_pad(argv[1], strtoul(argv[2], NULL, 10), out, id, err);
    str_addf(said, "pad=%s\n", rc ? "" : id);
    return rc;
}

int cardexec_run(void *ctx, const char *remote, unsigned lane,
                 const char *const *argv, size_t n_argv, unsigned ms,
                 struct cri_exec *ret_exec, struct error *err)
{
    struct cardexec *c = ctx;
    struct error why = {0};
    struct stat st;
    (void)ms;
    begin(c, remote, lane, argv, n_argv);
    int code = fault(c, argv[1], false);
    if (!code) {
        cleanup_fd int out = memfd_create("out", MFD_CLOEXEC);
        ret_exec->out = STR_INIT(16 << 20);
        ret_exec->err = STR_INIT(1 << 20);
        int rc = carry_out(argv + 1, (int)n_argv - 1, out, &ret_exec->err,
                           &why);
        if (rc)
            str_addf(&ret_exec->err, "biga-card: %s\n", why.text);
        ret_exec->exit_code = rc == -ENOENT ? 3 : rc ? 1 : 0;
        if (fstat(out, &st) != 0 ||
            !str_reserve(&ret_exec->out, (size_t)st.st_size + 1) ||
            pread(out, ret_exec->out.data, (size_t)st.st_size, 0) != st.st_size)
            abort();
        ret_exec->out.size = (size_t)st.st_size;
        ret_exec->out.data[st.st_size] = '\0';
        code = fault(c, argv[1], true);
    }
    hold_lock(&c->lock);
    *lanes_of(c, remote) &= ~(1u << lane);
    return code ? error_set(err, code, "%s: a fault", remote) : 0;
}
