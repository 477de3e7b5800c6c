/* The sockets that libcurl has made. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/grpc/grpc_private.h"
#include "lib/grpc/grpc_pump.h"
#include "lib/http/http_curl.h"

enum {
    USER_TIMEOUT_MS = 15000, /* of a server that is gone without a word */
};

/* A connection that is dead is noticed although nothing is sent. */
static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    struct grpc *g = ctx;
    unsigned ms = USER_TIMEOUT_MS;
    g->refused = g->round;
    if (g->refused)
        return CURL_SOCKOPT_ERROR;
    for (size_t i = 0; i < GRPC_FDS_MAX; i++)
        if (g->fds[i] < 0) {
            g->fds[i] = fd;
            break;
        }
    (void)purpose; /* the only one: a connection of ours */
    /* refused by unix sockets, which need none */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return CURL_SOCKOPT_OK;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    struct grpc *g = ctx;
    for (size_t i = 0; i < GRPC_FDS_MAX; i++)
        if (g->fds[i] == fd)
            g->fds[i] = -1;
    if (g->pump && grpc_pump_is_on(g->pump, fd)) {
        grpc_pump_destroy(g->pump);
        g->pump = NULL;
    }
    return close(fd);
}

CURLcode grpc_socket_set_handle(struct grpc *g)
{
    CURLcode code = CURLE_OK;
    HTTP_CURL_SET(code, g->curl, CURLOPT_SOCKOPTFUNCTION, set_socket);
    HTTP_CURL_SET(code, g->curl, CURLOPT_SOCKOPTDATA, g);
    HTTP_CURL_SET(code, g->curl, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    HTTP_CURL_SET(code, g->curl, CURLOPT_CLOSESOCKETDATA, g);
    return code;
}

int grpc_socket_fd(const struct grpc *g)
{
    for (size_t i = 0; i < GRPC_FDS_MAX; i++)
        if (g->fds[i] >= 0)
            return g->fds[i];
    return -1;
}

bool grpc_socket_is_open(const struct grpc *g)
{
    return grpc_socket_fd(g) >= 0;
}

void grpc_local_address(const struct grpc *g, char ret_text[GRPC_ADDRESS_MAX])
{
    memcpy(ret_text, g->own, sizeof g->own);
}

void grpc_socket_cut(const struct grpc *g)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    for (size_t i = 0; !g->to.socket && i < GRPC_FDS_MAX; i++)
        if (g->fds[i] >= 0)
            (void)connect(g->fds[i], &nowhere, sizeof nowhere);
}

int grpc_socket_connected(struct grpc *g)
{
    int e = 0;
    for (size_t i = 0; !g->to.tls && !g->pump && i < GRPC_FDS_MAX; i++)
        if (g->fds[i] >= 0)
            e = grpc_pump_create(g->fds[i], &g->pump);
    return g->pump ? 0 : e;
}
