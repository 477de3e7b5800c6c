#include "tests/lib/http/rawclient.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/clock.h"

void raw_reply_fini(struct raw_reply *r)
{
    str_fini(&r->head);
    str_fini(&r->body);
}

int raw_connect(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0) {
        perror("raw_connect");
        abort();
    }
    return fd;
}

static int bound(uint16_t *port, int reuse)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) < 0 ||
        bind(fd, (struct sockaddr *)&addr, size) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &size) < 0) {
        perror("bind");
        abort();
    }
    *port = ntohs(addr.sin_port);
    return fd;
}

int raw_bind(uint16_t *port)
{
    return bound(port, 1);
}

int raw_listen(uint16_t *port)
{
    int fd = raw_bind(port);
    if (listen(fd, 64) < 0) {
        perror("raw_listen");
        abort();
    }
    return fd;
}

int raw_nowhere(uint16_t *ret_port)
{
    *ret_port = 0;
    return bound(ret_port, 0); /* reused, it would be somebody else's, too */
}

bool raw_send_n(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
        if (n < 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

bool raw_send(int fd, const char *text)
{
    return raw_send_n(fd, text, strlen(text));
}

static ssize_t read_some(int fd, char *data, size_t size, int64_t until)
{
    int64_t left = until - clock_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (left <= 0 || poll(&p, 1, (int)left) <= 0)
        return -1;
    return recv(fd, data, size, 0);
}

const char *raw_header(const struct raw_reply *r, const char *name,
                       char *buffer, size_t size)
{
    size_t len = strlen(name);
    const char *p = strstr(str_text(&r->head), "\r\n");
    buffer[0] = '\0';
    for (; p; p = strstr(p, "\r\n")) {
        p += 2;
        if (strncasecmp(p, name, len) != 0 || p[len] != ':')
            continue;
        p += len + 1 + strspn(p + len + 1, " ");
        (void)snprintf(buffer, size, "%.*s", (int)strcspn(p, "\r"), p);
        break;
    }
    return buffer;
}

int raw_read(int fd, bool no_body, struct raw_reply *ret_reply)
{
    struct raw_reply *r = ret_reply;
    int64_t until = clock_ms() + RAW_PATIENCE_MS;
    char c, chunk[65536], length[32];
    if (!r->head.max) {
        str_init(&r->head, STR_MAX_DEFAULT);
        str_init(&r->body, STR_MAX_DEFAULT);
    }
    str_reset(&r->head);
    str_reset(&r->body);
    r->status = 0;
    while (r->head.size < 4 ||
           memcmp(r->head.data + r->head.size - 4, "\r\n\r\n", 4) != 0) {
        if (read_some(fd, &c, 1, until) != 1)
            return 0;
        str_add_c(&r->head, c);
    }
    int status = 0;
    if (sscanf(r->head.data, "HTTP/1.1 %d", &status) != 1)
        return 0;
    size_t left = strtoul(
        raw_header(r, "Content-Length", length, sizeof length), NULL, 10);
    while (!no_body && status != 304 && left > 0) {
        ssize_t n = read_some(fd, chunk,
                              left < sizeof chunk ? left : sizeof chunk, until);
        if (n <= 0)
            return 0;
        str_add_n(&r->body, chunk, (size_t)n);
        left -= (size_t)n;
    }
    return r->status = status;
}

bool raw_closed_within(int fd, int ms)
{
    int64_t until = clock_ms() + ms;
    char chunk[4096];
    ssize_t n;
    do {
        errno = 0;
        n = read_some(fd, chunk, sizeof chunk, until);
    } while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

int raw_call(uint16_t port, const char *method, const char *target,
             const char *headers, const char *body, struct raw_reply *ret_reply)
{
    struct str text = STR_INIT(STR_MAX_DEFAULT);
    str_addf(&text, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, target, headers);
    if (body)
        str_addf(&text, "Content-Length: %zu\r\n", strlen(body));
    str_add(&text, "\r\n");
    if (body)
        str_add(&text, body);
    int fd = raw_connect(port);
    (void)raw_send_n(fd, text.data, text.size); /* a refusal may come early */
    int status = raw_read(fd, strcmp(method, "HEAD") == 0, ret_reply);
    str_fini(&text);
    (void)close(fd);
    return status;
}
