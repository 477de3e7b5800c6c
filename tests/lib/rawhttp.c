#include "tests/lib/rawhttp.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/base/str.h"

int raw_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        perror("raw_connect");
        abort();
    }
    return fd;
}

void raw_send(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the server may refuse before it has read all */
        p += n;
        size -= (size_t)n;
    }
}

/* Bytes that the answer still lacks: 0 when it is whole. */
static size_t missing(const struct str *in, size_t *ret_body)
{
    const char *end = in->data ? strstr(in->data, "\r\n\r\n") : NULL;
    if (!end)
        return 1;
    *ret_body = (size_t)(end - in->data) + 4;
    const char *length = strcasestr(in->data, "\r\nContent-Length:");
    size_t size = length && length < end
                      ? (size_t)strtoul(length + 17, NULL, 10)
                      : 0;
    size_t have = in->size - *ret_body;
    return have < size ? size - have : 0;
}

struct raw_answer raw_receive(int fd, int ms)
{
    struct raw_answer a = {0};
    cleanup_str struct str in = STR_INIT(STR_MAX_DEFAULT);
    size_t body = 0;
    while (missing(&in, &body) > 0) {
        char chunk[65536];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, ms) <= 0)
            return a;
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            return a;
        str_add_n(&in, chunk, (size_t)n);
    }
    if (sscanf(in.data, "HTTP/1.1 %d", &a.status) != 1)
        return a;
    a.size = in.size - body;
    a.body = xmemdup(in.data + body, a.size + 1);
    return a;
}

struct raw_answer raw_call(uint16_t port, const char *method, const char *path,
                           const void *body, size_t size)
{
    cleanup_fd int fd = raw_connect(port);
    cleanup_str struct str head = STR_INIT(8192);
    str_addf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path);
    if (body)
        str_addf(&head,
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                 size);
    str_add(&head, "\r\n");
    raw_send(fd, head.data, head.size);
    if (body)
        raw_send(fd, body, size);
    return raw_receive(fd, 30000);
}
