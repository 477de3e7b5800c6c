#include "deploy/examples/allreduce/arhosts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_host(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && !memchr(".-_:", text[i], 4))
            return false;
    return size > 0 && size <= AR_HOST_MAX;
}

/* Of one word behind the name. */
static int read_word(const char *word, size_t size, unsigned line,
                     size_t *slots, struct error *err)
{
    static const char slots_is[] = "slots=", most_is[] = "max_slots=";
    size_t value = 0, at = sizeof slots_is - 1;
    if (size > sizeof most_is - 1 &&
        memcmp(word, most_is, sizeof most_is - 1) == 0)
        return 0;
    if (size <= at || size > at + 3 || memcmp(word, slots_is, at) != 0)
        return error_set(err, EINVAL,
                         "line %u: is \"%.*s\", must be slots=N or "
                         "max_slots=N",
                         line, (int)(size < 40 ? size : 40), word);
    for (; at < size; at++) {
        if (!isdigit((unsigned char)word[at]))
            return error_set(err, EINVAL, "line %u: slots is no number", line);
        value = 10 * value + (size_t)(word[at] - '0');
    }
    if (value < 1 || value > AR_RANKS_MAX)
        return error_set(err, EINVAL, "line %u: slots is %zu, must be 1 to %d",
                         line, value, AR_RANKS_MAX);
    *slots = value;
    return 0;
}

static size_t word_size(const char *at, const char *end)
{
    const char *p = at;
    while (p < end && *p != ' ' && *p != '\t')
        p++;
    return (size_t)(p - at);
}

static int read_line(const char *at, const char *end, unsigned line,
                     struct ar_hosts *hosts, struct error *err)
{
    const char *name = NULL;
    size_t name_size = 0, slots = 1;
    while (at < end) {
        size_t n = word_size(at, end);
        int r = 0;
        if (n && *at == '#')
            break;
        if (n && name)
            r = read_word(at, n, line, &slots, err);
        else if (n) {
            name = at;
            name_size = n;
        }
        if (r < 0)
            return r;
        at += n + (at + n < end);
    }
    if (!name)
        return 0;
    if (!is_host(name, name_size))
        return error_set(err, EINVAL,
                         "line %u: the host must be a name or address of up to "
                         "%d bytes",
                         line, AR_HOST_MAX);
    if (slots > AR_RANKS_MAX - hosts->n)
        return error_set(err, EINVAL, "line %u: over %d ranks", line,
                         AR_RANKS_MAX);
    for (; slots; slots--) {
        memcpy(hosts->of[hosts->n], name, name_size);
        hosts->of[hosts->n++][name_size] = '\0';
    }
    return 0;
}

int arhosts_read(const char *text, size_t size, struct ar_hosts *ret_hosts,
                 struct error *err)
{
    const char *end = text + size;
    ret_hosts->n = 0;
    if (size > AR_HELLO_MAX)
        return error_set(err, EINVAL, "over %d bytes", AR_HELLO_MAX);
    for (unsigned line = 1; text < end; line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        int r = read_line(text, stop ? stop : end, line, ret_hosts, err);
        if (r < 0)
            return r;
        text = stop ? stop + 1 : end;
    }
    return ret_hosts->n ? 0 : error_set(err, EINVAL, "has no host");
}
