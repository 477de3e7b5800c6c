/* biga rsh */
#include "cli/pod/rsh.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/host_socket.h"
#include "cli/base/say.h"
#include "cli/pod/pod_verbs.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/io/clock.h"

enum {
    COMMAND_MAX = 60 << 10, /* bytes; the advertiser takes 64 KiB */
    KNOWN_MAX = 1024,
    BUSY_MS = 10000, /* how long a host that begins others is asked again */
    BUSY_PAUSE_MS = 50,
};

/* The command is a group of processes of its own, which is what signals are
 * for; the runtime began a session with this shell. */
#define SCRIPT "echo $$; exec sh -c \"$1\""
/* The same with input in lines of base64, up to an empty one.  Whoever reads it
 * is in the group, too, and ends with the stream; signals are for the command
 * alone, whose status this shell tells. */
#define SCRIPT_INPUT                                                       \
    "echo $$; f=$(mktemp -u) && mkfifo -m 600 \"$f\" || exit 126; "        \
    "t='HUP INT QUIT TERM USR1 USR2'; trap : $t; "                         \
    "exec 3<&0; { trap '' $t; while read -r l <&3 && [ \"$l\" ]; do echo " \
    "\"$l\"; "                                                             \
    "done | base64 -d >\"$f\"; } >/dev/null 2>&1 & "                       \
    "sh -c \"$1\" <\"$f\" 3<&-; s=$?; rm -f \"$f\"; exit $s"
#define SCRIPT_SIGNAL "kill -s \"$1\" -- \"-$2\""

/* --- where ----------------------------------------------------------------- */

static const char *host_pod(const cJSON *pair)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, json_list(pair, "members"))
    {
        if (strcmp(json_text(m, "role"), "host") == 0)
            return json_text(m, "name");
    }
    return "";
}

static void add_known(struct str *known, const char *node)
{
    cleanup_str struct str clean = STR_INIT(KNOWN_MAX);
    if (known->size + strlen(node) > KNOWN_MAX)
        return;
    text_clean(node, &clean);
    str_addf(known, "%s%s", known->size ? ", " : "", str_text(&clean));
}

bool rsh_find_pod(const cJSON *job, const char *host, struct rsh_pod *ret_pod,
                  struct str *known)
{
    const char *last = "";
    bool found = false;
    const cJSON *pair;
    cJSON_ArrayForEach(pair, json_list(job, "pairList"))
    {
        const char *pod = host_pod(pair), *node = json_text(pair, "node");
        const struct rsh_pod this = {pod, node, (int)json_number(pair, "rank"),
                                     0};
        if (*pod && strcmp(pod, host) == 0) {
            *ret_pod = this;
            return true;
        }
        if (strcmp(node, last) != 0)
            add_known(known, node);
        last = node;
        if (!*pod || strcmp(node, host) != 0)
            continue;
        if (found)
            ret_pod->n_others++;
        else
            *ret_pod = this; /* ranks ascend */
        found = true;
    }
    return found;
}

static int find_pod(struct cli *c, const char *job, const char *host,
                    cJSON **ret_json, struct rsh_pod *ret_pod)
{
    cleanup_str struct str path = STR_INIT(4096), known = STR_INIT(4096);
    str_add(&path, "/v1/jobs/");
    cli_add_name(&path, job);
    int rc = cli_get(c, str_text(&path), ret_json);
    if (rc)
        return rc;
    if (!rsh_find_pod(*ret_json, host, ret_pod, &known))
        return cli_fail(
            "rsh: no host pod of job %s is on a node \"%s\", nor is "
            "one named so; the job's nodes: %s",
            job, host, known.size ? str_text(&known) : "none");
    if (ret_pod->n_others)
        fprintf(stderr,
                "biga: rsh: node %s has %d more host pods of job %s; %s, of "
                "the lowest rank there, is taken for all.  A hostfile of pods "
                "(biga job --pod-hostfile) has a rank in each.\n",
                host, ret_pod->n_others, job, ret_pod->name);
    return 0;
}

/* --- what ------------------------------------------------------------------ */

/* As rsh and ssh: one text for a shell there. */
static int join_command(int argc, char **argv, struct str *command)
{
    for (int i = 0; i < argc; i++)
        str_addf(command, "%s%s", i ? " " : "", argv[i]);
    if (command->overflow)
        return cli_usage("rsh: the command is over %d bytes", COMMAND_MAX);
    for (size_t i = 0, n; i < command->size; i += n) {
        n = utf8_sequence(command->data + i, command->size - i);
        if (n == 0) /* JSON, by which it goes, has no others */
            return cli_usage("rsh: the command is not UTF-8 at byte %zu", i);
    }
    return 0;
}

static void write_body(const struct cli *c, const char *const *argv,
                       const bool *input, struct str *body)
{
    jwrite_object(body, NULL);
    jwrite_text(body, "container", c->set.container);
    if (input)
        jwrite_bool(body, "stdin", *input);
    jwrite_array(body, "argv");
    for (size_t i = 0; argv[i]; i++)
        jwrite_text(body, NULL, argv[i]);
    str_add(body, "]}");
}

/* Has our standard input anything?  mpirun gives its agents /dev/null. */
static bool has_input(void)
{
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 &&
           !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

struct running {
    struct cli *c;
    const char *pod; /* NAMESPACE/NAME */
};

/* The host begins few commands at a time; mpirun begins all of its at once.  -1:
 * it answered that it does not; else as host_socket_try_request(). */
static int ask_host(struct host_socket *l, const struct str *path,
                    const struct str *body, cJSON **ret_json)
{
    const struct timespec nap = {0, BUSY_PAUSE_MS * 1000000L};
    int64_t end = clock_ms() + BUSY_MS;
    for (;;) {
        const struct http_request rq = {.method = "POST",
                                        .path = str_text(path),
                                        .body = str_text(body),
                                        .body_size = body->size};
        int rc = host_socket_try_request(l, &rq, ret_json);
        if (rc >= 0 || l->answer.status != 503 || clock_ms() >= end)
            return rc;
        (void)nanosleep(&nap, NULL); /* signals are held */
    }
}

/* By a connection of its own: the command goes on meanwhile. */
static void pass_signal(void *ctx, int signal, long pid)
{
    struct running *r = ctx;
    char number[24];
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    struct host_socket l;
    (void)snprintf(number, sizeof number, "%ld", pid);
    const char *const argv[] = {
        "sh",   "-c", SCRIPT_SIGNAL, "biga-rsh", sigabbrev_np(signal),
        number, NULL};
    if (host_socket_open(r->c, &l))
        return;
    host_socket_pod_path(r->pod, "/exec", &path);
    write_body(r->c, argv, NULL, &body);
    if (ask_host(&l, &path, &body, &json) < 0)
        (void)host_socket_complain(&l); /* the command goes on */
    host_socket_close(&l);
}

static int fail_elsewhere(const struct cli *c, const struct rsh_pod *pod)
{
    cleanup_str struct str clean = STR_INIT(4096);
    text_clean(pod->node, &clean);
    return cli_fail("rsh: pod %s is on node %s, and the advertiser of this "
                    "host (--socket %s) does not have it.  biga rsh reaches "
                    "pods of its own host only: run it, or mpirun, on %s.",
                    pod->name, str_text(&clean), c->set.socket,
                    str_text(&clean));
}

/* Has this host the pod, NAMESPACE/NAME of `key`? */
static int check_here(struct cli *c, const char *key, const struct rsh_pod *pod)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    struct host_socket l;
    if (access(c->set.socket, F_OK) < 0 && errno == ENOENT)
        return fail_elsewhere(c, pod);
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    host_socket_pod_path(key, "", &path);
    rc = host_socket_try(&l, "GET", str_text(&path), &json);
    if (rc < 0 && l.answer.status == 404)
        rc = fail_elsewhere(c, pod);
    else if (rc < 0)
        rc = host_socket_complain(&l);
    host_socket_close(&l);
    return rc;
}

static int begin(struct cli *c, const char *pod, const char *command,
                 bool input, cJSON **ret_json)
{
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(1 << 20);
    struct host_socket l;
    const char *const argv[] = {
        "sh", "-c", input ? SCRIPT_INPUT : SCRIPT, "biga-rsh", command, NULL};
    int rc = host_socket_open(c, &l);
    if (rc)
        return rc;
    host_socket_pod_path(pod, "/stream", &path);
    write_body(c, argv, &input, &body);
    rc = ask_host(&l, &path, &body, ret_json);
    if (rc < 0)
        rc = host_socket_complain(&l);
    else if (rc == 0 && !*ret_json)
        rc = cli_fail("rsh: the advertiser's answer is empty");
    host_socket_close(&l);
    return rc;
}

static int run_in(struct cli *c, const char *pod, const char *command)
{
    cleanup_with(json) cJSON *json = NULL;
    struct running r = {c, pod};
    struct error err = {0};
    bool input = has_input();
    int code = 0;
    rsh_signals_hold();
    int rc = begin(c, pod, command, input, &json);
    if (rc)
        return rc;
    const struct rsh_stream s = {.url = json_text(json, "url"),
                                 .input = input,
                                 .signalled = pass_signal,
                                 .ctx = &r};
    if (rsh_stream_run(&s, &code, &err) < 0)
        return cli_fail("rsh: %s: %s", pod, err.text);
    return code;
}

int verb_rsh(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str command = STR_INIT(COMMAND_MAX);
    cleanup_with(json) cJSON *json = NULL;
    struct rsh_pod pod = {0};
    cleanup_free char *name = xstrdup(c->set.job);
    char *job = name;
    c->set.json = false; /* what is asked is for us */
    if (!*job)
        return cli_usage("rsh: which job? --job NAME, or BIGA_JOB");
    int rc = join_command(argc - 1, argv + 1, &command);
    if (rc == 0)
        rc = cli_qualify(c, "rsh", &job);
    if (rc == 0)
        rc = find_pod(c, job, argv[0], &json, &pod);
    if (rc)
        return rc;
    const char *slash = strchr(job, '/');
    cleanup_free char *key = xasprintf("%.*s/%s", (int)(slash - job), job,
                                       pod.name);
    rc = check_here(c, key, &pod);
    return rc ? rc : run_in(c, key, str_text(&command));
}
