#include "lib/grpc/grpc_private.h"

#include <ctype.h>
#include <string.h>
#include <sys/un.h>

enum { HOST_MAX = 255 };

static int bad_endpoint(const struct grpc_config *config, struct error *err)
{
    return error_set(err, EINVAL,
                     "endpoint \"%.100s\" is neither tcp://HOST:PORT nor "
                     "unix:///PATH",
                     config->endpoint);
}

/* HOST is a name, an address, or one of version 6 in brackets. */
static bool host_and_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t host = colon ? (size_t)(colon - text) : 0;
    if (host == 0 || host > HOST_MAX)
        return false;
    bool brackets = text[0] == '[' && text[host - 1] == ']';
    for (size_t i = brackets ? 1 : 0; i < host - (brackets ? 1 : 0); i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '.' &&
            text[i] != '-' && text[i] != '_' && !(brackets && text[i] == ':'))
            return false;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits < 1 || digits > 5 || colon[1 + digits])
        return false;
    long port = strtol(colon + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

int grpc_endpoint_read(const struct grpc_config *c,
                       struct grpc_endpoint *ret_endpoint, struct error *err)
{
    struct grpc_endpoint e = {0};
    if (!c->endpoint)
        return error_set(err, EINVAL, "no endpoint is given");
    if (strncmp(c->endpoint, "unix://", 7) == 0) {
        struct sockaddr_un where;
        e.socket = c->endpoint + 7;
        if (e.socket[0] != '/' || strlen(e.socket) >= sizeof where.sun_path)
            return bad_endpoint(c, err);
        e.base = xstrdup("http://localhost");
        *ret_endpoint = e;
        return 0;
    }
    if (strncmp(c->endpoint, "tcp://", 6) != 0 ||
        !host_and_port(c->endpoint + 6))
        return bad_endpoint(c, err);
    if (c->plaintext && (c->ca || c->cert || c->key))
        return error_set(err, EINVAL,
                         "%s: plaintext, and files for TLS are given: "
                         "either of them",
                         c->endpoint);
    if (!c->plaintext && (!c->ca || !c->cert || !c->key))
        return error_set(err, EINVAL,
                         "%s: ca, cert and key are needed, all three: who "
                         "reaches a container runtime owns its machine",
                         c->endpoint);
    e.tls = !c->plaintext;
    e.base = xasprintf("http%s://%s", e.tls ? "s" : "", c->endpoint + 6);
    *ret_endpoint = e;
    return 0;
}
