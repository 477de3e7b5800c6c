#include <time.h>

#include "model/base/mem.h"
#include "model/io/httpd_private.h"

/* The client's Finished was taken: from now on it may wait with its first
 * request as long as others between two. */
static int on_finished(gnutls_session_t session, unsigned type, unsigned when,
                       unsigned incoming, const gnutls_datum_t *message)
{
    /* MHD keeps its connection there */
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    struct conn *conn = httpd_conn(connection);
    (void)type;
    (void)when;
    (void)message;
    if (incoming && conn)
        conn_enter(conn, CONN_IDLE);
    return 0;
}

int httpd_no_certificate(gnutls_session_t session,
                         const gnutls_datum_t *authorities, int n_authorities,
                         const gnutls_pk_algorithm_t *algorithms,
                         int n_algorithms, gnutls_pcert_st **ret_certs,
                         unsigned *ret_n, gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)authorities;
    (void)n_authorities;
    (void)algorithms;
    (void)n_algorithms;
    (void)ret_certs;
    (void)ret_n;
    (void)ret_key;
    return -1;
}

static bool asks(const struct httpd_config *config)
{
    return config->tls && !config->anonymous && tls_asks(config->tls);
}

void conn_tls_begin(struct conn *conn, const struct httpd_config *config,
                    struct MHD_Connection *connection)
{
    gnutls_session_t session =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            ->tls_session;
    conn->set = tls_set_take(config->tls);
    atomic_store(&conn->doubtful, asks(config));
    atomic_store(&conn->state, CONN_SHAKING);
    /* where this fails, so does the handshake: MHD has no certificate */
    (void)tls_set_use(conn->set, session, asks(config));
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED,
                                       GNUTLS_HOOK_POST, on_finished);
}

void conn_tls_end(struct conn *conn)
{
    tls_set_give(conn->set); /* MHD has ended the session before */
    free(conn->verdict);
}

bool request_verify(struct httpd_request *rq)
{
    struct tls *tls = rq->h->config.tls;
    struct conn *conn = rq->conn;
    if (!asks(&rq->h->config))
        return true;
    int64_t now = (int64_t)time(NULL);
    if (!conn->verdict || !tls_verdict_holds(tls, conn->verdict, now)) {
        if (!conn->verdict)
            conn->verdict = xcalloc(1, sizeof *conn->verdict);
        tls_verify(tls,
                   MHD_get_connection_info(rq->connection,
                                           MHD_CONNECTION_INFO_GNUTLS_SESSION)
                       ->tls_session,
                   now, conn->verdict);
        atomic_store(&conn->doubtful, conn->verdict->refusal != NULL);
    }
    if (!conn->verdict->refusal)
        return true;
    httpd_refusal(rq, conn->verdict->refusal);
    request_refuse(rq, 403, "%s", conn->verdict->text);
    return false;
}

const struct tls_peer *httpd_peer(const struct httpd_request *rq)
{
    const struct tls_verdict *v = rq->conn->verdict;
    return v && !v->refusal ? &v->peer : NULL;
}
