#include "lib/stream/stream_head.h"

#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "lib/stream/stream_status.h"

#define EMPTY_LINE "\r\n\r\n"
/* so a client of WebSocket without other headers shows a bearer token */
#define BEARER "base64url.bearer.authorization.k8s.io."

size_t stream_head_end(const char *data, size_t size, size_t seen)
{
    size_t from = seen > 3 ? seen - 3 : 0;
    if (size <= from)
        return 0;
    const char *end = memmem(data + from, size - from, EMPTY_LINE, 4);
    return end ? (size_t)(end - data) + 4 : 0;
}

/* --- a head into lines, words and fields ------------------------------------ */

/* A piece of the caller's bytes. */
struct piece {
    const char *at;
    size_t len;
};

static bool piece_is(struct piece p, const char *text)
{
    return strlen(text) == p.len && strncasecmp(p.at, text, p.len) == 0;
}

static bool begins(struct piece p, const char *prefix)
{
    size_t len = strlen(prefix);
    return p.len >= len && strncasecmp(p.at, prefix, len) == 0;
}

static struct piece trim(struct piece p)
{
    while (p.len > 0 && (*p.at == ' ' || *p.at == '\t'))
        p.at++, p.len--;
    while (p.len > 0 && (p.at[p.len - 1] == ' ' || p.at[p.len - 1] == '\t'))
        p.len--;
    return p;
}

static struct piece name_of(const struct stream_field *f)
{
    return (struct piece){f->name, f->name_len};
}

static struct piece value_of(const struct stream_field *f)
{
    return (struct piece){f->value, f->value_len};
}

/* A line without controls, but for tabs; other line ends are no line ends. */
static int take_line(const char **at, const char *end, struct piece *ret_line,
                     struct error *err)
{
    const char *stop = memmem(*at, (size_t)(end - *at), "\r\n", 2);
    *ret_line = (struct piece){*at, (size_t)(stop - *at)};
    for (const char *p = *at; p < stop; p++)
        if ((unsigned char)*p < ' ' ? *p != '\t' : *p == 0x7f)
            return error_set(err, EINVAL,
                             "the head has a control character %02x",
                             (unsigned char)*p);
    *at = stop + 2;
    return 0;
}

static void first_line(struct piece line, struct stream_head *head)
{
    for (size_t i = 0; i < ARRAY_LEN(head->words); i++) {
        const char *space = i < 2 ? memchr(line.at, ' ', line.len) : NULL;
        size_t len = space ? (size_t)(space - line.at) : line.len;
        head->words[i] = line.at;
        head->lens[i] = len;
        line.at += len + (space != NULL);
        line.len -= len + (space != NULL);
    }
}

static bool is_token(struct piece p)
{
    static const char others[] = "!#$%&'*+-.^_`|~"; /* RFC 9110, 5.6.2 */
    for (size_t i = 0; i < p.len; i++) {
        char c = p.at[i], low = (char)(c | 0x20);
        if (!(low >= 'a' && low <= 'z') && !(c >= '0' && c <= '9') &&
            !(c && strchr(others, c)))
            return false;
    }
    return p.len > 0;
}

static int take_field(struct piece line, struct stream_head *head,
                      struct error *err)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct piece name = {line.at, colon ? (size_t)(colon - line.at) : 0};
    if (!is_token(name))
        return error_set(err, EINVAL,
                         "the head has a line that is no field: \"%.*s\"",
                         (int)(line.len < 64 ? line.len : 64), line.at);
    if (head->n_fields == STREAM_FIELDS_MAX)
        return error_set(err, E2BIG, "the head has more than %d fields",
                         STREAM_FIELDS_MAX);
    struct piece value =
        trim((struct piece){colon + 1, line.len - name.len - 1});
    head->fields[head->n_fields++] = (struct stream_field){name.at, value.at,
                                                           name.len, value.len};
    return 0;
}

static int head_read(const char *data, size_t size, struct stream_head *head,
                     struct error *err)
{
    const char *at = data, *end = data + size;
    struct piece line;
    head->n_fields = 0;
    if (size < 4 || memcmp(end - 4, EMPTY_LINE, 4) != 0)
        return error_set(err, EINVAL, "the head has no end");
    int r = take_line(&at, end, &line, err);
    if (r == 0)
        first_line(line, head);
    while (r == 0 && at < end - 2) {
        r = take_line(&at, end, &line, err);
        if (r == 0)
            r = take_field(line, head, err);
    }
    return r;
}

/* --- what fields say ----------------------------------------------------------- */

/* How often a field is there; the last one's value, which is not changed when
 * there is none. */
static unsigned field_find(const struct stream_head *head, const char *name,
                           struct piece *ret_value)
{
    unsigned n = 0;
    for (size_t i = 0; i < head->n_fields; i++)
        if (piece_is(name_of(&head->fields[i]), name)) {
            *ret_value = value_of(&head->fields[i]);
            n++;
        }
    return n;
}

/* The next member of a list with commas; false at its end. */
static bool member_next(struct piece *list, struct piece *ret_member)
{
    if (list->len == 0)
        return false;
    const char *comma = memchr(list->at, ',', list->len);
    size_t len = comma ? (size_t)(comma - list->at) : list->len;
    *ret_member = trim((struct piece){list->at, len});
    list->at += len + (comma != NULL);
    list->len -= len + (comma != NULL);
    return true;
}

static bool says_upgrade(const struct stream_head *head)
{
    struct piece member;
    for (size_t i = 0; i < head->n_fields; i++) {
        struct piece list = value_of(&head->fields[i]);
        if (!piece_is(name_of(&head->fields[i]), "Connection"))
            continue;
        while (member_next(&list, &member))
            if (piece_is(member, "upgrade"))
                return true;
    }
    return false;
}

static int upgrade_read(const struct stream_head *head, const char **ret_name,
                        struct error *err)
{
    static const char *const known[] = {"SPDY/3.1", "websocket"};
    struct piece value = {"", 0};
    unsigned n = field_find(head, "Upgrade", &value);
    for (size_t i = 0; n == 1 && i < ARRAY_LEN(known); i++)
        if (piece_is(value, known[i]) && says_upgrade(head)) {
            *ret_name = known[i];
            return 0;
        }
    return error_set(err, EPROTONOSUPPORT,
                     "it asks for no upgrade to SPDY/3.1 or websocket, but "
                     "\"%.*s\"",
                     (int)(value.len < 64 ? value.len : 64), value.at);
}

/* --- requests -------------------------------------------------------------------- */

static int target_read(struct stream_request *rq, struct error *err)
{
    const struct stream_head *head = &rq->head;
    const char *target = head->words[1];
    size_t len = head->lens[1];
    for (size_t i = 0; i < len; i++)
        if (target[i] <= ' ' || target[i] > '~')
            return error_set(err, EINVAL,
                             "its target has a byte that is no printable "
                             "ASCII");
    if (len < 2 || target[0] != '/')
        return error_set(err, EINVAL, "its target is not \"/TICKET\"");
    const char *mark = memchr(target, '?', len);
    rq->token = target + 1;
    rq->token_len = (mark ? (size_t)(mark - target) : len) - 1;
    rq->query = mark ? mark + 1 : NULL;
    rq->query_len = mark ? (size_t)(target + len - mark) - 1 : 0;
    return 0;
}

static int no_body(const struct stream_head *head, struct error *err)
{
    struct piece value = {"", 0};
    unsigned n = field_find(head, "Content-Length", &value);
    if (n > 1)
        return error_set(err, EINVAL, "it has %u Content-Length fields", n);
    if (field_find(head, "Transfer-Encoding", &value) > 0 ||
        (n == 1 && !piece_is(value, "0")))
        return error_set(err, EFBIG,
                         "it has a body, and streams begin without");
    return 0;
}

int stream_request_read(const char *data, size_t size,
                        struct stream_request *ret_request, struct error *err)
{
    struct stream_request *rq = ret_request;
    const struct stream_head *head = &rq->head;
    const char *upgrade = "";
    struct piece host;
    int r = head_read(data, size, &rq->head, err);
    if (r < 0)
        return r;
    if (!piece_is((struct piece){head->words[2], head->lens[2]}, "HTTP/1.1"))
        return error_set(err, EINVAL, "it is no request of HTTP/1.1");
    struct piece method = {head->words[0], head->lens[0]};
    if (!piece_is(method, "GET") && !piece_is(method, "POST"))
        return error_set(err, EOPNOTSUPP, "its method is neither GET nor POST");
    if (field_find(head, "Host", &host) != 1)
        return error_set(err, EINVAL, "it has not one Host field");
    r = target_read(rq, err);
    if (r == 0)
        r = no_body(head, err);
    if (r == 0)
        r = upgrade_read(head, &upgrade, err);
    (void)snprintf(rq->upgrade, sizeof rq->upgrade, "%s", upgrade);
    return r;
}

static void add_field(const struct stream_field *f, struct str *out)
{
    str_add_n(out, f->name, f->name_len);
    str_add(out, ": ");
    str_add_n(out, f->value, f->value_len);
    str_add(out, "\r\n");
}

/* The protocols that a client of WebSocket offers, without what is none. */
static void add_offer(const struct stream_field *f, struct str *out)
{
    struct piece list = value_of(f), member;
    const char *between = "Sec-WebSocket-Protocol: ";
    while (member_next(&list, &member)) {
        if (member.len == 0 || begins(member, BEARER))
            continue;
        str_add(out, between);
        str_add_n(out, member.at, member.len);
        between = ", ";
    }
    if (*between == ',')
        str_add(out, "\r\n");
}

static bool is_of_streaming(const struct stream_field *f)
{
    return begins(name_of(f), "Sec-WebSocket-") ||
           begins(name_of(f), "X-Stream-");
}

static void add_request_fields(const struct stream_head *head,
                               const char *origin, struct str *out)
{
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct stream_field *f = &head->fields[i];
        if (piece_is(name_of(f), "Sec-WebSocket-Protocol"))
            add_offer(f, out);
        else if (is_of_streaming(f) || piece_is(name_of(f), "User-Agent"))
            add_field(f, out);
        else if (piece_is(name_of(f), "Origin"))
            str_addf(out, "Origin: %s\r\n", origin);
    }
}

void stream_request_write(const struct stream_request *rq,
                          const struct stream_url *url, const char *host,
                          struct str *out)
{
    bool six = strchr(host, ':') != NULL, post = rq->head.lens[0] == 4;
    char origin[STREAM_HOST_MAX + 32];
    (void)snprintf(origin, sizeof origin, "%s://%s%s%s:%u",
                   url->tls ? "https" : "http", six ? "[" : "", host,
                   six ? "]" : "", url->port);
    str_addf(out, "%s %s", post ? "POST" : "GET", url->target);
    if (rq->query_len > 0 && !strchr(url->target, '?')) {
        str_add_c(out, '?');
        str_add_n(out, rq->query, rq->query_len);
    }
    str_addf(out, " HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n",
             strstr(origin, "//") + 2);
    str_addf(out, "Upgrade: %s\r\n", rq->upgrade);
    add_request_fields(&rq->head, origin, out);
    str_addf(out, "%s\r\n", post ? "Content-Length: 0\r\n" : "");
}

/* --- answers ---------------------------------------------------------------------- */

static int bad_answer(struct error *err, const char *why, struct piece p)
{
    return error_set(err, EPROTO, "%s: \"%.*s\"", why,
                     (int)(p.len < 64 ? p.len : 64), p.at);
}

static int status_read(struct stream_answer *a, struct error *err)
{
    const struct stream_head *head = &a->head;
    struct piece version = {head->words[0], head->lens[0]};
    struct piece status = {head->words[1], head->lens[1]};
    if (!piece_is(version, "HTTP/1.1"))
        return bad_answer(err, "its answer is not of HTTP/1.1", version);
    if (status.len != 3)
        return bad_answer(err, "its answer has no status", status);
    a->status = 0;
    for (size_t i = 0; i < 3; i++) {
        if (status.at[i] < '0' || status.at[i] > '9')
            return bad_answer(err, "its answer has no status", status);
        a->status = a->status * 10 + (status.at[i] - '0');
    }
    if (a->status != 101 && (a->status < 400 || a->status > 599))
        return bad_answer(err, "it answered neither 101 nor an error", status);
    return 0;
}

static int protocol_read(struct stream_answer *a, const char *upgrade,
                         struct error *err)
{
    struct piece value = {"", 0}, up = {"", 0};
    bool socket = strcmp(upgrade, "websocket") == 0;
    if (field_find(&a->head, "Upgrade", &up) != 1 || !piece_is(up, upgrade) ||
        !says_upgrade(&a->head))
        return bad_answer(err, "it upgrades to something else", up);
    if (field_find(&a->head,
                   socket ? "Sec-WebSocket-Protocol"
                          : "X-Stream-Protocol-Version",
                   &value) > 1 ||
        value.len >= sizeof a->protocol)
        return bad_answer(err, "it names no protocol for the stream", value);
    memcpy(a->protocol, value.at, value.len);
    a->protocol[value.len] = '\0';
    return 0;
}

/* The body of an error: how long it is must be said in one way. */
static int framing_read(struct stream_answer *a, struct error *err)
{
    struct piece length = {"", 0}, encoding = {"", 0};
    unsigned n = field_find(&a->head, "Content-Length", &length);
    unsigned m = field_find(&a->head, "Transfer-Encoding", &encoding);
    a->chunked = m == 1;
    a->length = UINT64_MAX;
    if (n + m > 1 || (m == 1 && !piece_is(encoding, "chunked")))
        return bad_answer(err, "its answer's length is not clear", encoding);
    if (n == 0)
        return 0;
    a->length = 0;
    for (size_t i = 0; i < length.len; i++) {
        char c = length.at[i];
        if (c < '0' || c > '9' || a->length > UINT32_MAX)
            return bad_answer(err, "its answer's length is none", length);
        a->length = a->length * 10 + (unsigned)(c - '0');
    }
    return length.len > 0
               ? 0
               : bad_answer(err, "its answer's length is none", length);
}

int stream_answer_read(const char *data, size_t size, const char *upgrade,
                       struct stream_answer *ret_answer, struct error *err)
{
    struct stream_answer *a = ret_answer;
    struct error why;
    a->protocol[0] = '\0';
    a->chunked = false;
    a->length = 0;
    if (head_read(data, size, &a->head, &why) < 0)
        return error_set(err, EPROTO, "its answer: %s", why.text);
    int r = status_read(a, err);
    if (r == 0)
        r = a->status == 101 ? protocol_read(a, upgrade, err)
                             : framing_read(a, err);
    return r;
}

static void add_framing(const struct stream_answer *a, struct str *out)
{
    if (a->chunked)
        str_add(out, "Transfer-Encoding: chunked\r\n");
    else if (a->length != UINT64_MAX)
        str_addf(out, "Content-Length: %llu\r\n",
                 (unsigned long long)a->length);
}

void stream_answer_write(const struct stream_answer *a, const char *upgrade,
                         struct str *out)
{
    const struct stream_head *head = &a->head;
    bool switches = a->status == 101;
    str_addf(out, "HTTP/1.1 %d ", a->status);
    str_add_n(out, head->words[2], head->lens[2]);
    str_add(out, "\r\n");
    if (switches)
        str_addf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", upgrade);
    else
        str_add(out, "Connection: close\r\n");
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct stream_field *f = &head->fields[i];
        if (is_of_streaming(f) ||
            piece_is(name_of(f), "X-Accepted-Stream-Protocol-Versions") ||
            (!switches && piece_is(name_of(f), "Content-Type")))
            add_field(f, out);
    }
    if (!switches)
        add_framing(a, out);
    str_add(out, "\r\n");
}

/* --- our own word -------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "Bad Request"},      {403, "Forbidden"},
        {404, "Not Found"},        {405, "Method Not Allowed"},
        {408, "Request Timeout"},  {413, "Content Too Large"},
        {426, "Upgrade Required"}, {431, "Request Header Fields Too Large"},
        {502, "Bad Gateway"},      {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

void stream_refusal_write(int status, const char *text, struct str *out)
{
    cleanup_str struct str body = STR_INIT(STREAM_STATUS_MAX);
    stream_status_add(status, text, &body);
    str_addf(out,
             "HTTP/1.1 %d %s\r\nConnection: close\r\n"
             "Content-Type: application/json\r\n%s"
             "Content-Length: %zu\r\n\r\n",
             status, reason_of(status),
             status == 426 ? "Upgrade: SPDY/3.1, websocket\r\n" : "",
             body.size);
    str_add_n(out, str_text(&body), body.size);
}
