#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"

enum { BACKLOG = 1024 };

static int listen_on(const struct addrinfo *ai, int *ret_fd)
{
    const int on = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* accepted connections inherit it */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int r = -errno;
        (void)close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* Split "HOST:PORT" or "[V6]:PORT". */
static int address_split(const char *text, char host[256], const char **port,
                         struct error *err)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool bracketed = size >= 2 && text[0] == '[' && text[size - 1] == ']';
    if (bracketed) {
        text++;
        size -= 2;
    }
    /* getaddrinfo keeps the low 16 bits of any number */
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (!digits || digits > 5 || colon[1 + digits] || size > 255 ||
        strtoul(colon + 1, NULL, 10) > UINT16_MAX ||
        (!bracketed && memchr(text, ':', size)))
        return error_set(err, EINVAL,
                         "cannot listen on \"%.256s\": must be "
                         "ADDRESS:PORT or [ADDRESS]:PORT, PORT 0 to 65535",
                         text);
    memcpy(host, text, size);
    host[size] = '\0';
    *port = colon + 1;
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)address)->sin6_addr);
    return address->sa_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >>
                   24 ==
               IN_LOOPBACKNET;
}

int address_listen(const char *text, bool loopback, int *ret_fd,
                   struct error *err)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *found = NULL;
    if (address_split(text, host, &port, err))
        return -EINVAL;
    int r = getaddrinfo(*host ? host : NULL, port, &hints, &found);
    if (r)
        return error_set(err, EINVAL, "cannot listen on \"%s\": %s", text,
                         gai_strerror(r));
    r = -EADDRNOTAVAIL;
    for (const struct addrinfo *ai = found; ai && r; ai = ai->ai_next)
        r = loopback && !is_loopback(ai->ai_addr) ? -EPERM
                                                  : listen_on(ai, ret_fd);
    freeaddrinfo(found);
    if (r == -EPERM && loopback)
        return error_set(err, EPERM, "\"%s\" is not a loopback address", text);
    return r ? error_errno(err, -r, "cannot listen on \"%s\"", text) : 0;
}

uint16_t address_port(int fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t size = sizeof addr;
    /* it listens, so it has one */
    (void)getsockname(fd, (struct sockaddr *)&addr, &size);
    return ntohs(addr.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&addr)->sin6_port
                     : ((struct sockaddr_in *)&addr)->sin_port);
}
