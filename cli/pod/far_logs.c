/* biga logs, by way of the extender. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/listing.h"
#include "cli/base/moment.h"
#include "cli/base/put.h"
#include "cli/base/say.h"
#include "cli/pod/far.h"
#include "cli/pod/log_clean.h"
#include "lib/base/mem.h"
#include "lib/io/thread_name.h"

DEFINE_CLEANUP(http_client, struct http_client *, http_client_destroy)

enum {
    CONNECT_MS = 10000,
    PATH_BYTES = 4096,
    FOLLOWED_MAX = 256, /* pods at once */
    LINE_MAX_BYTES = 64 << 10,
};

/* --- what is asked ------------------------------------------------------------ */

static int make_path(const struct cli *c, const char *pod, struct str *path)
{
    far_container_path(c, pod, "log", path);
    str_addf(path, "&follow=%s&limitBytes=%" PRId64,
             c->set.follow ? "true" : "false", c->set.limit_bytes);
    if (c->set.tail >= 0)
        str_addf(path, "&tailLines=%" PRId64, c->set.tail);
    if (c->set.previous)
        str_add(path, "&previous=true");
    if (c->set.timestamps)
        str_add(path, "&timestamps=true");
    return moment_add_query(path, "sinceTime", "--since", c->set.since);
}

/* --- what comes ---------------------------------------------------------------- */

/* Output of several pods, a line at a time. */
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

struct log {
    struct cli *c;
    const char *pod;
    const char *prefix; /* NULL: none */
    bool clean;         /* for a terminal */
    struct log_cut cut;
    struct str line; /* with a prefix: what is not a whole line yet */
    int64_t taken;   /* bytes */
    struct error failure;
    int rc;
    long status; /* of the answer; 0: none came */
};

static bool print(struct log *l, const char *data, size_t size)
{
    return put_all(STDOUT_FILENO, data, size, "standard output", &l->failure) ==
           0;
}

/* Whole lines, or one that is too long to wait for. */
static bool print_lines(struct log *l)
{
    size_t at = 0;
    bool ok = true;
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    while (at < l->line.size) {
        const char *begin = l->line.data + at;
        const char *end = memchr(begin, '\n', l->line.size - at);
        if (!end && l->line.size - at < LINE_MAX_BYTES)
            break;
        size_t n = end ? (size_t)(end - begin) : l->line.size - at;
        str_addf(&out, "%s ", l->prefix);
        str_add_n(&out, begin, n);
        str_add_c(&out, '\n');
        at += n + (end != NULL);
    }
    (void)pthread_mutex_lock(&output);
    ok = print(l, str_text(&out), out.size);
    (void)pthread_mutex_unlock(&output);
    str_drop(&l->line, at);
    return ok;
}

static bool take(void *ctx, const char *data, size_t size)
{
    struct log *l = ctx;
    l->taken += (int64_t)size;
    cleanup_str struct str clean = STR_INIT(STR_MAX_DEFAULT);
    if (l->clean) {
        log_clean(data, size, &l->cut, &clean);
        data = str_text(&clean);
        size = clean.size;
    }
    if (!l->prefix)
        return print(l, data, size);
    str_add_n(&l->line, data, size);
    return print_lines(l);
}

/* All of it: an exit code. */
static int fetch(struct log *l)
{
    cleanup_str struct str path = STR_INIT(PATH_BYTES);
    cleanup_with(http_client) struct http_client *http = NULL;
    struct http_answer answer = {.body = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    int rc = make_path(l->c, l->pod, &path);
    if (rc)
        return rc;
    if (cli_connect(l->c, CONNECT_MS, NULL, &http, &err))
        return cli_usage("%s", err.text);
    const struct http_follow follow = {.take = take, .ctx = l};
    const struct http_request request = {.method = "GET",
                                         .path = str_text(&path),
                                         .accept = "text/plain",
                                         .follow = &follow};
    rc = http_send(http, &request, &answer, &err);
    l->status = answer.status;
    if (l->failure.code)
        rc = cli_fail("%s", l->failure.text);
    else if (rc < 0 && answer.status == 200)
        rc = cli_fail("%s: the log broke off: %s", l->pod, err.text);
    else if (rc < 0)
        rc = cli_complain_unreachable(l->c, &err);
    else if (answer.status != 200)
        rc = cli_complain(&answer);
    if (l->line.size) {
        str_add_c(&l->line, '\n');
        (void)print_lines(l);
    }
    if (rc == 0 && l->taken >= l->c->set.limit_bytes)
        fprintf(stderr,
                "biga: %s: that were %" PRId64 " bytes; more with "
                "--limit-bytes\n",
                l->pod, l->taken);
    str_fini(&answer.body);
    return rc;
}

static int log_show(struct cli *c, const char *pod, const char *prefix)
{
    struct log l = {.c = c,
                    .pod = pod,
                    .prefix = prefix,
                    .clean = isatty(STDOUT_FILENO),
                    .line = STR_INIT(STR_MAX_DEFAULT)};
    int rc = fetch(&l);
    c->status = l.status;
    str_fini(&l.line);
    return rc;
}

/* --- of several pods ------------------------------------------------------------ */

struct pods {
    char **names; /* NAMESPACE/NAME */
    size_t n, cap;
};

static void pods_add(struct pods *p, const char *namespace, const char *name)
{
    p->names = xgrow(p->names, p->n, &p->cap, sizeof *p->names);
    p->names[p->n++] = xasprintf("%s/%s", namespace, name);
}

static void pods_fini(struct pods *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->names[i]);
    free(p->names);
}

static int pods_of_job(struct cli *c, const char *job, struct pods *p)
{
    cleanup_str struct str path = STR_INIT(PATH_BYTES);
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *pair, *member;
    str_add(&path, "/v1/jobs/");
    cli_add_name(&path, job);
    int rc = cli_get(c, str_text(&path), &json);
    if (rc)
        return rc;
    cJSON_ArrayForEach(pair, json_list(json, "pairList"))
        cJSON_ArrayForEach(member, json_list(pair, "members")) pods_add(
            p, json_text(json, "namespace"), json_text(member, "name"));
    return 0;
}

static int pods_of_selector(struct cli *c, struct pods *p)
{
    cleanup_str struct str path = STR_INIT(PATH_BYTES);
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *pod;
    str_add(&path, "/v1/pods?limit=100000");
    cli_add_query(&path, "namespace", cli_namespace(c));
    int rc = cli_get(c, str_text(&path), &json);
    if (rc == 0)
        rc = listing_choose_items(c, json);
    if (rc)
        return rc;
    cJSON_ArrayForEach(pod, json_list(json, "items"))
        pods_add(p, json_text(pod, "namespace"), json_text(pod, "name"));
    return 0;
}

static void *show_one(void *arg)
{
    struct log *l = arg;
    thread_name("log", NULL);
    l->rc = fetch(l);
    return NULL;
}

static int follow_all(struct cli *c, const struct pods *p, char **prefixes)
{
    cleanup_free struct log *logs = xcalloc(p->n, sizeof *logs);
    cleanup_free pthread_t *threads = xcalloc(p->n, sizeof *threads);
    size_t begun = 0;
    int rc = 0;
    for (; begun < p->n; begun++) {
        logs[begun] = (struct log){.c = c,
                                   .pod = p->names[begun],
                                   .prefix = prefixes[begun],
                                   .clean = isatty(STDOUT_FILENO),
                                   .line = STR_INIT(STR_MAX_DEFAULT)};
        if (pthread_create(&threads[begun], NULL, show_one, &logs[begun]))
            break;
    }
    if (begun < p->n)
        rc = cli_fail("logs: no thread for %s", p->names[begun]);
    for (size_t i = 0; i < begun; i++) {
        (void)pthread_join(threads[i], NULL); /* a thread of ours: joinable */
        rc = rc ? rc : logs[i].rc;
        str_fini(&logs[i].line);
    }
    return rc;
}

static int show_all(struct cli *c, const struct pods *p)
{
    int rc = 0;
    if (p->n == 0)
        return cli_fail("logs: no pod is meant");
    if (c->set.follow && p->n > FOLLOWED_MAX)
        return cli_usage("logs: --follow: %zu pods are meant, at most %d can "
                         "be followed",
                         p->n, FOLLOWED_MAX);
    cleanup_free char **prefixes = xcalloc(p->n, sizeof *prefixes);
    for (size_t i = 0; i < p->n; i++)
        prefixes[i] = xasprintf("[%s]", strchr(p->names[i], '/') + 1);
    if (c->set.follow)
        rc = follow_all(c, p, prefixes);
    for (size_t i = 0; !c->set.follow && i < p->n; i++) {
        int one = log_show(c, p->names[i], prefixes[i]);
        rc = rc ? rc : one; /* the others are shown, too */
    }
    for (size_t i = 0; i < p->n; i++)
        free(prefixes[i]);
    return rc;
}

int far_logs(struct cli *c, const char *pod)
{
    static const char job[] = "job/";
    struct pods pods = {0};
    if (pod && strncmp(pod, job, sizeof job - 1) != 0)
        return log_show(c, pod, NULL);
    char *name = pod ? (char *)pod + sizeof job - 1 : NULL;
    int rc = name ? cli_qualify(c, "logs", &name) : 0;
    if (rc == 0)
        rc = name ? pods_of_job(c, name, &pods) : pods_of_selector(c, &pods);
    if (rc == 0)
        rc = show_all(c, &pods);
    pods_fini(&pods);
    return rc;
}
