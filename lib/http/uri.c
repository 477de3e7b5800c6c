#include "lib/http/uri.h"

#include <string.h>

#include "lib/base/base64.h"

enum piece { PIECE_PATH, PIECE_QUERY, PIECE_LINES /* with tabs, too */ };

/* Decode `size` bytes at `from` to `*to`, NUL-terminate, and move `*to`
 * behind. */
static int piece_decode(const char *from, size_t size, enum piece kind,
                        char **to, struct error *err)
{
    char *out = *to;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)from[i];
        if (c == '%') {
            int high = size - i > 2 ? hex_digit(from[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(from[i + 2]) : -1;
            if (low < 0)
                return error_set(err, EINVAL,
                                 "\"%%\" is not followed by two "
                                 "hexadecimal digits");
            c = (unsigned char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && kind != PIECE_PATH) {
            c = ' ';
        }
        bool line = kind == PIECE_LINES && (c == '\n' || c == '\t');
        if ((c < 0x20 && !line) || c == 0x7f)
            return error_set(err, EINVAL,
                             "control character %%%02X is not allowed", c);
        *out++ = (char)c;
    }
    *out++ = '\0';
    *to = out;
    return 0;
}

static int path_split(struct uri *u, size_t size, char **to, struct error *err)
{
    size_t at = 1;
    while (at <= size) {
        const char *slash = memchr(u->path + at, '/', size - at);
        size_t end = slash ? (size_t)(slash - u->path) : size;
        if (u->n_segments == URI_SEGMENTS_MAX)
            return error_set(err, EINVAL, "path has more than %d segments",
                             URI_SEGMENTS_MAX);
        u->segments[u->n_segments] = *to;
        u->offsets[u->n_segments++] = at;
        if (piece_decode(u->path + at, end - at, PIECE_PATH, to, err))
            return error_wrap(err, "path");
        at = end + 1;
    }
    return 0;
}

static int param_add(struct uri *u, const char *from, size_t size, char **to,
                     struct error *err)
{
    const char *equals = memchr(from, '=', size);
    size_t name_size = equals ? (size_t)(equals - from) : size;
    if (u->n_params == URI_PARAMS_MAX)
        return error_set(err, EINVAL, "query has more than %d parameters",
                         URI_PARAMS_MAX);
    const char *name = *to;
    if (piece_decode(from, name_size, PIECE_QUERY, to, err))
        return error_wrap(err, "query");
    bool repeats = u->repeats && strcmp(name, u->repeats) == 0;
    if (!repeats && uri_param(u, name))
        return error_set(err, EINVAL,
                         "query parameter \"%.64s\" is given "
                         "twice",
                         name);
    const char *value = *to;
    if (equals) {
        if (piece_decode(equals + 1, size - name_size - 1,
                         repeats ? PIECE_LINES : PIECE_QUERY, to, err))
            return error_wrap(err, "query parameter \"%.64s\"", name);
    } else {
        value = name + strlen(name); /* "" */
    }
    u->params[u->n_params].name = name;
    u->params[u->n_params++].value = value;
    return 0;
}

int uri_parse(const char *target, struct uri *ret_uri, struct error *err)
{
    struct uri *u = ret_uri;
    size_t size = strnlen(target, URI_MAX + 1);
    u->path[0] = '\0';
    u->n_segments = u->n_params = 0;
    if (size > URI_MAX)
        return error_set(err, ENAMETOOLONG,
                         "request target is longer than %d bytes", URI_MAX);
    if (target[0] != '/')
        return error_set(err, EINVAL, "request target must begin with \"/\"");
    const char *mark = memchr(target, '?', size);
    size_t path_size = mark ? (size_t)(mark - target) : size;
    memcpy(u->path, target, path_size);
    u->path[path_size] = '\0';

    char *to = u->text;
    int r = path_split(u, path_size, &to, err);
    const char *p = mark ? mark + 1 : target + size, *end = target + size;
    while (!r && p < end) {
        const char *amp = memchr(p, '&', (size_t)(end - p));
        const char *stop = amp ? amp : end;
        if (stop > p)
            r = param_add(u, p, (size_t)(stop - p), &to, err);
        p = stop + 1;
    }
    return r;
}

bool uri_match(const struct uri *u, const char *pattern,
               const char *ret_args[URI_ARGS_MAX])
{
    size_t n_args = 0, i = 0;
    const char *p = pattern;
    for (size_t a = 0; a < URI_ARGS_MAX; a++)
        ret_args[a] = "";
    for (; *p == '/'; i++) {
        size_t size = strcspn(++p, "/");
        if (i >= u->n_segments)
            return false;
        const char *segment = u->segments[i];
        if (size == 2 && memcmp(p, "::", 2) == 0) {
            if (n_args < URI_ARGS_MAX)
                ret_args[n_args] = u->path + u->offsets[i];
            return u->path[u->offsets[i]] != '\0';
        }
        if (size == 1 && *p == ':') {
            if (!*segment)
                return false;
            if (n_args < URI_ARGS_MAX)
                ret_args[n_args++] = segment;
        } else if (strncmp(segment, p, size) != 0 || segment[size]) {
            return false;
        }
        p += size;
    }
    return i == u->n_segments;
}

const char *uri_param_n(const struct uri *u, const char *name, size_t n)
{
    for (unsigned i = 0; i < u->n_params; i++)
        if (strcmp(u->params[i].name, name) == 0 && n-- == 0)
            return u->params[i].value;
    return NULL;
}

const char *uri_param(const struct uri *u, const char *name)
{
    return uri_param_n(u, name, 0);
}
