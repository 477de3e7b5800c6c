/* grpc_private - what the files of grpc share: grpc.c carries calls over
 * libcurl, grpc_endpoint.c says where to, grpc_fault.c why one failed. */
#ifndef BIGA_ADVERTISER_CRI_GRPC_PRIVATE_H
#define BIGA_ADVERTISER_CRI_GRPC_PRIVATE_H

#include <curl/curl.h>

#include "advertiser/cri/grpc.h"

struct grpc_endpoint {
    const char *socket; /* its path, borrowed; NULL: TCP */
    bool tls;
    char *base; /* "https://HOST:PORT"; to be freed */
};
/* -EINVAL: it is none, or what it needs or cannot have is not as it should
 * be. */
int grpc_endpoint_read(const struct grpc_config *config,
                       struct grpc_endpoint *ret_endpoint, struct error *err);

/* How a transfer failed, as libcurl tells it. */
struct grpc_fault {
    CURLcode code;
    const char *reason; /* its text, "" none */
    long verify;        /* of OpenSSL: X509_V_ERR_… of the server's chain */
    long os_errno;      /* of the connection */
    bool connected;     /* there was a connection, with TLS if any */
    unsigned deadline_ms;
};
/* Fills in `err`, without the names of endpoint and method; -errno. */
int grpc_fault_tell(const struct grpc_config *config,
                    const struct grpc_fault *fault, struct error *err);

/* With TLS 1.3 a server judges our certificate when we take the connection
 * for made and have begun to send: then its refusal drowns in a reset.  So
 * connect once more, send nothing, and hear what it has to say.  `curl` is
 * the handle of the call; `ms` is the time to connect, and then to listen;
 * the text stays "" when the server refuses nothing.
 */
void grpc_fault_listen(CURL *curl, unsigned ms,
                       char ret_reason[CURL_ERROR_SIZE]);
/* Is this fault one that may hide such a refusal: the connection was lost? */
bool grpc_fault_lost(const struct grpc_fault *fault);

#endif
