/* What libmicrohttpd makes a request of, and httpd lets through to a handler,
 * has a head that can be read in one way, by a reader that shares nothing with
 * either. */
#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/tmpdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192 };

/* --- the server ----------------------------------------------------------- */

static atomic_uint handled;
static struct httpd *server;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char *folder;

static void on_any(struct httpd_request *rq, void *ctx)
{
    (void)rq;
    (void)ctx;
    atomic_fetch_add(&handled, 1);
}

static void on_ask(struct httpd_request *rq, void *ctx)
{
    (void)ctx;
    httpd_close_after(rq);
}

static const struct httpd_route routes[] = {
    {HTTPD_GET, "/ask/of/the/target/itself", on_ask, 0, "ask"},
    {HTTPD_GET | HTTPD_POST, "/", on_any, 1000, "root"},
    {HTTPD_GET | HTTPD_POST, "/::", on_any, 1000, "any"},
};

static void server_stop(void)
{
    httpd_stop(server);
    tmpdir_remove(folder);
}

static void server_start(void)
{
    struct error err;
    folder = tmpdir_create();
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket",
                   folder);
    cleanup_free char *listen = xasprintf("unix:%s", address.sun_path);
    const struct httpd_config config = {.listen = listen,
                                        .routes = routes,
                                        .n_routes = ARRAY_LEN(routes),
                                        .request_ms = 60000};
    if (httpd_start(&config, &server, &err) < 0 || atexit(server_stop) != 0)
        abort();
}

static int server_connect(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        abort();
    return fd;
}

/* Once this is answered, all that was sent before has been looked at: there
 * is one thread. */
static void server_ask(void)
{
    char answer[1024];
    int fd = server_connect();
    if (!raw_send(fd, "GET /ask/of/the/target/itself HTTP/1.1\r\n"
                      "Host: x\r\n\r\n"))
        abort();
    while (recv(fd, answer, sizeof answer, 0) > 0)
        ;
    (void)close(fd);
}

/* --- the other reader ----------------------------------------------------- */

struct reader {
    const char *at, *end;
};

/* A line without its end, which is CR LF, or the NUL LF that leaves no trace;
 * so does the ":" LF that libmicrohttpd takes for the empty line.  -1 when
 * there is none. */
static ptrdiff_t line_read(struct reader *r, const char **ret_line)
{
    const char *lf = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *ret_line = r->at;
    if (!lf || lf == r->at ||
        (lf[-1] != '\r' && lf[-1] != '\0' &&
         (lf - r->at != 1 || *r->at != ':')))
        return -1;
    r->at = lf + 1;
    return lf - 1 - *ret_line;
}

/* libmicrohttpd makes NULs of line ends, of blanks before them and of the colon
 * behind a name, also one of no letters: a LF beside such a byte looks as CR LF
 * does.  What has one is not judged. */
static bool leaves_no_trace(const char *text, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (((text[i] == '\r' || text[i] == '\n') &&
             memchr("\0 \t", text[i - 1], 3)) ||
            (text[i] == ':' && text[i - 1] == '\n'))
            return true;
    return false;
}

static size_t token_size(const char *text, size_t size)
{
    size_t n = 0;
    while (
        n < size && text[n] &&
        (isalnum((unsigned char)text[n]) || strchr("!#$%&'*+-.^_`|~", text[n])))
        n++;
    return n;
}

static bool has_control(const char *text, size_t size, char but)
{
    for (size_t i = 0; i < size; i++)
        if (iscntrl((unsigned char)text[i]) && text[i] != but)
            return true;
    return false;
}

static bool request_line_is_strict(const char *line, size_t size)
{
    static const char version[] = " HTTP/1.";
    size_t method = token_size(line, size), tail = sizeof version;
    if (method == 0 || size < method + 2 + tail || line[method] != ' ')
        return false;
    const char *target = line + method + 1;
    size_t target_size = size - method - 1 - tail;
    return !memchr(target, ' ', target_size) &&
           !has_control(target, target_size, 'a') &&
           memcmp(target + target_size, version, tail - 1) == 0 &&
           isdigit((unsigned char)line[size - 1]);
}

static bool head_is_strict(struct reader r)
{
    const char *line;
    unsigned hosts = 0;
    /* what comes before a request, and is skipped */
    while (r.at < r.end && (*r.at == '\0' || *r.at == '\n' ||
                            (r.end - r.at > 1 && memcmp(r.at, "\r\n", 2) == 0)))
        if (!(r.at = memchr(r.at, '\n', (size_t)(r.end - r.at))) || !++r.at)
            return false;
    ptrdiff_t size = line_read(&r, &line);
    if (size < 0 || !request_line_is_strict(line, (size_t)size))
        return false;
    while ((size = line_read(&r, &line)) > 0) {
        size_t name = token_size(line, (size_t)size);
        if (name == 0 || name == (size_t)size || line[name] != ':' ||
            has_control(line + name, (size_t)size - name, '\t'))
            return false;
        hosts += name == 4 && strncasecmp(line, "host", 4) == 0;
    }
    return size == 0 && hosts <= 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!server)
        server_start();
    if (size > INPUT_MAX)
        return 0;
    unsigned before = atomic_load(&handled);
    int fd = server_connect();
    (void)raw_send_n(fd, data, size); /* refused on the way, perhaps */
    server_ask();
    unsigned n = atomic_load(&handled) - before;
    (void)close(fd);
    const char *text = (const char *)data;
    assert(n == 0 || leaves_no_trace(text, size) ||
           head_is_strict((struct reader){text, text + size}));
    return 0;
}
