/* stream_head - the heads of a streaming request and of its answer, HTTP/1.1
 * with an upgrade to SPDY/3.1 or WebSocket, read with caps and written anew.
 * Pure.
 *
 * Either side gets only fields that streaming needs.  The kubelet passes on
 * what its own caller sent: credentials among it, which are not the remote's
 * business; and the remote's answer is not to lead the kubelet elsewhere. */
#ifndef BIGA_LIB_STREAM_STREAM_HEAD_H
#define BIGA_LIB_STREAM_STREAM_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/stream/stream_url.h"

enum {
    STREAM_HEAD_MAX = 16 << 10,  /* bytes, with the empty line */
    STREAM_FIELDS_MAX = 64,      /* of one head */
    STREAM_PROTOCOL_MAX = 64,    /* of Upgrade, and of what is spoken then */
    STREAM_REFUSAL_MAX = 2 << 10 /* bytes of an answer of our own */
};

/* Where a head ends: behind its empty line, 0 when that has not come yet.
 * `seen`: so many bytes were looked at before. */
size_t stream_head_end(const char *data, size_t size, size_t seen);

/* A field, in the caller's bytes. */
struct stream_field {
    const char *name, *value;
    size_t name_len, value_len; /* without the blanks around the value */
};
struct stream_head {
    const char *words[3]; /* of the first line; the third is its rest */
    size_t lens[3];
    size_t n_fields;
    struct stream_field fields[STREAM_FIELDS_MAX];
};

struct stream_request {
    struct stream_head head;
    const char *token, *query; /* of "/TOKEN[?QUERY]"; query NULL: none */
    size_t token_len, query_len;
    char upgrade[STREAM_PROTOCOL_MAX]; /* "SPDY/3.1" or "websocket" */
};
/* `size` is what stream_head_end() said; what is returned points into `data`.
 * -EINVAL: against RFC 9112, or two lengths or targets in one; -EPROTONOSUPPORT:
 * an upgrade to something else, or none; -EOPNOTSUPP: neither GET nor POST;
 * -E2BIG: too many fields; -EFBIG: it has a body. */
int stream_request_read(const char *data, size_t size,
                        struct stream_request *ret_request, struct error *err);
/* The head that the remote gets, for `url` at `host`; the caller's query only
 * where the URL has none. */
void stream_request_write(const struct stream_request *request,
                          const struct stream_url *url, const char *host,
                          struct str *out);

struct stream_answer {
    struct stream_head head;
    int status;      /* 101, or 400 to 599 */
    bool chunked;    /* of other answers: so is the body; */
    uint64_t length; /* or so long; UINT64_MAX: until the connection ends */
    /* Of 101: what is spoken then, "v5.channel.k8s.io"; "" not told. */
    char protocol[STREAM_PROTOCOL_MAX];
};
/* As stream_request_read(); -EPROTO for all that is wrong with it, a status
 * that does not belong there, and an upgrade to other than `upgrade`. */
int stream_answer_read(const char *data, size_t size, const char *upgrade,
                       struct stream_answer *ret_answer, struct error *err);
/* The head that the kubelet gets. */
void stream_answer_write(const struct stream_answer *answer,
                         const char *upgrade, struct str *out);

/* An answer of our own, which ends the connection: 400 to 599, with a Status
 * that clients of Kubernetes show. */
void stream_refusal_write(int status, const char *text, struct str *out);

#endif
