/* rawhttp - HTTP as bytes on a socket, for tests that a well-behaved client
 * could not make. */
#ifndef BIGA_TESTS_RAWHTTP_H
#define BIGA_TESTS_RAWHTTP_H

#include <stddef.h>
#include <stdint.h>

/* A connection to 127.0.0.1:port; aborts when there is none. */
int raw_connect(uint16_t port);
void raw_send(int fd, const void *data, size_t size);

struct raw_answer {
    int status; /* 0: the connection ended without an answer */
    char *body; /* NUL-terminated; free it */
    size_t size;
};
/* Reads one answer (with Content-Length), waiting at most `ms`. */
struct raw_answer raw_receive(int fd, int ms);

/* One request on a connection of its own; `body` NULL for none. */
struct raw_answer raw_call(uint16_t port, const char *method, const char *path,
                           const void *body, size_t size);

#endif
