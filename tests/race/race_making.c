/* kill -9 of the router at every named point of a call that makes something on
 * a remote, and of its end, at the first hits; and failures of commits.  After
 * the restart everything that the kubelet was told is known and there, it gets
 * the rest by asking again, nothing is there twice, and nothing stays.
 *
 * The program runs itself as the one that dies ("--child SOCKET DIR"), which
 * reports on stdout, a pipe, what the kubelet asks and is told; the remote's
 * runtime is the parent's.  Exits with 77 when it was built without
 * -DFAILPOINTS. */
#include <stdio.h>

#include "lib/io/failpoint.h"

#ifndef FAILPOINTS

int main(void)
{
    (void)printf("race_making: skipped, built without -DFAILPOINTS\n");
    return 77;
}

#else

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "tests/lib/failchild.h"
#include "tests/lib/router/keeprig.h"
#include "tests/lib/router/remoterig.h"
#include "tests/lib/tmpdir.h"

enum { N_PODS = 6, PATIENCE_MS = 600000, N_LOST = 4 };

static const unsigned hits[] = {1, 2, 3};

/* Records on the pipe are these, whole: far below PIPE_BUF. */
struct record {
    char kind; /* 's' asked for a sandbox, 'S' told its id; 'c', 'C'; 'r' its
                * removal is asked, 'R' done */
    unsigned pod;
    char id[KEPT_ID_MAX + 1];
};

/* What the kubelet knows of a pod. */
struct pod {
    char sandbox[KEPT_ID_MAX + 1], container[KEPT_ID_MAX + 1];
    bool asked, removing, removed;
};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_making: %s: %s\n", what, why);
    exit(1);
}

static void uid_of(unsigned pod, char uid[16])
{
    (void)snprintf(uid, 16, "u-%u", pod);
}

/* --- the kubelet ------------------------------------------------------------- */

static int try_make(struct remoterig *r, struct pod *p, unsigned pod,
                    bool sandbox, struct error *err)
{
    char uid[16];
    uid_of(pod, uid);
    struct kept what = sandbox ? keeprig_sandbox(uid, 0)
                               : keeprig_container(uid, p->sandbox, "c", 0);
    int e = remoterig_make(r, &what, sandbox ? p->sandbox : p->container, err);
    if (e < 0 && pod % 2) { /* the pod was changed since */
        what.hash++;
        e = remoterig_make(r, &what, sandbox ? p->sandbox : p->container, err);
    }
    return e;
}

static void make(struct remoterig *r, struct pod *p, unsigned pod, bool sandbox)
{
    int64_t until = clock_ms() + PATIENCE_MS;
    struct error err = {0};
    while (try_make(r, p, pod, sandbox, &err) < 0)
        if (clock_ms() > until)
            die("a pod is stuck", err.text);
}

static int remove_pod(struct remoterig *r, const struct pod *p,
                      struct error *err)
{
    struct grpc_end end;
    int e = remoterig_call(r, METHOD_REMOVE_POD_SANDBOX, p->sandbox,
                           PATIENCE_MS, &end, err);
    return e == 0 ? keep_forget(r->keep, p->sandbox, err) : e;
}

/* --- the child ---------------------------------------------------------------- */

static void say(char kind, unsigned pod, const char *id)
{
    struct record r = {.kind = kind, .pod = pod};
    (void)snprintf(r.id, sizeof r.id, "%s", id);
    if (write(STDOUT_FILENO, &r, sizeof r) != (ssize_t)sizeof r)
        die("pipe", strerror(errno));
}

static int child(const char *socket, const char *dir)
{
    struct remoterig r;
    struct error err;
    log_set_level(LOG_ERROR + 1);
    remoterig_join(&r, socket, dir);
    for (unsigned i = 0; i < N_PODS; i++) {
        struct pod p = {.sandbox = ""};
        say('s', i, "");
        make(&r, &p, i, true);
        say('S', i, p.sandbox);
        say('c', i, "");
        make(&r, &p, i, false);
        say('C', i, p.container);
        if (i % 2)
            continue;
        say('r', i, "");
        while (remove_pod(&r, &p, &err) < 0)
            ;
        say('R', i, "");
    }
    remoterig_close(&r);
    return 0;
}

/* --- the parent ---------------------------------------------------------------- */

static void learn(void *pods, const void *record)
{
    const struct record *r = record;
    struct pod *p = (struct pod *)pods + r->pod;
    p->asked = true;
    p->removing |= r->kind == 'r';
    p->removed |= r->kind == 'R';
    if (r->kind == 'S')
        memcpy(p->sandbox, r->id, sizeof p->sandbox);
    if (r->kind == 'C')
        memcpy(p->container, r->id, sizeof p->container);
}

/* True: it was killed. */
static bool run_child(const char *socket, const char *dir, const char *points,
                      struct pod *pods)
{
    const char *const argv[] = {"race_making", "--child", socket, dir, NULL};
    int status = failchild_run(points, argv, sizeof(struct record), learn,
                               pods);
    if (status < 0)
        die("a child", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        die(points, "the child failed");
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void check_id(struct remoterig *r, const char *id, const char *points)
{
    if (!*id)
        return;
    struct kept *found = keep_find(r->keep, id);
    if (!found)
        die(points, "what the kubelet was told is not known");
    kept_unref(found);
}

/* What was told is as it was told; the rest is had by asking again. */
static void check_pod(struct remoterig *r, struct runtimeserver *server,
                      struct pod *p, unsigned pod, const char *points)
{
    struct pod again = *p;
    struct error err = {0};
    char uid[16];
    uid_of(pod, uid);
    if (!p->removing) {
        check_id(r, p->sandbox, points);
        check_id(r, p->container, points);
        if (!*p->sandbox)
            make(r, &again, pod, true);
        if (!*p->container)
            make(r, &again, pod, false);
        if (runtimeserver_count(server, uid) != 2)
            die(points, "something is there twice, or not at all");
    }
    if (remove_pod(r, &again, &err) < 0)
        die(points, err.text);
    if (runtimeserver_count(server, uid) != 0)
        die(points, "something was forgotten");
}

static void check_restart(const char *socket, const char *dir,
                          struct runtimeserver *server, struct pod *pods,
                          const char *points)
{
    struct remoterig r;
    remoterig_join(&r, socket, dir);
    if (remote_fresh(r.remote, clock_ms() + PATIENCE_MS, NULL) < 0)
        die(points, "it is not listed");
    for (unsigned i = 0; i < N_PODS; i++)
        if (pods[i].asked)
            check_pod(&r, server, &pods[i], i, points);
    struct keep_view *v = keep_view(r.keep);
    if (keep_view_count(v) != 0)
        die(points, "something stays written down");
    keep_view_unref(v);
    remoterig_close(&r);
}

static unsigned try_name(const char *name, const char *action)
{
    unsigned n = 0;
    for (size_t i = 0; i < ARRAY_LEN(hits); i++) {
        struct pod pods[N_PODS] = {{.asked = false}};
        char *dir = tmpdir_create();
        cleanup_free char *socket = xasprintf("%s/socket", dir);
        cleanup_free char *state = xasprintf("%s/state", dir);
        cleanup_free char *points = xasprintf("%s=%s:%u", name, action,
                                              hits[i]);
        struct runtimeserver *server = runtimeserver_start(socket);
        runtimeserver_fail(server, "RunPodSandbox", -GRPC_UNAVAILABLE, N_LOST);
        runtimeserver_fail(server, "CreateContainer", -GRPC_UNKNOWN, N_LOST);
        bool killed = run_child(socket, state, points, pods);
        if (!killed && strcmp(action, "kill") == 0)
            die(points, "was never hit");
        check_restart(socket, state, server, pods, points);
        runtimeserver_stop(server);
        tmpdir_remove(dir);
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    unsigned kills = 0, failures = 0;
    (void)unsetenv("BIGA_FAILPOINTS");
    log_set_level(LOG_ERROR);
    for (const char *const *name = failpoint_names(); *name; name++)
        if (strcmp(*name, "cri-commit") == 0)
            failures += try_name(*name, "fail");
        else if (strncmp(*name, "cri-", 4) == 0)
            kills += try_name(*name, "kill");
    (void)printf("race_making: %u kills and %u failed commits, nothing was "
                 "made twice and nothing was forgotten\n",
                 kills, failures);
    return 0;
}

#endif
