#include "extender/relay/relay_want.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/jwrite.h"
#include "lib/base/utf8.h"
#include "lib/io/rfc3339.h"

enum { SECONDS_MAX = INT32_MAX, PORT_MAX = 65535 };

const char *relay_kind_name(enum relay_kind kind)
{
    static const char *const names[RELAY_KINDS] = {"log", "exec", "attach",
                                                   "portforward"};
    return (unsigned)kind < RELAY_KINDS ? names[kind] : "?";
}

const char *const *relay_want_params(enum relay_kind kind)
{
    static const char *const log[] = {"container",    "follow",     "tailLines",
                                      "sinceSeconds", "sinceTime",  "previous",
                                      "limitBytes",   "timestamps", NULL};
    static const char *const exec[] = {
        "command", "container", "stdin", "stdout", "stderr", "tty", NULL};
    static const char *const attach[] = {"container", "stdin", "stdout",
                                         "stderr",    "tty",   NULL};
    static const char *const portforward[] = {"ports", NULL};
    static const char *const *const all[RELAY_KINDS] = {log, exec, attach,
                                                        portforward};
    return all[kind];
}

/* --- values --------------------------------------------------------------- */

/* One reading of a query: the first error wins. */
struct reading {
    const struct relay_query *query;
    struct str *out;
    struct error *err;
    int result;
};

static const char *get(const struct reading *r, const char *name)
{
    return r->query->get(r->query->ctx, name, 0);
}

static void refuse(struct reading *r, const char *name, const char *value,
                   const char *allowed)
{
    if (r->result == 0)
        r->result = error_set(r->err, EINVAL, "%s: is \"%.64s\", must be %s",
                              name, value, allowed);
}

/* Also those words that Kubernetes' clients write. */
static bool read_bool(struct reading *r, const char *name)
{
    const char *text = get(r, name);
    bool yes = text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
    if (text && !yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        refuse(r, name, text, "true or false");
    jwrite_bool(r->out, name, yes);
    return yes;
}

/* Left out when it is not given. */
static void read_number(struct reading *r, const char *name, int64_t min,
                        int64_t max)
{
    const char *text = get(r, name);
    char *end = NULL, allowed[96];
    errno = 0;
    long long n = text ? strtoll(text, &end, 10) : 0;
    if (!text)
        return;
    if (*text >= '0' && *text <= '9' && !*end && !errno && n >= min &&
        n <= max) {
        jwrite_int(r->out, name, n);
        return;
    }
    (void)snprintf(allowed, sizeof allowed,
                   "a whole number from %" PRId64 " to %" PRId64, min, max);
    refuse(r, name, text, allowed);
}

static void read_container(struct reading *r)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const char *text = get(r, "container");
    size_t len = text ? strlen(text) : 0;
    if (len > RELAY_CONTAINER_MAX || (text && strspn(text, letters) != len))
        refuse(r, "container", text, "the name of a container");
    jwrite_text(r->out, "container", text ? text : "");
}

/* --- kinds ---------------------------------------------------------------- */

static void read_log(struct reading *r)
{
    const char *since = get(r, "sinceTime");
    int64_t ns;
    read_container(r);
    (void)read_bool(r, "follow");
    (void)read_bool(r, "previous");
    (void)read_bool(r, "timestamps");
    read_number(r, "tailLines", 0, INT32_MAX);
    read_number(r, "sinceSeconds", 1, SECONDS_MAX);
    read_number(r, "limitBytes", 1, INT64_MAX);
    if (since && !rfc3339_parse_ns(since, strlen(since), &ns))
        refuse(r, "sinceTime", since,
               "a time as RFC 3339 has it: 2026-11-28T09:00:00Z");
    else if (since && get(r, "sinceSeconds"))
        refuse(r, "sinceTime", since, "left out beside sinceSeconds");
    else if (since)
        jwrite_text(r->out, "sinceTime", since);
}

static void read_streams(struct reading *r)
{
    read_container(r);
    bool in = read_bool(r, "stdin"), out = read_bool(r, "stdout");
    bool err = read_bool(r, "stderr"), tty = read_bool(r, "tty");
    if (!in && !out && !err)
        refuse(r, "stdin, stdout, stderr", "false",
               "true for at least one of them");
    if (tty && err)
        refuse(r, "stderr", "true",
               "false beside tty, which has one output only");
}

static bool is_utf8(const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n)
        if ((n = utf8_sequence(text, left)) == 0)
            return false;
    return true;
}

static void read_command(struct reading *r)
{
    const struct relay_query *q = r->query;
    size_t n = 0;
    jwrite_array(r->out, "command");
    for (const char *word; (word = q->get(q->ctx, "command", n)); n++) {
        if (n == RELAY_COMMAND_MAX) {
            refuse(r, "command", word, "256 words at most");
            break;
        }
        if (!is_utf8(word))
            refuse(r, "command", word, "UTF-8");
        jwrite_text(r->out, NULL, word);
    }
    jwrite_end_array(r->out);
    if (n == 0)
        refuse(r, "command", "", "given once for each word of the command");
}

static void read_ports(struct reading *r)
{
    const char *text = get(r, "ports");
    size_t n = 0;
    jwrite_array(r->out, "ports");
    for (const char *p = text ? text : ""; r->result == 0; p++) {
        char *end;
        errno = 0;
        unsigned long port = strtoul(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || port == 0 || port > PORT_MAX ||
            (*end && *end != ',') || n++ == RELAY_PORTS_MAX) {
            refuse(r, "ports", text ? text : "",
                   "1 to 16 numbers from 1 to 65535 with commas between");
            break;
        }
        jwrite_uint(r->out, NULL, port);
        p = end;
        if (!*p)
            break;
    }
    jwrite_end_array(r->out);
}

int relay_want_read(enum relay_kind kind, const struct relay_query *query,
                    struct str *out, struct error *err)
{
    struct reading r = {.query = query, .out = out, .err = err};
    switch (kind) {
    case RELAY_LOG:
        read_log(&r);
        break;
    case RELAY_EXEC:
        read_command(&r);
        read_streams(&r);
        break;
    case RELAY_ATTACH:
        read_streams(&r);
        break;
    case RELAY_PORTFORWARD:
    case RELAY_KINDS:
        read_ports(&r);
        break;
    }
    return r.result;
}
