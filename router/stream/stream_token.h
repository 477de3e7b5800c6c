/* stream_token - tickets for streams that were announced and not yet begun:
 * each is random, good once and for STREAM_TOKEN_MS.
 * Not locked: its owner's lock guards it.  Time is clock_ms(). */
#ifndef BIGA_ROUTER_STREAM_STREAM_TOKEN_H
#define BIGA_ROUTER_STREAM_STREAM_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    STREAM_TOKEN_BYTES = 32, /* of getrandom() */
    STREAM_TOKEN_LEN = 2 * STREAM_TOKEN_BYTES,
    STREAM_TOKEN_MS = 60 * 1000,
    STREAM_TOKENS_MAX = 1024, /* that wait at one time */
};
struct stream_tokens; /* with what each stands for, which they own */
typedef void stream_token_destroy_f(void *value);
struct stream_tokens *stream_tokens_create(stream_token_destroy_f *destroy);
void stream_tokens_destroy(struct stream_tokens *t); /* NULL allowed */
/* A new ticket for `value`, which is owned from then on.  -ENOSPC: there are
 * STREAM_TOKENS_MAX that still hold; -EIO: the kernel gave no random bytes;
 * `value` is the caller's as before. */
int stream_tokens_add(struct stream_tokens *t, void *value,
                      char ret_text[STREAM_TOKEN_LEN + 1], struct error *err);
/* What the ticket stands for, now the caller's; NULL: there is none of that
 * text, it was used, or is too old.  The time that it takes tells nothing. */
void *stream_tokens_take(struct stream_tokens *t, const char *text, size_t len);
/* Those for which `wanted` is true are no more. */
typedef bool stream_token_wanted_f(const void *value, const void *ctx);
void stream_tokens_revoke(struct stream_tokens *t,
                          stream_token_wanted_f *wanted, const void *ctx);
/* Those that are too old are no more.  When the next one will be: clock_ms(),
 * INT64_MAX never. */
int64_t stream_tokens_expire(struct stream_tokens *t);
size_t stream_tokens_n(const struct stream_tokens *t);

#endif
