/* A server on a unix socket: whose it is, and what becomes of its file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/http.h"
#include "lib/http/httpd.h"
#include "tests/lib/tmpdir.h"

static void on_echo(struct httpd_request *rq, void *ctx)
{
    size_t size;
    const char *body = httpd_body(rq, &size);
    (void)ctx;
    str_add_n(httpd_reply(rq), body, size);
}

static int try_start(const char *listen, struct httpd **ret_httpd,
                     struct error *err)
{
    static const struct httpd_route routes[] = {
        {HTTPD_POST, "/echo", on_echo, 1 << 20, "echo"},
    };
    const struct httpd_config config = {
        .listen = listen, .routes = routes, .n_routes = ARRAY_LEN(routes)};
    return httpd_start(&config, ret_httpd, err);
}

/* The status of one echo, 0 without an answer; which is the body, or why. */
static long echo(const char *base, const char *body, char text[512])
{
    struct http_client *c = NULL;
    struct http_answer a = {.body = STR_INIT(2 << 20)};
    struct error err = {0};
    cr_assert_eq(http_client_create(base, 60000, &c, &err), 0, "%s", err.text);
    if (http_call(c, "POST", "/echo", body, strlen(body), NULL, &a, &err) < 0)
        (void)snprintf(text, 512, "%s", err.text);
    else
        (void)snprintf(text, 512, "%s", str_text(&a.body));
    long status = a.status;
    str_fini(&a.body);
    http_client_destroy(c);
    return status;
}

struct place {
    char *dir, *path, *listen;
};

static struct place place_make(void)
{
    struct place p = {.dir = tmpdir_create()};
    p.path = xasprintf("%s/s.sock", p.dir);
    p.listen = xasprintf("unix:%s", p.path);
    return p;
}

static void place_remove(struct place *p)
{
    tmpdir_remove(p->dir);
    free(p->path);
    free(p->listen);
}

static struct httpd *start(const struct place *p)
{
    struct httpd *h = NULL;
    struct error err;
    cr_assert_eq(try_start(p->listen, &h, &err), 0, "%s", err.text);
    return h;
}

Test(httpd_unix, answers_its_user_and_leaves_no_file)
{
    struct place p = place_make();
    struct stat st;
    char text[512];
    struct httpd *h = start(&p);
    cr_expect_eq(echo(p.listen, "hello", text), 200, "%s", text);
    cr_expect_str_eq(text, "hello");
    cr_assert_eq(lstat(p.path, &st), 0);
    cr_expect(S_ISSOCK(st.st_mode));
    cr_expect_eq(st.st_mode & 07777, 0600);
    httpd_stop(h);
    cr_expect_eq(lstat(p.path, &st), -1);
    cr_expect_eq(echo(p.listen, "hello", text), 0);
    cr_expect(strstr(text, p.path) && strstr(text, "is the server running"),
              "%s", text);
    place_remove(&p);
}

/* In a process of another user: 0 when it is refused in words that name it. */
static int asks_as_another(const struct place *p)
{
    char text[512] = "";
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 2;
    long got = echo(p->listen, "x", text);
    return got == 403 && strstr(text, "not the one with 65534") ? 0 : 1;
}

/* Root may try as another user; elsewhere there is nobody to be.  The child is
 * forked before the server has a thread, which may hold the allocator's lock,
 * and waits for a byte until the server is there. */
Test(httpd_unix, others_are_refused_in_words)
{
    if (geteuid() != 0)
        cr_skip_test("only root can become somebody else");
    struct place p = place_make();
    int status, go[2];
    char byte = 0;
    cr_assert_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? asks_as_another(&p) : 3);
    }
    struct httpd *h = start(&p);
    cr_assert_eq(chmod(p.path, 0777), 0);
    cr_assert_eq(chmod(p.dir, 0755), 0);
    cr_assert_eq(write(go[1], &byte, 1), 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    (void)close(go[0]);
    (void)close(go[1]);
    httpd_stop(h);
    place_remove(&p);
}

/* What a killed server leaves. */
static void leave_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    cr_assert_eq(close(fd), 0);
}

Test(httpd_unix, takes_over_from_the_dead_alone)
{
    struct place p = place_make();
    struct httpd *second = NULL;
    struct error err = {0};
    char text[512];
    leave_socket(p.path);
    struct httpd *h = start(&p);
    cr_expect_eq(try_start(p.listen, &second, &err), -EADDRINUSE);
    cr_expect(strstr(err.text, "somebody else serves it"), "%s", err.text);
    cr_expect_eq(echo(p.listen, "on", text), 200, "the first goes on: %s",
                 text);
    httpd_stop(h);
    place_remove(&p);
}

Test(httpd_unix, removes_nothing_that_is_no_socket)
{
    struct place p = place_make();
    struct httpd *h = NULL;
    struct error err = {0};
    int fd = open(p.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(close(fd), 0);
    cr_expect_eq(try_start(p.listen, &h, &err), -EEXIST);
    cr_expect(strstr(err.text, "is no socket"), "%s", err.text);
    cr_expect_eq(access(p.path, F_OK), 0);
    place_remove(&p);
}

/* Somebody removed the file and another one listens: that one stays. */
Test(httpd_unix, leaves_the_file_of_another)
{
    struct place p = place_make();
    struct httpd *first = start(&p);
    char text[512];
    cr_assert_eq(unlink(p.path), 0);
    struct httpd *second = start(&p);
    httpd_stop(first);
    cr_expect_eq(echo(p.listen, "still", text), 200, "%s", text);
    httpd_stop(second);
    place_remove(&p);
}

Test(httpd_unix, paths_are_checked)
{
    struct httpd *h = NULL;
    struct error err = {0};
    char path[200] = "unix:/";
    cr_expect_eq(try_start("unix:relative", &h, &err), -EINVAL);
    cr_expect(strstr(err.text, "must be absolute"), "%s", err.text);
    memset(path + 6, 'x', sizeof path - 7);
    cr_expect_eq(try_start(path, &h, &err), -EINVAL);
    cr_expect(strstr(err.text, "at most 107 bytes"), "%s", err.text);
    struct http_client *c = NULL;
    cr_expect_eq(http_client_create(path, 100, &c, &err), -EINVAL);
    cr_expect(strstr(err.text, "at most 107"), "%s", err.text);
    cr_expect_eq(try_start("unix:/nowhere/at/all/s.sock", &h, &err), -ENOENT);
}

Test(httpd_unix, large_bodies_pass)
{
    struct place p = place_make();
    struct httpd *h = start(&p);
    char text[512];
    cleanup_free char *body = xmalloc((1 << 20) + 2);
    memset(body, 'x', (1 << 20) + 1);
    body[(1 << 20) + 1] = '\0';
    cr_expect_eq(echo(p.listen, body, text), 413);
    body[1 << 20] = '\0';
    cr_expect_eq(echo(p.listen, body, text), 200);
    httpd_stop(h);
    place_remove(&p);
}
