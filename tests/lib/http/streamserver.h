/* streamserver - what a container runtime has to serve exec, attach and
 * port-forward: switches protocols and then does as it is told, well or badly.
 * A thread for each connection; every wait aborts after five minutes. */
#ifndef BIGA_TESTS_LIB_HTTP_STREAMSERVER_H
#define BIGA_TESTS_LIB_HTTP_STREAMSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"

/* What it does when it has read the head of a request. */
enum stream_server_manner {
    SERVES_ECHO,   /* switches, sends back what comes; at its end "end" */
    SERVES_SWAP,   /* switches, takes all until its end, then sends as much */
    SERVES_ANSWER, /* sends `answer`, reads until the end */
    SERVES_CLOSE,  /* sends `answer` and closes */
    SERVES_RESET,  /* sends `answer`, waits for a byte, and resets */
};

struct stream_server_config {
    enum stream_server_manner manner;
    const char *answer;    /* NULL: it switches as it was asked to */
    const char *cert_file; /* NULL: plain */
    const char *key_file, *client_ca_file; /* the latter NULL: none is asked */
};

struct stream_server;
/* `config` is copied, its texts are not.  Aborts when it cannot be had. */
struct stream_server *
stream_server_start(const struct stream_server_config *config);
/* After all its clients have gone. */
void stream_server_stop(struct stream_server *s);
uint16_t stream_server_port(const struct stream_server *s);
/* Wait until so many connections have come to an end, since the start. */
void stream_server_ended(struct stream_server *s, unsigned n);
/* Wait until so many have sent a head of a request. */
void stream_server_asked(struct stream_server *s, unsigned n);
/* The head of the last request; copied. */
void stream_server_head(struct stream_server *s, struct str *ret_head);

#endif
