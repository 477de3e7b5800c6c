#include "lib/http/httpd_upgrade.h"

#include <ctype.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"

enum { HEAD_MAX = 64 << 10 };

struct httpd_upgraded {
    struct stream_link link;
    struct httpd_request *rq;
    struct stream_conn conn;
};

/* Is `token` in a list of them, RFC 9110, 5.6.1? */
static bool list_has(const char *list, const char *token)
{
    size_t len = strlen(token);
    for (const char *p = list; p && *p;) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        const char *next = p + n;
        while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        if (n == len && strncasecmp(p, token, n) == 0)
            return true;
        p = next;
    }
    return false;
}

bool httpd_upgrade_asked(struct httpd_request *rq, const char *protocol)
{
    const char *origin = httpd_header(rq, "Origin");
    if (rq->conn->h2) {
        httpd_fail(rq, 505, "this needs HTTP/1.1, and an upgrade to %s",
                   protocol);
        return false;
    }
    if (!list_has(httpd_header(rq, "Connection"), "upgrade") ||
        !list_has(httpd_header(rq, "Upgrade"), protocol)) {
        httpd_fail(rq, 426,
                   "this needs the headers \"Connection: Upgrade\" and "
                   "\"Upgrade: %s\"",
                   protocol);
        httpd_set_header(rq, "Upgrade", protocol);
        return false;
    }
    /* a browser lets any page open one, wherever it came from */
    if (!origin)
        return true;
    httpd_fail(rq, 403, "requests from pages of %.128s are not allowed",
               origin);
    return false;
}

/* The socket takes it at once: what was sent before has been taken, or else the
 * client would not have asked. */
static bool send_head(struct httpd_upgraded *u, const char *protocol)
{
    const struct httpd_request *rq = u->rq;
    cleanup_str struct str head = STR_INIT(HEAD_MAX);
    str_addf(&head,
             "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
             "Upgrade: %s\r\n",
             protocol);
    for (unsigned i = 0; i < rq->n_headers; i++)
        str_addf(&head, "%s: %s\r\n", rq->headers[i].name,
                 rq->headers[i].value);
    str_add(&head, "\r\n");
    return !head.overflow && stream_conn_write(&u->conn, head.data,
                                               head.size) == (ssize_t)head.size;
}

struct httpd_upgraded *httpd_upgrade(struct httpd_request *rq,
                                     const char *protocol)
{
    if (!httpd_upgrade_asked(rq, protocol))
        return NULL;
    struct httpd_upgraded *u = xcalloc(1, sizeof *u);
    u->rq = rq;
    u->link.fd = rq->conn->fd;
    u->link.alone = true;
    if (!streams_add(&rq->h->streams, &u->link)) {
        free(u);
        streams_refuse(rq);
        return NULL;
    }
    rq->conn->upgraded = u;
    rq->status = 101;
    request_seal(rq);
    stream_conn_adopt(&u->conn, rq->conn->fd, rq->conn->session);
    if (!send_head(u, protocol)) /* the owner reads the end */
        (void)shutdown(u->link.fd, SHUT_RDWR);
    httpd_suspend(rq);
    return u;
}

struct stream_conn *httpd_upgraded_conn(struct httpd_upgraded *u)
{
    return &u->conn;
}

void httpd_upgraded_close(struct httpd_upgraded *u)
{
    streams_remove(&u->rq->h->streams, &u->link);
    (void)shutdown(u->link.fd, SHUT_RDWR);
    httpd_resume(u->rq); /* the server closes, and then frees it */
}
