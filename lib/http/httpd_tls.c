#include "lib/base/mem.h"
#include "lib/http/httpd_private.h"
#include "lib/io/clock.h"

bool config_asks(const struct httpd_config *config)
{
    return config->tls && !config->anonymous && tls_asks(config->tls);
}

void conn_tls_begin(struct conn *conn, const struct httpd_config *config,
                    gnutls_session_t session)
{
    conn->session = session;
    conn->set = tls_set_take(config->tls);
    atomic_store(&conn->doubtful, config_asks(config));
    atomic_store(&conn->state, CONN_SHAKING);
    /* where this fails, so does the handshake: there is no certificate */
    (void)tls_set_use(conn->set, session, config_asks(config));
}

void conn_tls_end(struct conn *conn)
{
    tls_set_give(conn->set); /* the session has ended before */
    free(conn->verdict);
}

bool request_verify(struct httpd_request *rq)
{
    struct tls *tls = rq->h->config.tls;
    struct conn *conn = rq->conn;
    if (!config_asks(&rq->h->config))
        return true;
    int64_t now = clock_wall_s();
    if (!conn->verdict || !tls_verdict_holds(tls, conn->verdict, now)) {
        if (!conn->verdict)
            conn->verdict = xcalloc(1, sizeof *conn->verdict);
        tls_verify(tls, conn->session, now, conn->verdict);
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
