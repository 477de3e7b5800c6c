/* Binds, posts, questions and followers at once, for some seconds, for
 * ThreadSanitizer to watch; then the history is opened again, and says of each
 * pod what the writer has.
 *
 *   race_history [SECONDS]
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/history/history.h"
#include "extender/history/history_view.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/sim/simstate.h"
#include "tests/lib/tmpdir.h"

enum { N_NODES = 20, N_CARDS = 8, N_PODS = 100 };

static struct writer *writer;
static struct history *history;
static atomic_bool stopping;
static atomic_ulong n_binds, n_posts, n_answers, n_news;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_history: %s: %s\n", what, why);
    abort();
}

struct worker {
    pthread_t thread;
    void (*step)(struct worker *w);
    uint64_t random;
};

static void step_bind(struct worker *w)
{
    char pod[16], node[16];
    (void)snprintf(pod, sizeof pod, "p%u", sim_random(&w->random) % N_PODS);
    (void)snprintf(node, sizeof node, "n%u", sim_random(&w->random) % N_NODES);
    struct demand d = sim_pod(pod, ROLE_HOST, "", 0);
    if (sim_random(&w->random) % 2)
        (void)sim_bind(writer, &d, node, NULL, NULL); /* there may be no room */
    else
        (void)sim_release(writer, pod); /* or no such pod */
    n_binds++;
}

static void step_post(struct worker *w)
{
    char pod[16], why[32];
    (void)snprintf(pod, sizeof pod, "ns/p%u", sim_random(&w->random) % N_PODS);
    (void)snprintf(why, sizeof why, "%u of %d nodes",
                   sim_random(&w->random) % N_NODES, N_NODES);
    history_post(history, &(struct history_event){.kind = HISTORY_POD,
                                                  .reason = HISTORY_REFUSED,
                                                  .object = pod,
                                                  .pair = -1,
                                                  .message = why});
    n_posts++;
}

struct asked {
    struct history_question question; /* first */
    char object[32];
    enum history_kind kind;
    struct str out;
    sem_t done;
};

static void answer(struct history_question *q, struct history_reader *r)
{
    struct asked *a = (struct asked *)q;
    int e = r ? history_view_object(r, a->kind, a->object, INT64_MAX / 2,
                                    &a->out, &q->error)
              : -q->error.code;
    if (e < 0 && e != -ENOENT && e != -ECANCELED)
        die(a->object, q->error.text);
    n_answers++;
    (void)sem_post(&a->done);
}

static void ask(enum history_kind kind, const char *object, struct str *out)
{
    struct asked a = {
        .question = {.answer = answer}, .kind = kind, .out = STR_INIT(1 << 20)};
    (void)snprintf(a.object, sizeof a.object, "%s", object);
    (void)sem_init(&a.done, 0, 0); /* cannot fail with this value */
    if (history_ask(history, &a.question) == 0)
        while (sem_wait(&a.done) != 0)
            ;
    (void)sem_destroy(&a.done);
    if (out)
        str_move(out, &a.out);
    str_fini(&a.out);
}

static void step_ask(struct worker *w)
{
    char name[16];
    bool pod = sim_random(&w->random) % 2;
    (void)snprintf(name, sizeof name, pod ? "ns/p%u" : "n%u",
                   sim_random(&w->random) % (pod ? N_PODS : N_NODES));
    ask(pod ? HISTORY_POD : HISTORY_NODE, name, NULL);
    (void)history_state(history);
}

static void on_news(struct history_follower *f)
{
    (void)f;
    n_news++;
}

static void step_follow(struct worker *w)
{
    struct history_follower f = {.news = on_news};
    (void)w;
    history_follow(history, &f);
    history_settle(history);
    history_unfollow(history, &f);
}

static void *work(void *ctx)
{
    struct worker *w = ctx;
    while (!atomic_load(&stopping))
        w->step(w);
    return NULL;
}

static void start(const char *dir)
{
    struct error err = {0};
    const struct history_config c = {
        .dir = dir, .days = 30, .mib = 1024, .writer = writer};
    if (history_start(&c, &history, &err) < 0)
        die("start", err.text);
}

/* Has the history of each pod what the writer has? */
static void compare(void)
{
    cleanup_with(snapshot) struct snapshot *s = writer_snapshot(writer);
    history_settle(history);
    for (int i = 0; i < N_PODS; i++) {
        cleanup_str struct str out = STR_INIT(1 << 20);
        char name[16], node[40] = "\"place\":null";
        (void)snprintf(name, sizeof name, "ns/p%d", i);
        const struct allocation *a = alloc_index_find(s->allocations, "ns",
                                                      name + 3);
        ask(HISTORY_POD, name, &out);
        if (a)
            (void)snprintf(node, sizeof node, "\"node\":\"%s\",\"cards\"",
                           a->node);
        if (out.size > 3 && !strstr(str_text(&out), node))
            die(node, str_text(&out));
    }
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
    struct worker workers[] = {{.step = step_bind},  {.step = step_bind},
                               {.step = step_post},  {.step = step_post},
                               {.step = step_ask},   {.step = step_ask},
                               {.step = step_follow}};
    char *dir = tmpdir_create();
    log_set_level(LOG_ERROR);
    writer = sim_writer(NULL);
    for (int i = 0; i < N_NODES; i++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", i);
        if (sim_publish(writer, node, N_CARDS, "boot", 1) != 0)
            die(node, "cannot be published");
    }
    start(dir);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].random = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            die("thread", "cannot be started");
    }
    int64_t end_ms = clock_ms() + seconds * 1000;
    while (clock_ms() < end_ms || !n_binds || !n_posts || !n_answers || !n_news)
        writer_sweep(writer);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        (void)pthread_join(workers[i].thread, NULL); /* it was started */
    compare();
    history_stop(history);
    history_destroy(history);
    start(dir);
    compare();
    history_stop(history);
    writer_stop(writer);
    history_destroy(history);
    tmpdir_remove(dir);
    (void)printf("race_history: %lu binds, %lu posts, %lu answers, %lu news\n",
                 atomic_load(&n_binds), atomic_load(&n_posts),
                 atomic_load(&n_answers), atomic_load(&n_news));
    return 0;
}
