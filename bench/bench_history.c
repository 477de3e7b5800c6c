/* The history of a fleet: what it takes, what it costs, how soon it answers.
 *
 *   bench_history month DIR [HOSTS [DAYS]]
 *       writes what happens to a made-up fleet in that time (jobs an hour that
 *       come, wait, run and end, cards that are lost and drained, hosts that
 *       fall silent) into DIR, and asks at random moments of it
 *   bench_history ask DIR HOSTS DAYS JOBS
 *       asks again of what `month` wrote, which said how many jobs there were
 *
 * Prints a line of figures for each, named in its first line. */
#include <math.h>

#include "extender/history/history_db.h"
#include "extender/history/history_view.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/cpu_clock.h"
#include "tests/lib/sim/benchhost.h"
#include "tests/lib/sim/simstate.h"

#define BEGIN_MS INT64_C(1793500000000)
enum {
    HOSTS = 1000,
    DAYS = 30,
    CARDS = BENCHHOST_CARDS,
    JOBS_PER_HOUR = 50,
    PAIRS_BITS = 7, /* jobs are of 1, 2, 4 … 64 pairs */
    WAITING_MAX = 64,
    JOBS_MAX = 4096, /* that run at a time */
    MINUTE_MS = 60000,
    QUESTIONS = 300,
};

static void die(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_history: %s: %s\n", what, err->text);
    exit(1);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of this thread alone, whatever else the machine does. */
static double quantile(double *list, size_t n, double q)
{
    qsort(list, n, sizeof *list, compare_doubles);
    size_t at = (size_t)(q * (double)n);
    return list[at < n ? at : n - 1];
}

/* --- a month -------------------------------------------------------------- */

struct job {
    unsigned number, pairs;
    int64_t end_ms; /* 0: it waits; else it runs */
    struct {
        uint16_t host;
        uint8_t card;
    } at[1 << (PAIRS_BITS - 1)];
};

struct month {
    struct history_book *book;
    uint64_t random;
    size_t n_hosts;
    int64_t now_ms;
    uint8_t (*busy)[CARDS];  /* by host */
    uint8_t (*state)[CARDS]; /* 0 ready, 1 lost, 2 drained */
    struct job *jobs;
    size_t n_jobs, n_busy;
    unsigned n_made;
    uint64_t n_events;
    double busy_sum;
    size_t n_minutes;
};

static uint32_t roll(struct month *m, uint32_t n)
{
    return sim_random(&m->random) % n;
}

static void tell(struct month *m, struct history_event e)
{
    struct error err = {0};
    e.time_ms = m->now_ms;
    if (history_book_event(m->book, &e, &err) < 0)
        die("an event", &err);
    m->n_events++;
}

static void card_name(size_t card, char ret[PCI_ADDR_TEXT_MAX])
{
    (void)snprintf(ret, PCI_ADDR_TEXT_MAX, "0000:%02zx:00.0", 0x11 + card * 8);
}

static void tell_host(struct month *m, size_t host, int status)
{
    char name[32], pci[PCI_ADDR_TEXT_MAX];
    cleanup_str struct str cards = STR_INIT(65536);
    static const char *const words[] = {"ready", "lost", "drained"};
    struct error err = {0};
    (void)snprintf(name, sizeof name, "host-%04zu", host);
    for (size_t i = 0; i < CARDS; i++) {
        card_name(i, pci);
        str_addf(&cards,
                 "{\"id\":\"%s\",\"state\":\"%s\",\"model\":\"BlueField-3 "
                 "B3220\"}\n",
                 pci, words[m->state[host][i]]);
    }
    const struct history_node n = {name, status, str_text(&cards), m->now_ms};
    if (history_book_node(m->book, &n, &err) < 0)
        die("a node", &err);
}

/* One pod of a pair, on a host. */
struct pod {
    char key[64], job[64], node[32], devices[128], message[96];
    const struct job *of;
    size_t pair;
    bool xpu;
};

static void pod_of(const struct job *j, size_t pair, bool xpu, struct pod *ret)
{
    char pci[PCI_ADDR_TEXT_MAX];
    card_name(j->at[pair].card, pci);
    *ret = (struct pod){.of = j, .pair = pair, .xpu = xpu};
    (void)snprintf(ret->key, sizeof ret->key, "team-%u/train-%06u-%s-%zu",
                   j->number % 9, j->number, xpu ? "xpu" : "host", pair);
    (void)snprintf(ret->job, sizeof ret->job, "team-%u/train-%06u",
                   j->number % 9, j->number);
    (void)snprintf(ret->node, sizeof ret->node, "host-%04u", j->at[pair].host);
    (void)snprintf(ret->devices, sizeof ret->devices,
                   "\"cards\":[\"%s\"],\"gpus\":[\"0000:%02x:00.0\"],"
                   "\"numa\":%d,\"relation\":\"PIX\"",
                   pci, 0x12 + j->at[pair].card * 8, j->at[pair].card / 4);
    (void)snprintf(ret->message, sizeof ret->message, "card %s; PIX", pci);
}

static void tell_pod(struct month *m, const struct pod *p,
                     enum history_reason reason, const char *message)
{
    tell(m, (struct history_event){.kind = HISTORY_POD,
                                   .reason = reason,
                                   .object = p->key,
                                   .node = reason == HISTORY_REFUSED ? ""
                                                                     : p->node,
                                   .job = p->job,
                                   .pair = (int32_t)p->pair,
                                   .message = message});
}

static void tell_job(struct month *m, const struct job *j,
                     enum history_reason reason, const char *message)
{
    struct pod p;
    pod_of(j, 0, false, &p);
    tell(m, (struct history_event){.kind = HISTORY_JOB,
                                   .reason = reason,
                                   .object = p.job,
                                   .job = p.job,
                                   .pair = -1,
                                   .message = message});
}

/* As the recorder tells it of a bind, and a node of a start. */
static void begin_pod(struct month *m, const struct pod *p)
{
    struct error err = {0};
    const struct history_place place = {.pod = p->key,
                                        .job = p->job,
                                        .node = p->node,
                                        .pair = (int32_t)p->pair,
                                        .role = p->xpu ? ROLE_XPU : ROLE_HOST,
                                        .devices = p->devices,
                                        .since_ms = m->now_ms};
    tell_pod(m, p, HISTORY_BOUND, p->message);
    if (history_book_placed(m->book, &place, &err) < 0)
        die("a place", &err);
    tell_pod(m, p, HISTORY_STARTED, "");
}

static void end_pod(struct month *m, const struct pod *p)
{
    struct error err = {0};
    bool had;
    tell_pod(m, p, HISTORY_ENDED, "Completed");
    if (history_book_freed(m->book, p->key, m->now_ms, &had, &err) < 0)
        die("a place", &err);
    tell_pod(m, p, HISTORY_RELEASED, "its place was given back");
}

static bool find_card(struct month *m, struct job *j, size_t pair)
{
    for (unsigned tries = 0; tries < 400; tries++) {
        uint16_t host = (uint16_t)roll(m, (uint32_t)m->n_hosts);
        uint8_t card = (uint8_t)roll(m, CARDS);
        if (m->busy[host][card] || m->state[host][card])
            continue;
        m->busy[host][card] = 1;
        m->n_busy++;
        j->at[pair].host = host;
        j->at[pair].card = card;
        return true;
    }
    return false;
}

static void leave(struct month *m, struct job *j, size_t n)
{
    for (size_t i = 0; i < n; i++)
        m->busy[j->at[i].host][j->at[i].card] = 0;
    m->n_busy -= n;
}

/* From 5 minutes to a day, most of them for some hours. */
static int64_t roll_duration(struct month *m)
{
    double u = (double)roll(m, 1000) / 1000;
    return (int64_t)(5 * MINUTE_MS * pow(288, u));
}

static void try_job(struct month *m, struct job *j)
{
    struct pod p;
    for (size_t i = 0; i < j->pairs; i++) {
        if (find_card(m, j, i))
            continue;
        leave(m, j, i);
        for (size_t k = 0; k < j->pairs; k++) {
            char why[128];
            (void)snprintf(why, sizeof why,
                           "NoPlace: fits none of %zu nodes; %u: fewer cards "
                           "than the 1 asked",
                           m->n_hosts, roll(m, 1000));
            pod_of(j, k, false, &p);
            tell_pod(m, &p, HISTORY_REFUSED, why);
        }
        return;
    }
    tell_job(m, j, HISTORY_PLANNED, "places for all pairs are held");
    for (size_t i = 0; i < j->pairs; i++)
        for (int xpu = 0; xpu < 2; xpu++) {
            pod_of(j, i, xpu, &p);
            begin_pod(m, &p);
        }
    tell_job(m, j, HISTORY_BOUND, "all of its pairs have a place");
    j->end_ms = m->now_ms + roll_duration(m);
}

static void end_job(struct month *m, struct job *j)
{
    struct pod p;
    for (size_t i = 0; i < j->pairs; i++)
        for (int xpu = 0; xpu < 2; xpu++) {
            pod_of(j, i, xpu, &p);
            end_pod(m, &p);
        }
    leave(m, j, j->pairs);
    tell_job(m, j, HISTORY_ENDED, "none of its pods has a place any more");
}

/* A card that changes, or a host that is not heard of for a minute. */
static void have_trouble(struct month *m)
{
    size_t host = roll(m, (uint32_t)m->n_hosts), card = roll(m, CARDS);
    char node[32], object[64], pci[PCI_ADDR_TEXT_MAX];
    static const enum history_reason reasons[] = {
        HISTORY_RECOVERED, HISTORY_LOST, HISTORY_DRAINED};
    (void)snprintf(node, sizeof node, "host-%04zu", host);
    if (roll(m, 4) == 0) {
        tell(m, (struct history_event){.kind = HISTORY_NODE,
                                       .reason = HISTORY_NODE_STALE,
                                       .object = node,
                                       .node = node,
                                       .pair = -1,
                                       .message = "it has not been heard of"});
        tell_host(m, host, NODE_STALE);
        tell_host(m, host, NODE_READY);
        return;
    }
    card_name(card, pci);
    (void)snprintf(object, sizeof object, "%s/%s", node, pci);
    m->state[host][card] = m->state[host][card] ? 0 : (uint8_t)(1 + roll(m, 2));
    tell(m, (struct history_event){.kind = HISTORY_CARD,
                                   .reason = reasons[m->state[host][card]],
                                   .object = object,
                                   .node = node,
                                   .pair = -1,
                                   .message = ""});
    tell_host(m, host, NODE_READY);
}

static void add_job(struct month *m)
{
    size_t waiting = 0;
    for (size_t i = 0; i < m->n_jobs; i++)
        waiting += m->jobs[i].end_ms == 0;
    if (waiting >= WAITING_MAX || m->n_jobs == JOBS_MAX)
        return;
    m->jobs[m->n_jobs++] = (struct job){.number = m->n_made++,
                                        .pairs = 1U << roll(m, PAIRS_BITS)};
}

static void live_minute(struct month *m)
{
    if (roll(m, 60 * 24) < 20)
        have_trouble(m);
    while (roll(m, 60 + JOBS_PER_HOUR) < JOBS_PER_HOUR)
        add_job(m);
    for (size_t i = 0; i < m->n_jobs; i++) {
        struct job *j = &m->jobs[i];
        if (j->end_ms == 0)
            try_job(m, j);
        if (j->end_ms == 0 || j->end_ms > m->now_ms)
            continue;
        end_job(m, j);
        m->jobs[i--] = m->jobs[--m->n_jobs];
    }
    m->busy_sum += (double)m->n_busy;
    m->n_minutes++;
}

static void live(struct month *m, int64_t days)
{
    struct error err = {0};
    int64_t end_ms = BEGIN_MS + days * 24 * 60 * MINUTE_MS;
    m->busy = xcalloc(m->n_hosts, sizeof *m->busy);
    m->state = xcalloc(m->n_hosts, sizeof *m->state);
    m->jobs = xcalloc(JOBS_MAX, sizeof *m->jobs);
    for (m->now_ms = BEGIN_MS; m->now_ms < end_ms; m->now_ms += MINUTE_MS) {
        if (history_book_begin(m->book, m->now_ms, &err) < 0)
            die("beginning", &err);
        for (size_t i = 0; m->now_ms == BEGIN_MS && i < m->n_hosts; i++)
            tell_host(m, i, NODE_READY);
        live_minute(m);
        if (history_book_commit(m->book, &err) < 0)
            die("a commit", &err);
    }
    free(m->busy);
    free(m->state);
    free(m->jobs);
}

/* --- questions ------------------------------------------------------------ */

enum kind_of_question {
    ASK_FLEET,
    ASK_NODE,
    ASK_CARD,
    ASK_JOB,
    ASK_POD,
    ASK_EVENTS,
    ASK_KINDS
};

static void add_event(void *ctx, const struct history_event *e)
{
    history_event_write(e, ctx);
}

/* A page of events of a reason that is rare, from a moment on. */
static int ask_events(struct history_reader *r, struct month *m, int64_t ms,
                      struct str *out, struct error *err)
{
    const struct history_filter f = {.kind = HISTORY_KINDS,
                                     .reason = roll(m, 2) ? HISTORY_LOST
                                                          : HISTORY_REASONS,
                                     .since_ms = ms,
                                     .limit = 100};
    uint64_t next;
    return history_read_events(r, &f, add_event, out, &next, err);
}

static int ask(struct history_reader *r, struct month *m,
               enum kind_of_question what, int64_t ms, struct str *out,
               struct error *err)
{
    struct job j = {.number = roll(m, m->n_made)};
    char node[32], card[64], pci[PCI_ADDR_TEXT_MAX];
    struct pod p;
    pod_of(&j, 0, false, &p);
    card_name(roll(m, CARDS), pci);
    (void)snprintf(node, sizeof node, "host-%04u",
                   roll(m, (uint32_t)m->n_hosts));
    (void)snprintf(card, sizeof card, "%s/%s", node, pci);
    const char *objects[HISTORY_KINDS] = {p.key, p.job, node, card};
    static const enum history_kind kinds[ASK_KINDS] = {
        [ASK_NODE] = HISTORY_NODE,
        [ASK_CARD] = HISTORY_CARD,
        [ASK_JOB] = HISTORY_JOB,
        [ASK_POD] = HISTORY_POD};
    if (what == ASK_FLEET)
        return history_view_topology(r, ms, NULL, HISTORY_VIEW_NODES, out, err);
    if (what == ASK_EVENTS)
        return ask_events(r, m, ms, out, err);
    return history_view_object(r, kinds[what], objects[kinds[what]], ms, out,
                               err);
}

static void ask_all(const char *dir, struct month *m, int64_t days)
{
    static const char *const names[ASK_KINDS] = {"fleet", "node", "card",
                                                 "job",   "pod",  "events"};
    struct history_reader *r = NULL;
    struct error err = {0};
    if (history_reader_open(dir, &r, &err) < 0)
        die(dir, &err);
    printf("question\tp50 ms\tp99 ms\tmax ms\tCPU p50 ms\tCPU p99 ms\t"
           "mean KiB\n");
    for (int what = 0; what < ASK_KINDS; what++) {
        double ms[QUESTIONS], cpu_ms[QUESTIONS], size = 0;
        for (size_t i = 0; i < QUESTIONS; i++) {
            cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
            int64_t at = BEGIN_MS +
                         (int64_t)roll(m, (uint32_t)days * 24 * 60) * MINUTE_MS;
            int64_t start = clock_ns(), cpu = thread_cpu_ns();
            int e = history_read_begin(r, &err);
            if (e == 0)
                e = ask(r, m, (enum kind_of_question)what, at, &out, &err);
            if (e < 0 && e != -ENOENT)
                die(names[what], &err);
            history_read_end(r);
            ms[i] = (double)(clock_ns() - start) / 1e6;
            cpu_ms[i] = (double)(thread_cpu_ns() - cpu) / 1e6;
            size += (double)out.size / 1024 / QUESTIONS;
        }
        double p50 = quantile(ms, QUESTIONS, 0.5);
        double p99 = quantile(ms, QUESTIONS, 0.99);
        printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\n", names[what], p50,
               p99, ms[QUESTIONS - 1], quantile(cpu_ms, QUESTIONS, 0.5),
               quantile(cpu_ms, QUESTIONS, 0.99), size);
    }
    history_reader_close(r);
}

static int month(const char *dir, size_t n_hosts, int64_t days)
{
    struct month m = {.random = 1, .n_hosts = n_hosts};
    struct error err = {0};
    int64_t bytes = 0, start = clock_ns();
    if (history_book_open(dir, &m.book, &err) < 0)
        die(dir, &err);
    live(&m, days);
    double seconds = (double)(clock_ns() - start) / 1e9;
    start = clock_ns();
    if (history_book_check(m.book, &err) < 0)
        die("the check", &err);
    double check_s = (double)(clock_ns() - start) / 1e9;
    if (history_book_size(m.book, &bytes, &err) < 0)
        die("its size", &err);
    printf("hosts\tdays\tjobs\tcards busy\tevents\tMiB\tbytes/event\twritten "
           "events/s\tcheck s\n");
    printf("%zu\t%lld\t%u\t%.0f%%\t%llu\t%.0f\t%.0f\t%.0f\t%.1f\n", n_hosts,
           (long long)days, m.n_made,
           100 * m.busy_sum / (double)m.n_minutes / (double)(n_hosts * CARDS),
           (unsigned long long)m.n_events, (double)bytes / (1 << 20),
           (double)bytes / (double)m.n_events, (double)m.n_events / seconds,
           check_s);
    history_book_close(m.book);
    ask_all(dir, &m, days);
    return 0;
}

int main(int argc, char **argv)
{
    long a = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    long b = argc > 4 ? strtol(argv[4], NULL, 10) : DAYS;
    if (argc > 5 && strcmp(argv[1], "ask") == 0) {
        struct month m = {.random = 7,
                          .n_hosts = (size_t)a,
                          .n_made = (unsigned)strtol(argv[5], NULL, 10)};
        ask_all(argv[2], &m, b);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "month") == 0 && b > 0)
        return month(argv[2], a > 0 ? (size_t)a : HOSTS, b);
    fputs("usage: bench_history month DIR [HOSTS [DAYS]]\n"
          "       bench_history ask DIR HOSTS DAYS JOBS\n",
          stderr);
    return 2;
}
