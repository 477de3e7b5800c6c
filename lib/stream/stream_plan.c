#include "lib/stream/stream_plan.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

void stream_plan_destroy(void *plan)
{
    struct stream_plan *p = plan;
    if (!p)
        return;
    stream_creds_destroy(p->creds);
    free(p->remote);
    free(p->container);
    free(p->host);
    free(p);
}

static int name_check(const char *what, const char *name, struct error *err)
{
    if (!name || !*name || strlen(name) > STREAM_NAME_MAX)
        return error_set(err, EINVAL,
                         "stream: %s is \"%.64s\", must have 1 to %d bytes",
                         what, name ? name : "", STREAM_NAME_MAX);
    return 0;
}

static int plain_check(const struct stream_plan_ask *what,
                       const struct stream_url *url, struct error *err)
{
    if (url->tls && !what->ca && !what->system_ca)
        return error_set(err, EKEYREJECTED,
                         "%s serves streams over TLS, and no authority of its "
                         "certificate is known: its endpoint has none",
                         what->remote);
    if (!url->tls && !what->plaintext)
        return error_set(err, EKEYREJECTED,
                         "%s serves streams in cleartext: set its "
                         "enable_tls_streaming, as deploy/card-setup does",
                         what->remote);
    return 0;
}

/* The addresses of the endpoint's host with the port of the stream. */
static int resolve(struct stream_plan *p, const char *host, struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char text[8];
    (void)snprintf(text, sizeof text, "%u", p->url.port);
    int r = getaddrinfo(host, text, &hints, &found);
    if (r != 0 || !found)
        return error_set(err, EHOSTUNREACH, "stream: host \"%.64s\": %s", host,
                         r ? gai_strerror(r) : "has no address");
    for (const struct addrinfo *a = found; a && p->n_to < STREAM_ADDRESSES_MAX;
         a = a->ai_next)
        memcpy(&p->to[p->n_to++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int check(const struct stream_plan_ask *what, struct stream_url *url,
                 struct error *err)
{
    int r = name_check("remote", what->remote, err);
    if (r == 0)
        r = name_check("container", what->container, err);
    if (r == 0)
        r = name_check("host", what->host, err);
    if (r == 0)
        r = stream_url_parse(what->url, url, err);
    if (r == 0)
        r = stream_url_is_at(url, what->host, err);
    return r == 0 ? plain_check(what, url, err) : r;
}

int stream_plan_create(const struct stream_plan_ask *what,
                       struct stream_plan **ret_plan, struct error *err)
{
    cleanup_with(stream_plan) struct stream_plan *p = xcalloc(1, sizeof *p);
    const struct stream_creds_config config = {what->host, what->ca, what->cert,
                                               what->key};
    int r = check(what, &p->url, err);
    if (r == 0 && p->url.tls)
        r = stream_creds_create(&config, &p->creds, err);
    if (r == 0)
        r = resolve(p, what->host, err);
    if (r < 0)
        return r;
    p->remote = xstrdup(what->remote);
    p->container = xstrdup(what->container);
    p->host = xstrdup(what->host);
    *ret_plan = steal(&p);
    return 0;
}
