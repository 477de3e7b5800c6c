/* A server stops, is replaced, runs out of descriptors, and meets strangers. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/unix_socket.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/grpc/rpcserver.h"
#include "tests/lib/tmpdir.h"

static int echo(struct rpc_client *c, const char *message)
{
    cleanup_str struct str reply = STR_INIT(1000);
    int code = rpc_unary(c, "/t.T/Echo", message, strlen(message), &reply);
    cr_expect(code != GRPC_OK || strcmp(str_text(&reply), message) == 0);
    return code;
}

static void begin(struct rpc_client *c, struct rpc_call *call,
                  const char *method)
{
    rpc_begin(c, call, method, NULL);
    rpc_send(call, "", 0);
    rpc_send_end(call);
    rpc_turn(c, 0);
}

struct stop {
    struct rpc_server *s;
    unsigned drain_ms;
    pthread_t thread;
};

static void *run_stop(void *arg)
{
    struct stop *stop = arg;
    grpcd_stop(stop->s->grpcd, stop->drain_ms);
    return NULL;
}

static void stop_begin(struct stop *stop, struct rpc_server *s, unsigned ms)
{
    *stop = (struct stop){.s = s, .drain_ms = ms};
    cr_assert_eq(pthread_create(&stop->thread, NULL, run_stop, stop), 0);
}

Test(grpcd_stop, calls_under_way_are_finished)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path), *idle = rpc_open(s->path);
    struct rpc_call call;
    struct stop stop;
    cr_expect_eq(echo(idle, "a"), GRPC_OK);
    begin(c, &call, "/t.T/Wait");
    rpc_server_await(&s->n_begun, 2);
    stop_begin(&stop, s, 600000);
    while (!c->goaway)
        rpc_turn(c, RPC_PATIENCE_MS);
    cr_expect_eq(c->goaway_code, NGHTTP2_NO_ERROR);
    while (!idle->closed) /* it has nothing to wait for */
        rpc_turn(idle, RPC_PATIENCE_MS);
    cr_expect_lt(access(s->path, F_OK), 0, "nobody can connect");
    rpc_server_release(s);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    (void)pthread_join(stop.thread, NULL);
    rpc_end(&call);
    rpc_close(c);
    rpc_close(idle);
    rpc_server_destroy(s);
}

Test(grpcd_stop, what_does_not_end_is_ended)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call call;
    begin(c, &call, "/t.T/Wait");
    rpc_server_await(&s->n_begun, 1);
    grpcd_stop(s->grpcd, 10);
    cr_expect_eq(atomic_load(&s->last_cancelled), GRPC_UNAVAILABLE);
    cr_expect_eq(rpc_wait(&call), GRPC_UNAVAILABLE);
    cr_expect_str_eq(rpc_text(&call), "the server stops");
    cr_expect_eq(atomic_load(&s->n_ended), 1);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

/* Who reads nothing does not keep it from stopping. */
Test(grpcd_stop, clients_that_do_not_read_are_left)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct rpc_call call;
    rpc_begin(c, &call, "/t.T/Count", NULL);
    rpc_send(&call, "1000 100000", 11);
    rpc_send_end(&call);
    c->late = true;
    rpc_wait_bytes(&call, 60000);
    grpcd_stop(s->grpcd, 0);
    cr_expect_eq(atomic_load(&s->n_cancelled), 1);
    rpc_end(&call);
    rpc_close(c);
    rpc_server_destroy(s);
}

/* Each call finds a server, whichever: those that were told to go elsewhere
 * are made again. */
Test(grpcd_stop, another_takes_its_place)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    const struct grpcd_config take_over = {.take_over = true};
    struct rpc_server *old = rpc_server_create(path, NULL, NULL);
    struct rpc_client *c = rpc_open(path);
    struct rpc_call call;
    struct stop stop;
    begin(c, &call, "/t.T/Wait");
    rpc_server_await(&old->n_begun, 1);
    struct rpc_server *new = rpc_server_create(path, NULL, &take_over);
    struct rpc_client *d = rpc_open(path);
    cr_expect_eq(echo(d, "new"), GRPC_OK);
    cr_expect_eq(atomic_load(&new->n_begun), 1);
    cr_expect_eq(echo(c, "old"), GRPC_OK);
    stop_begin(&stop, old, 600000);
    rpc_server_release(old);
    cr_expect_eq(rpc_wait(&call), GRPC_OK);
    (void)pthread_join(stop.thread, NULL);
    cr_expect_eq(access(path, F_OK), 0, "the file is the new one's");
    cr_expect_eq(echo(d, "still new"), GRPC_OK);
    rpc_end(&call);
    rpc_close(c);
    rpc_close(d);
    rpc_server_destroy(old);
    rpc_server_destroy(new);
    tmpdir_remove(dir);
}

struct load {
    const char *path;
    atomic_bool ends;
    unsigned n_answered, n_again;
};

/* One call after the other; what was not carried out is called again. */
static void *run_load(void *arg)
{
    struct load *load = arg;
    struct rpc_client *c = rpc_open(load->path);
    while (!atomic_load(&load->ends)) {
        int code = c->goaway || c->closed ? -1 : echo(c, "again and again");
        if (code == GRPC_OK) {
            load->n_answered++;
        } else {
            cr_assert_eq(code, -1, "%d", code);
            load->n_again++;
            rpc_close(c);
            c = rpc_open(load->path);
        }
    }
    rpc_close(c);
    return NULL;
}

/* Under load: no call is lost, and none is carried out twice. */
Test(grpcd_stop, calls_outlive_one_server_after_another)
{
    enum { TIMES = 20 };
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    const struct grpcd_config take_over = {.take_over = true};
    struct rpc_server *s = rpc_server_create(path, NULL, NULL);
    struct load load = {.path = path};
    unsigned n_begun = 0;
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, run_load, &load), 0);
    for (int i = 0; i < TIMES; i++) {
        rpc_server_await(&s->n_begun, 50);
        struct rpc_server *next = rpc_server_create(path, NULL, &take_over);
        grpcd_stop(s->grpcd, 600000);
        n_begun += atomic_load(&s->n_begun);
        rpc_server_destroy(s);
        s = next;
    }
    rpc_server_await(&s->n_begun, 50);
    atomic_store(&load.ends, true);
    (void)pthread_join(thread, NULL);
    cr_expect_eq(n_begun + atomic_load(&s->n_begun), load.n_answered);
    cr_expect_geq(load.n_again, TIMES);
    rpc_server_destroy(s);
    tmpdir_remove(dir);
}

/* Those in the backlog are told as well: none is left without a word. */
Test(grpcd_stop, who_has_connected_already_is_told)
{
    char *dir = tmpdir_create();
    cleanup_free char *path = xasprintf("%s/s", dir);
    struct rpc_server *s = rpc_server_create(path, NULL, NULL);
    struct rpc_client *all[20];
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        all[i] = rpc_open(path);
    grpcd_stop(s->grpcd, 0);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        while (!all[i]->closed)
            rpc_turn(all[i], RPC_PATIENCE_MS);
        cr_expect(all[i]->goaway, "%zu", i);
        rpc_close(all[i]);
    }
    rpc_server_destroy(s);
    tmpdir_remove(dir);
}

static unsigned open_files(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return (unsigned)fd;
}

/* In virtual time, which stands still: one try, however often it is woken. */
Test(grpcd_stop, without_descriptors_it_lives_on_and_does_not_spin)
{
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct rpc_client *c = rpc_open(s->path);
    struct grpcd_stats stats;
    struct rlimit before;
    clock_set_fake(1000);
    cr_expect_eq(echo(c, "a"), GRPC_OK);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)close(fd);
    struct rpc_client *waits = rpc_open(s->path); /* takes the last */
    (void)waits;
    cr_expect_eq(echo(waits, "b"), GRPC_OK);
    const struct rlimit few = {.rlim_cur = open_files() + 1,
                               .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct rpc_client *late = rpc_open(s->path);
    do {
        cr_expect_eq(echo(c, "it lives on"), GRPC_OK);
        grpcd_stats(s->grpcd, &stats);
    } while (stats.n_not_accepted == 0);
    for (int i = 0; i < 500; i++)
        cr_expect_eq(echo(c, "and answers"), GRPC_OK);
    grpcd_stats(s->grpcd, &stats);
    cr_expect_eq(stats.n_not_accepted, 1, "%llu",
                 (unsigned long long)stats.n_not_accepted);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    clock_set_fake(2000);
    cr_expect_eq(echo(c, "wakes it"), GRPC_OK);
    cr_expect_eq(echo(late, "at last"), GRPC_OK);
    clock_set_fake(-1);
    rpc_close(c);
    rpc_close(waits);
    rpc_close(late);
    rpc_server_destroy(s);
}

/* 0: the call was refused as it has to be. */
static int try_as_nobody(const char *path)
{
    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 2;
    struct rpc_client *c = rpc_open(path);
    int code = echo(c, "let me in");
    rpc_close(c);
    return code == GRPC_PERMISSION_DENIED ? 0 : 1;
}

Test(grpcd_stop, strangers_are_refused)
{
    int status = 0;
    if (geteuid() != 0)
        cr_skip_test("only root can be another user");
    struct rpc_server *s = rpc_server_create(NULL, NULL, NULL);
    struct stat st;
    cr_assert_eq(stat(s->path, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0600);
    cr_assert_eq(chmod(s->path, 0666), 0); /* or else they cannot connect */
    cr_assert_eq(chmod(s->dir, 0755), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(try_as_nobody(s->path));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    rpc_server_destroy(s);
}
