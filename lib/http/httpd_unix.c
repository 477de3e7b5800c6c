#include <string.h>

#include "lib/http/httpd_private.h"

#define SCHEME "unix:"

const char *address_unix(const char *listen)
{
    return strncmp(listen, SCHEME, strlen(SCHEME)) == 0
               ? listen + strlen(SCHEME)
               : NULL;
}

void conn_unix_begin(struct conn *conn)
{
    conn->local = true;
    conn->uid = unix_peer(conn->fd);
}

bool request_trust(struct httpd_request *rq)
{
    const struct conn *conn = rq->conn;
    uid_t own = geteuid();
    if (!conn->local || unix_peer_is_ours(conn->uid))
        return true;
    rq->refusal = "uid";
    request_refuse(rq, 403,
                   "this socket answers the user with the id %u%s, not the "
                   "one with %u",
                   (unsigned)own, own ? " and root" : "", (unsigned)conn->uid);
    return false;
}
