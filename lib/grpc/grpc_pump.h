/* grpc_pump - a connection in cleartext that libcurl can only read so much of
 * at a time.
 *
 * libcurl 7.88 reads from a connection until there is nothing more to read;
 * while a server sends frames without data, and faster than they are read,
 * that never ends, and in cleartext no function of ours is called meanwhile.
 * So libcurl is given one end of a pair of sockets instead, and what the
 * server sends goes into the other end between its turns. */
#ifndef BIGA_LIB_GRPC_GRPC_PUMP_H
#define BIGA_LIB_GRPC_GRPC_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

enum { GRPC_PUMP_FDS = 2 };

struct grpc_pump;
/* From now on `fd`, which is connected, is the end of the pair; -errno. */
int grpc_pump_create(int fd, struct grpc_pump **ret_pump);
/* Closes all but that `fd`. NULL allowed. */
void grpc_pump_destroy(struct grpc_pump *p);
bool grpc_pump_is_on(const struct grpc_pump *p, int fd);

/* Moves what there is, a limited part of it, either way. */
void grpc_pump_turn(struct grpc_pump *p);
/* What to wait for before the next turn. */
void grpc_pump_poll(const struct grpc_pump *p,
                    struct curl_waitfd ret_fds[GRPC_PUMP_FDS]);
/* Bytes from the server so far. */
uint64_t grpc_pump_received(const struct grpc_pump *p);

#endif
