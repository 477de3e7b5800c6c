#include "router/stream/stream_token.h"

#include <string.h>
#include <sys/random.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"

struct ticket {
    char text[STREAM_TOKEN_LEN];
    int64_t due_ms;
    void *value;
};

/* In the order in which they were given, so the oldest is the first. */
struct stream_tokens {
    stream_token_destroy_f *destroy;
    struct ticket *list;
    size_t n, cap;
};

struct stream_tokens *stream_tokens_create(stream_token_destroy_f *destroy)
{
    struct stream_tokens *t = xcalloc(1, sizeof *t);
    t->destroy = destroy;
    return t;
}

void stream_tokens_destroy(struct stream_tokens *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        t->destroy(t->list[i].value);
    free(t->list);
    free(t);
}

static void forget(struct stream_tokens *t, size_t i)
{
    t->n--;
    memmove(&t->list[i], &t->list[i + 1], (t->n - i) * sizeof *t->list);
}

int64_t stream_tokens_expire(struct stream_tokens *t)
{
    int64_t now = clock_ms();
    while (t->n > 0 && t->list[0].due_ms <= now) {
        t->destroy(t->list[0].value);
        forget(t, 0);
    }
    return t->n > 0 ? t->list[0].due_ms : INT64_MAX;
}

static int random_text(char text[STREAM_TOKEN_LEN], struct error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[STREAM_TOKEN_BYTES];
    /* so few bytes come in one piece, or not at all (getrandom(2)) */
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, EIO, "no random bytes for a stream's ticket");
    for (size_t i = 0; i < sizeof bytes; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return 0;
}

int stream_tokens_add(struct stream_tokens *t, void *value,
                      char ret_text[STREAM_TOKEN_LEN + 1], struct error *err)
{
    struct ticket new = {.value = value};
    (void)stream_tokens_expire(t);
    if (t->n >= STREAM_TOKENS_MAX)
        return error_set(err, ENOSPC,
                         "%d streams were asked for and not begun within the "
                         "last %d s: no more until one is",
                         STREAM_TOKENS_MAX, STREAM_TOKEN_MS / 1000);
    int r = random_text(new.text, err);
    if (r < 0)
        return r;
    new.due_ms = clock_ms() + STREAM_TOKEN_MS;
    t->list = xgrow(t->list, t->n, &t->cap, sizeof *t->list);
    t->list[t->n++] = new;
    memcpy(ret_text, new.text, sizeof new.text);
    ret_text[STREAM_TOKEN_LEN] = '\0';
    return 0;
}

/* Looks at every byte, wherever the first difference is. */
static bool same(const char *a, const char *b)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < STREAM_TOKEN_LEN; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

void *stream_tokens_take(struct stream_tokens *t, const char *text, size_t len)
{
    size_t found = SIZE_MAX;
    (void)stream_tokens_expire(t);
    for (size_t i = 0; len == STREAM_TOKEN_LEN && i < t->n; i++)
        if (same(t->list[i].text, text))
            found = i;
    if (found == SIZE_MAX)
        return NULL;
    void *value = t->list[found].value;
    forget(t, found);
    return value;
}

void stream_tokens_revoke(struct stream_tokens *t,
                          stream_token_wanted_f *wanted, const void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (wanted(t->list[i].value, ctx))
            t->destroy(t->list[i].value);
        else
            t->list[n++] = t->list[i];
    }
    t->n = n;
}

size_t stream_tokens_n(const struct stream_tokens *t)
{
    return t->n;
}
