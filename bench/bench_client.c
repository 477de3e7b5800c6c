/* What bench/go/client does, for machines without Go: filter with all
 * names, prioritize with the survivors, on one kept connection, targets in
 * turn.  It composes and decodes faster than kube-scheduler's encoding/json
 * does, so that its figures show more of the server and less of the client;
 * the report says which client was used.
 *
 *   bench_client [-pod F] [-names F] [-n N] [-rounds N] [-batch N]
 *                [-warmup N] [-form json|tsv] [-raw 0|1] [-workers N] [-pids P,P…]
 *                NAME=URL…
 *
 * Names come as kube-scheduler's parallel filters leave them: from an index
 * that moves on with each pod, -workers of them (1 by default) hand on chunks
 * of the list at the same time.  With -raw 1 the client sends bytes that it
 * prepared in its warm-up and does not look at the answers: next to nothing
 * of what is measured is then its own.
 *
 * As tsv a line per target: its name, names, iterations, survivors, unknown
 * names, connections, requests, then p50 and p99 of filter, of prioritize and
 * of both together, in microseconds; with -pids, of the targets in their order,
 * the processor time of both together, in the tenth of the rounds that others
 * on the machine disturbed least. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"

enum {
    TARGETS_MAX = 8,
    PATH_MAX_BYTES = 128,
    ANSWER_MAX = 64 << 20,
    REQUEST_MAX = 64 << 20,
    NAMES_STEP = 997,
};

struct target {
    const char *name;
    int fd;
    char path[PATH_MAX_BYTES];
    double *filter, *prioritize, *sum; /* microseconds */
    double *cpu;                       /* of both, a mean for each round */
    unsigned pid;                      /* 0: not known */
    size_t n, n_cpu, n_left, n_survivors;
    unsigned requests;
    unsigned unknown; /* names in an answer that were not asked about */
    struct str answer;
    char **left; /* ours */
    size_t left_cap;
};

/* A request, for all targets: their heads differ by the path. */
struct message {
    const char *verb;
    struct str body;
};

/* What -raw sends in its turn. */
struct prepared {
    struct message filter, prioritize[TARGETS_MAX];
};

struct options {
    const char *pod_file, *names_file, *form, *pids;
    size_t n, rounds, batch, warmup, raw, workers;
};

static char *pod;
static size_t pod_size;
static char **names;
static size_t n_names;

static void die(const char *what)
{
    fprintf(stderr, "bench_client: %s: %s\n", what,
            errno ? strerror(errno) : "not understood");
    exit(1);
}

static char *read_file(const char *path, size_t *ret_size)
{
    cleanup_file FILE *f = fopen(path, "re");
    if (!f)
        die(path);
    struct str s = STR_INIT(ANSWER_MAX);
    char block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        str_add_n(&s, block, n);
    *ret_size = s.size;
    return str_steal(&s);
}

/* json.Marshal writes no white space between tokens; so shall we. */
static void squeeze(char *json, size_t *size)
{
    size_t to = 0;
    bool quoted = false;
    for (size_t i = 0; i < *size; i++) {
        char c = json[i];
        if (quoted && c == '\\') {
            json[to++] = c;
            c = json[++i];
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && (c == ' ' || c == '\n')) {
            continue;
        }
        json[to++] = c;
    }
    json[to] = '\0';
    *size = to;
}

static void read_names(const struct options *o)
{
    size_t size, cap = 0;
    if (!o->names_file) {
        names = xcalloc(o->n, sizeof *names);
        for (n_names = 0; n_names < o->n; n_names++)
            names[n_names] = xasprintf("node-%05zu", n_names);
        return;
    }
    char *save = NULL, *text = read_file(o->names_file, &size);
    for (char *p = strtok_r(text, " \n", &save); p;
         p = strtok_r(NULL, " \n", &save)) {
        names = xgrow(names, n_names, &cap, sizeof *names);
        names[n_names++] = p;
    }
    if (n_names < o->n)
        die("too few names");
}

/* NAME=http://A.B.C.D:PORT/path */
static void target_open(struct target *t, char *arg)
{
    char *url = strchr(arg, '='), *port, *path;
    errno = 0;
    if (!url || strncmp(url + 1, "http://", 7) != 0)
        die(arg);
    *url = '\0';
    url += 8;
    port = strchr(url, ':');
    path = port ? strchr(port, '/') : NULL;
    if (!path)
        die(arg);
    *port++ = '\0';
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    if (inet_pton(AF_INET, url, &a.sin_addr) != 1)
        die(url);
    t->name = arg;
    snprintf(t->path, sizeof t->path, "%s", path);
    str_init(&t->answer, ANSWER_MAX);
    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (t->fd < 0 || connect(t->fd, (struct sockaddr *)&a, sizeof a))
        die(arg);
    setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void send_all(const struct target *t, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(t->fd, p, n, MSG_NOSIGNAL);
        if (k < 0)
            die(t->name);
        p += k;
        n -= (size_t)k;
    }
}

/* Read one answer; returns where its body starts in t->answer. */
static size_t receive(struct target *t)
{
    size_t head = 0, need = SIZE_MAX;
    str_reset(&t->answer);
    while (t->answer.size < need) {
        char block[65536];
        ssize_t k = recv(t->fd, block, sizeof block, 0);
        errno = k ? errno : ECONNRESET;
        if (k <= 0)
            die(t->name);
        str_add_n(&t->answer, block, (size_t)k);
        const char *end = head ? NULL : strstr(t->answer.data, "\r\n\r\n");
        if (!end)
            continue;
        const char *length = strcasestr(t->answer.data, "content-length:");
        head = (size_t)(end - t->answer.data) + 4;
        errno = 0;
        if (strncmp(t->answer.data, "HTTP/1.1 200", 12) != 0 || !length ||
            length > end)
            die(t->answer.data);
        need = head + strtoul(length + 15, NULL, 10);
    }
    return head;
}

static void compose(struct message *m, const char *verb, char *const *list,
                    size_t n)
{
    m->verb = verb;
    str_reset(&m->body);
    str_add(&m->body, "{\"Pod\":");
    str_add_n(&m->body, pod, pod_size);
    str_add(&m->body, ",\"Nodes\":null,\"NodeNames\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_add_c(&m->body, ',');
        str_add_json(&m->body, list[i]);
    }
    str_add(&m->body, "]}");
}

/* Send, and receive the answer, whose body starts at what is returned. */
static size_t exchange(struct target *t, const struct message *m)
{
    cleanup_str struct str head = STR_INIT(1024);
    str_addf(&head,
             "POST %s/%s HTTP/1.1\r\nHost: localhost\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             t->path, m->verb, m->body.size);
    send_all(t, head.data, head.size);
    send_all(t, m->body.data, m->body.size);
    t->requests++;
    return receive(t);
}

static void decode(struct target *t, size_t at, bool filter)
{
    struct jscan s;
    struct jtext key, name;
    jscan_init(&s, t->answer.data + at, t->answer.size - at);
    if (filter) {
        t->n_left = 0;
        for (jscan_object(&s); jscan_member(&s, &key);) {
            if (!jtext_is(&key, "NodeNames") || !jscan_array(&s)) {
                jscan_skip(&s);
                continue;
            }
            while (jscan_element(&s) && jscan_string(&s, &name)) {
                t->left = xgrow(t->left, t->n_left, &t->left_cap,
                                sizeof *t->left);
                t->left[t->n_left++] = xstrndup(name.data, name.size);
            }
        }
    } else {
        jscan_skip(&s);
    }
    errno = 0;
    if (!jscan_end(&s))
        die(t->answer.data + at);
}

/* One verb with `n` names; returns microseconds, composing and decoding
 * included. */
static double call(struct target *t, struct message *m, const char *verb,
                   char *const *list, size_t n)
{
    int64_t start = clock_ns();
    compose(m, verb, list, n);
    decode(t, exchange(t, m), verb[0] == 'f');
    return (double)(clock_ns() - start) / 1e3;
}

static double send_prepared(struct target *t, const struct message *m)
{
    int64_t start = clock_ns();
    (void)exchange(t, m);
    return (double)(clock_ns() - start) / 1e3;
}

/* kube-scheduler refuses an answer with a name that it did not send. */
static void check(struct target *t, char *const *list, size_t n)
{
    for (size_t i = 0; i < t->n_left; i++) {
        size_t k = 0;
        while (k < n && strcmp(list[k], t->left[i]) != 0)
            k++;
        t->unknown += k == n;
    }
}

/* A worker of k8s.io/client-go/util/workqueue.ParallelizeUntil. */
struct worker {
    size_t at, end; /* of its chunk */
};

/* They run as the machine lets them: the next name is of any of them. */
static void list_names(const struct options *o, size_t turn, char **list)
{
    unsigned seed = (unsigned)turn + 1;
    cleanup_free struct worker *workers = xcalloc(o->workers, sizeof *workers);
    size_t chunk = 1, given = 0;
    while (chunk * chunk < o->n)
        chunk++;
    for (size_t n = 0; n < o->n;) {
        struct worker *w = &workers[(size_t)rand_r(&seed) % o->workers];
        if (w->at == w->end && given < o->n) {
            w->at = given;
            given = given + chunk < o->n ? given + chunk : o->n;
            w->end = given;
        }
        if (w->at < w->end)
            list[n++] = names[(turn * NAMES_STEP + w->at++) % n_names];
    }
}

static void forget_left(struct target *t)
{
    while (t->n_left > 0)
        free(t->left[--t->n_left]);
}

static void keep(struct target *t, double filter, double prioritize)
{
    t->filter[t->n] = filter;
    t->prioritize[t->n] = prioritize;
    t->sum[t->n++] = filter + prioritize;
}

/* Every target in turn; what it was asked stays in `p`. */
static void warm_up(struct target *targets, int n, const struct options *o,
                    size_t turn, struct prepared *p)
{
    cleanup_free char **list = xcalloc(o->n, sizeof *list);
    list_names(o, turn, list);
    for (int i = 0; i < n; i++) {
        struct target *t = &targets[i];
        (void)call(t, &p->filter, "filter", list, o->n);
        check(t, list, o->n); /* here, for it takes its time */
        if (t->n_left > 1)
            (void)call(t, &p->prioritize[i], "prioritize", t->left, t->n_left);
        t->n_survivors = t->n_left;
        forget_left(t);
    }
}

static void once(struct target *t, const struct options *o, size_t turn)
{
    static struct message m = {.body = STR_INIT(REQUEST_MAX)};
    cleanup_free char **list = xcalloc(o->n, sizeof *list);
    list_names(o, turn, list);
    double filter = call(t, &m, "filter", list, o->n);
    double prioritize = t->n_left > 1
                            ? call(t, &m, "prioritize", t->left, t->n_left)
                            : 0;
    keep(t, filter, prioritize);
    t->n_survivors = t->n_left;
    forget_left(t);
}

static void once_raw(struct target *t, const struct prepared *p, int target)
{
    double filter = send_prepared(t, &p->filter);
    const struct message *m = &p->prioritize[target];
    keep(t, filter, m->verb ? send_prepared(t, m) : 0);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *v, size_t n, double q)
{
    if (!n)
        return 0;
    qsort(v, n, sizeof *v, compare);
    return v[(size_t)(q * (double)(n - 1) + 0.5)];
}

static bool is_tsv(const struct options *o)
{
    return strcmp(o->form, "tsv") == 0;
}

static void report(struct target *t, const struct options *o)
{
    static const char json[] =
        "{\"target\":\"%s\",\"names\":%zu,\"iterations\":%zu,"
        "\"survivors\":%zu,\"unknown_names\":%u,\"connections\":1,"
        "\"requests\":%u,"
        "\"filter_p50_us\":%.3f,\"filter_p99_us\":%.3f,"
        "\"prioritize_p50_us\":%.3f,\"prioritize_p99_us\":%.3f,"
        "\"sum_p50_us\":%.3f,\"sum_p99_us\":%.3f,\"cpu_us\":%.3f}";
    static const char tsv[] = "%s\t%zu\t%zu\t%zu\t%u\t1\t%u\t%.3f\t%.3f\t"
                              "%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n";
    double f50 = quantile(t->filter, t->n, .5);
    double f99 = quantile(t->filter, t->n, .99);
    double p50 = quantile(t->prioritize, t->n, .5);
    double p99 = quantile(t->prioritize, t->n, .99);
    double cpu = quantile(t->cpu, t->n_cpu, .1);
    double s50 = quantile(t->sum, t->n, .5), s99 = quantile(t->sum, t->n, .99);
    if (is_tsv(o))
        printf(tsv, t->name, o->n, t->n, t->n_survivors, t->unknown,
               t->requests, f50, f99, p50, p99, s50, s99, cpu);
    else
        printf(json, t->name, o->n, t->n, t->n_survivors, t->unknown,
               t->requests, f50, f99, p50, p99, s50, s99, cpu);
}

static int parse(struct options *o, int argc, char **argv)
{
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        size_t number = strtoul(value, NULL, 10);
        if (strcmp(argv[i], "-pod") == 0)
            o->pod_file = value;
        else if (strcmp(argv[i], "-names") == 0)
            o->names_file = value;
        else if (strcmp(argv[i], "-n") == 0)
            o->n = number;
        else if (strcmp(argv[i], "-rounds") == 0)
            o->rounds = number;
        else if (strcmp(argv[i], "-batch") == 0)
            o->batch = number;
        else if (strcmp(argv[i], "-warmup") == 0)
            o->warmup = number;
        else if (strcmp(argv[i], "-raw") == 0)
            o->raw = number;
        else if (strcmp(argv[i], "-workers") == 0)
            o->workers = number;
        else if (strcmp(argv[i], "-pids") == 0)
            o->pids = value;
        else if (strcmp(argv[i], "-form") == 0)
            o->form = value;
        else
            die(argv[i]);
    }
    return i;
}

/* Of all threads of a process, in nanoseconds. */
static unsigned long long cpu_ns(unsigned pid)
{
    unsigned long long sum = 0, one;
    cleanup_free char *path = xasprintf("/proc/%u/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        die(path);
    for (struct dirent *d; (d = readdir(tasks));) {
        cleanup_free char *stat = xasprintf("%s/%s/schedstat", path, d->d_name);
        cleanup_file FILE *f = d->d_name[0] == '.' ? NULL : fopen(stat, "re");
        if (f && fscanf(f, "%llu", &one) == 1)
            sum += one;
    }
    (void)closedir(tasks);
    return sum;
}

static void measure_round(struct target *t, const struct options *o,
                          size_t turn, const struct prepared *all, int target)
{
    unsigned long long before = t->pid ? cpu_ns(t->pid) : 0;
    for (size_t k = turn; k < turn + o->batch; k++)
        if (o->raw)
            once_raw(t, &all[k % o->warmup], target);
        else
            once(t, o, k);
    if (t->pid)
        t->cpu[t->n_cpu++] = (double)(cpu_ns(t->pid) - before) / 1e3 /
                             (double)o->batch;
}

static void measure(struct target *targets, int n, const struct options *o)
{
    cleanup_free struct prepared *all = xcalloc(o->warmup, sizeof *all);
    for (size_t turn = 0; turn < o->warmup; turn++) {
        all[turn].filter.body.max = REQUEST_MAX;
        for (int i = 0; i < n; i++)
            all[turn].prioritize[i].body.max = REQUEST_MAX;
        warm_up(targets, n, o, turn, &all[turn]);
    }
    size_t turn = o->warmup;
    for (size_t round = 0; round < o->rounds; round++, turn += o->batch)
        for (int i = 0; i < n; i++)
            measure_round(&targets[i], o, turn, all, i);
    for (size_t k = 0; k < o->warmup; k++) {
        str_fini(&all[k].filter.body);
        for (int i = 0; i < n; i++)
            str_fini(&all[k].prioritize[i].body);
    }
}

/* The n-th of "P,P…"; 0: there are not so many. */
static unsigned pid_of(const char *pids, int n)
{
    for (; pids && n > 0; n--)
        pids = strchr(pids, ',') ? strchr(pids, ',') + 1 : NULL;
    return pids ? (unsigned)strtoul(pids, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    struct options o = {"bench/pod.json", NULL,         "json",
                        .n = 5000,        .rounds = 30, .batch = 10,
                        .warmup = 20,     .workers = 1};
    struct target targets[TARGETS_MAX] = {0};
    int first = parse(&o, argc, argv);
    int n = argc - first;
    errno = 0;
    if (n < 1 || n > TARGETS_MAX || !o.n || !o.workers || !o.warmup)
        die("give one to eight NAME=URL, a warm-up and a worker");
    pod = read_file(o.pod_file, &pod_size);
    squeeze(pod, &pod_size);
    read_names(&o);
    for (int i = 0; i < n; i++) {
        struct target *t = &targets[i];
        target_open(t, argv[first + i]);
        t->filter = xcalloc(o.rounds * o.batch, sizeof *t->filter);
        t->prioritize = xcalloc(o.rounds * o.batch, sizeof *t->prioritize);
        t->sum = xcalloc(o.rounds * o.batch, sizeof *t->sum);
        t->cpu = xcalloc(o.rounds, sizeof *t->cpu);
        t->pid = pid_of(o.pids, i);
    }
    measure(targets, n, &o);
    bool tsv = is_tsv(&o);
    if (!tsv)
        printf("{\"client\":\"c\",\"pod_bytes\":%zu,\"results\":[", pod_size);
    for (int i = 0; i < n; i++) {
        if (i && !tsv)
            putchar(',');
        report(&targets[i], &o);
    }
    if (!tsv)
        puts("]}");
    return 0;
}
