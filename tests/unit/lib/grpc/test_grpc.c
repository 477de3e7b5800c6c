#include "lib/grpc/grpc.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/certs.h"
#include "tests/lib/http/h2server.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/virtual.h"

#define METHOD "/runtime.v1.RuntimeService/Version"

enum {
    DEADLINE_MS = 120000, /* is not reached but in virtual time */
    SOON_MS = 200,        /* is */
    HEARS_MS = 60000,     /* why it is refused, whoever refuses it is slow */
    /* what a fault may cost in memory: a reply of 16 MiB, in a buffer that
     * is being made larger, and what libcurl has beside it */
    MEMORY_KIB = 64 << 10,
};

/* --- a place with files, and a server on it ------------------------------- */

struct place {
    char *dir, *endpoint, *socket;
    char *ca, *cert, *key;          /* of the client */
    char *server_cert, *server_key; /* and of the server */
    struct cert *authority;
    struct h2_server *server;
    struct grpc *grpc;
    struct grpc_counts counts;
    struct str reply;
    struct grpc_end end;
    struct error err;
};

static void write_pair(const struct cert *authority,
                       const struct cert_spec *spec, const char *cert,
                       const char *key)
{
    struct cert *made = cert_create(authority, spec);
    cert_write(made, cert);
    cert_write_key(made, key);
    cert_destroy(made);
}

static const struct cert_spec server_spec = {
    .name = "card", .purposes = CERT_SERVER, .local = true};
static const struct cert_spec client_spec = {.name = "node",
                                             .purposes = CERT_CLIENT};

static void place_files(struct place *p)
{
    p->dir = tmpdir_create();
    p->socket = xasprintf("%s/cri.sock", p->dir);
    p->ca = xasprintf("%s/ca.pem", p->dir);
    p->cert = xasprintf("%s/node.pem", p->dir);
    p->key = xasprintf("%s/node.key", p->dir);
    p->server_cert = xasprintf("%s/card.pem", p->dir);
    p->server_key = xasprintf("%s/card.key", p->dir);
    p->authority = cert_authority("cards");
    cert_write(p->authority, p->ca);
    write_pair(p->authority, &server_spec, p->server_cert, p->server_key);
    write_pair(p->authority, &client_spec, p->cert, p->key);
}

static void place_serve(struct place *p, bool tls)
{
    struct h2_config config = {
        .cert = p->server_cert, .key = p->server_key, .ca = p->ca};
    if (!tls)
        config = (struct h2_config){.socket = p->socket};
    p->server = h2_server_start(&config);
    p->endpoint = tls ? xasprintf("tcp://127.0.0.1:%u",
                                  h2_server_port(p->server))
                      : xasprintf("unix://%s", p->socket);
    h2_server_reply(p->server, "Version", "reply", 5);
}

static void place_client(struct place *p, bool tls, unsigned listen_ms)
{
    struct grpc_config config = {
        .endpoint = p->endpoint, .listen_ms = listen_ms, .counts = &p->counts};
    if (tls) {
        config.ca = p->ca;
        config.cert = p->cert;
        config.key = p->key;
    }
    cr_assert_eq(grpc_create(&config, &p->grpc, &p->err), 0, "%s", p->err.text);
}

static void place_init(struct place *p, bool tls)
{
    memset(p, 0, sizeof *p);
    place_files(p);
    place_serve(p, tls);
    place_client(p, tls, 0);
}

static void place_fini(struct place *p)
{
    grpc_destroy(p->grpc);
    h2_server_stop(p->server);
    cert_destroy(p->authority);
    str_fini(&p->reply);
    free(p->endpoint);
    free(p->socket);
    free(p->ca);
    free(p->cert);
    free(p->key);
    free(p->server_cert);
    free(p->server_key);
    tmpdir_remove(p->dir);
}

static int ask(struct place *p, unsigned deadline_ms)
{
    p->err = (struct error){0};
    return grpc_call(p->grpc, METHOD, "question", 8, deadline_ms, &p->reply,
                     &p->end, &p->err);
}

static void must_work(struct place *p, const char *after)
{
    cr_assert_eq(ask(p, DEADLINE_MS), 0, "after %s: %s", after, p->err.text);
    cr_assert_eq(p->reply.size, 5);
    cr_assert_arr_eq(p->reply.data, "reply", 5);
    cr_assert_eq(p->end.code, GRPC_OK);
    cr_assert_not(p->end.unsent);
}

static void expect_ended(struct place *p, enum grpc_outcome how,
                         unsigned long long n)
{
    cr_expect_eq(atomic_load(&p->counts.ended[how]), n, "%llu %s",
                 atomic_load(&p->counts.ended[how]), grpc_outcome_name(how));
}

/* The most memory that this process ever had, in KiB. */
static long peak_kib(void)
{
    cleanup_file FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            return strtol(line + 6, NULL, 10);
    return 0;
}

/* --- calls that go well --------------------------------------------------- */

Test(grpc, calls_share_a_connection_with_tls)
{
    struct place p;
    char value[64], request[64];
    place_init(&p, true);
    for (int i = 0; i < 20; i++)
        must_work(&p, "a call");
    cr_expect_eq(h2_server_connections(p.server), 1);
    expect_ended(&p, GRPC_ANSWERED, 20);
    cr_expect_eq(h2_server_request(p.server, request, sizeof request), 8);
    cr_expect_arr_eq(request, "question", 8);
    h2_server_header(p.server, ":path", value, sizeof value);
    cr_expect_str_eq(value, METHOD);
    h2_server_header(p.server, "content-type", value, sizeof value);
    cr_expect_str_eq(value, "application/grpc");
    h2_server_header(p.server, "te", value, sizeof value);
    cr_expect_str_eq(value, "trailers");
    h2_server_header(p.server, "grpc-timeout", value, sizeof value);
    cr_expect_str_eq(value, "120000m");
    place_fini(&p);
}

Test(grpc, cleartext_has_a_connection_for_each_call)
{
    struct place p;
    place_init(&p, false);
    for (int i = 0; i < 20; i++)
        must_work(&p, "a call");
    cr_expect_eq(h2_server_connections(p.server), 20);
    place_fini(&p);
}

static void check_sizes(bool tls)
{
    static const size_t sizes[] = {0,     1,       16379,   16380,
                                   70000, 1 << 20, 16 << 20};
    struct place p;
    char *data = xcalloc(1, 16 << 20);
    place_init(&p, tls);
    for (size_t i = 0; i < 16 << 20; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        h2_server_reply(p.server, "Version", data, sizes[i]);
        cr_assert_eq(ask(&p, DEADLINE_MS), 0, "%zu: %s", sizes[i], p.err.text);
        cr_assert_eq(p.reply.size, sizes[i]);
        if (sizes[i] > 0)
            cr_assert(memcmp(p.reply.data, data, sizes[i]) == 0);
    }
    free(data);
    place_fini(&p);
}

Test(grpc, replies_of_all_sizes_with_tls)
{
    check_sizes(true);
}

Test(grpc, replies_of_all_sizes_in_cleartext)
{
    check_sizes(false);
}

static void check_request(bool tls)
{
    struct place p;
    size_t size = 300000;
    char *data = xcalloc(1, size), *came = xcalloc(1, size);
    place_init(&p, tls);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    cr_assert_eq(grpc_call(p.grpc, METHOD, data, size, DEADLINE_MS, &p.reply,
                           &p.end, &p.err),
                 0, "%s", p.err.text);
    cr_expect_eq(h2_server_request(p.server, came, size), size);
    cr_expect(memcmp(data, came, size) == 0);
    free(data);
    free(came);
    place_fini(&p);
}

/* Without descriptors there is no pump, and without it no deadline would hold:
 * then there is no call. */
Test(grpc, a_connection_that_cannot_be_pumped_is_refused)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    struct place p = {0};
    struct rlimit files;
    unsigned n_refused = 0;
    p.dir = tmpdir_create();
    (void)snprintf(where.sun_path, sizeof where.sun_path, "%s/s", p.dir);
    p.endpoint = xasprintf("unix://%s", where.sun_path);
    const struct grpc_config config = {.endpoint = p.endpoint};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&where, sizeof where), 0);
    cr_assert_eq(listen(fd, 32), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    cr_assert_eq(grpc_create(&config, &p.grpc, &p.err), 0, "%s", p.err.text);
    for (int more = 1; more <= 6 && n_refused == 0; more++) {
        int next = dup(0);
        (void)close(next);
        const struct rlimit few = {(rlim_t)(next + more), files.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        int r = ask(&p, SOON_MS);
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
        bool refused = strstr(p.err.text, "cannot read from the connection");
        cr_expect(!refused || (r == -EMFILE && p.end.unsent), "%d", r);
        n_refused += refused;
    }
    cr_expect_eq(n_refused, 1);
    (void)close(fd);
    grpc_destroy(p.grpc);
    str_fini(&p.reply);
    free(p.endpoint);
    tmpdir_remove(p.dir);
}

Test(grpc, a_large_request_arrives)
{
    check_request(true);
    check_request(false);
}

Test(grpc, a_status_is_told)
{
    struct place p;
    place_init(&p, true);
    h2_server_status(p.server, "Version", GRPC_NOT_FOUND,
                     "no sandbox %22\xc3\xa9%C3%A9%22%0Ahere%1b[1m%");
    cr_expect_eq(ask(&p, DEADLINE_MS), -EREMOTEIO);
    cr_expect_eq(p.end.code, GRPC_NOT_FOUND);
    cr_expect_str_eq(p.end.message, "no sandbox \"éé\" here?[1m%");
    cr_expect(strstr(p.err.text, "NOT_FOUND: no sandbox"), "%s", p.err.text);
    cr_expect(strstr(p.err.text, "Version"), "%s", p.err.text);
    cr_expect(strstr(p.err.text, p.endpoint), "%s", p.err.text);
    h2_server_status(p.server, "Version", 42, "");
    cr_expect_eq(ask(&p, DEADLINE_MS), -EREMOTEIO);
    cr_expect(strstr(p.err.text, "code 42"), "%s", p.err.text);
    expect_ended(&p, GRPC_REFUSED, 2);
    /* that is no fault of the connection */
    cr_expect_eq(h2_server_connections(p.server), 1);
    place_fini(&p);
}

Test(grpc, a_reply_beyond_the_callers_cap_is_refused)
{
    struct place p;
    place_init(&p, true);
    p.reply = STR_INIT(4);
    cr_expect_eq(ask(&p, DEADLINE_MS), -EMSGSIZE);
    str_fini(&p.reply);
    p.reply = STR_INIT(0);
    must_work(&p, "a cap");
    place_fini(&p);
}

/* --- a hostile server ----------------------------------------------------- */

static const struct {
    enum h2_fault fault;
    const char *name;
    int code;         /* of grpc_call(); 0: it depends on who is faster */
    const char *says; /* a part of the text */
} faults[] = {
    {H2_EMPTY, "no message", EPROTO, "no message"},
    {H2_TWO, "two messages", EPROTO, "more than one message"},
    {H2_COMPRESSED, "compressed", EPROTO, "compressed"},
    {H2_BAD_FLAG, "a flag", EPROTO, "flags 0x55"},
    {H2_NO_TRAILERS, "no trailers", EPROTO, "grpc-status"},
    {H2_NO_STATUS, "no status", EPROTO, "grpc-status"},
    {H2_BAD_STATUS, "a bad status", EPROTO, "no number"},
    {H2_STATUS_TWICE, "two of them", EPROTO, "twice"},
    {H2_STATUS_ONLY, "a status only", EPROTO, "no message"},
    {H2_HALF, "half a message", EPROTO, "within a message"},
    {H2_HALF_PREFIX, "two bytes", EPROTO, "3 bytes are missing"},
    {H2_PREFIX_2GIB, "2 GiB", EMSGSIZE, "2147483648"},
    {H2_PREFIX_OVER, "16 MiB and 1", EMSGSIZE, "16777217"},
    {H2_NOT_GRPC, "a page", EPROTO, "application/grpc"},
    {H2_NOT_FOUND, "404", EPROTO, "status 404"},
    {H2_CLOSE, "a close", ECONNRESET, "not known"},
    {H2_CLOSE_HALF, "a close within", ECONNRESET, "not known"},
    {H2_GOAWAY, "GOAWAY", 0, ""},
    {H2_RESET, "RST", EPROTO, "broke off"},
    {H2_RESET_HEADERS, "RST after headers", EPROTO, "broke off"},
    {H2_RESET_HALF, "RST within", EPROTO, "broke off"},
    {H2_RESET_MESSAGE, "RST after all", EPROTO, "broke off"},
    {H2_FRAME_LONG, "a long frame", 0, ""},
    {H2_FRAME_SHORT, "a short frame", 0, ""},
    {H2_FRAME_STREAM, "a foreign stream", 0, ""},
    {H2_BIG_HEADERS, "64 KiB of headers", 0, ""},
    {H2_BIG_TRAILERS, "64 KiB of trailers", EPROTO, "over 16384 bytes"},
    {H2_HEADERS_FLOOD, "CONTINUATION", 0, ""},
    {H2_HPACK_TABLE, "a table", 0, ""},
    {H2_HPACK_BOMB, "a bomb", 0, ""},
    {H2_DATA_FLOOD, "DATA", EPROTO, "more than one message"},
    {H2_EMPTY_FLOOD, "empty DATA", 0, ""},
    {H2_PING_FLOOD, "PING", 0, ""},
    {H2_SETTINGS_FLOOD, "SETTINGS", 0, ""},
    {H2_TRAILERS_FLOOD, "trailers", 0, ""},
    {H2_DRIP, "drops", ETIMEDOUT, "no answer"},
    {H2_SILENT, "silence", ETIMEDOUT, "no answer"},
    {H2_NOISE, "noise", 0, ""},
};

/* Until its deadline, with some versions of libcurl. */
static bool hangs(enum h2_fault fault)
{
    return fault == H2_FRAME_LONG || fault == H2_BIG_HEADERS ||
           fault == H2_DRIP || fault == H2_SILENT;
}

struct waiting {
    struct place *p;
    unsigned calls; /* before the one */
    atomic_bool over;
};

/* Its deadline passes when the server has the call. */
static void *pass_deadline(void *arg)
{
    struct waiting *w = arg;
    while (!atomic_load(&w->over) && h2_server_calls(w->p->server) == w->calls)
        (void)poll(NULL, 0, 1);
    virtual_take(DEADLINE_MS + 1);
    return NULL;
}

static int ask_until_late(struct place *p)
{
    struct waiting w = {.p = p, .calls = h2_server_calls(p->server)};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, pass_deadline, &w), 0);
    int r = ask(p, DEADLINE_MS);
    atomic_store(&w.over, true);
    (void)pthread_join(thread, NULL);
    return r;
}

/* One call fails, by name and within bounds, and the next one works, on
 * another connection. */
static void check_fault(struct place *p, size_t i, bool tls)
{
    unsigned before = h2_server_connections(p->server);
    unsigned calls = h2_server_calls(p->server);
    int64_t from = clock_ms();
    h2_server_fault(p->server, faults[i].fault);
    int r = hangs(faults[i].fault) ? ask_until_late(p) : ask(p, DEADLINE_MS);
    long took = (long)(clock_ms() - from);
    fprintf(stderr, "%-5s %-20s %4ld ms %4d %s\n", tls ? "tls" : "clear",
            faults[i].name, took, r, p->err.text);
    cr_expect_lt(r, 0, "%s: %d", faults[i].name, r);
    cr_expect_eq(h2_server_calls(p->server) - calls, 1,
                 "%s: the call was made %u times", faults[i].name,
                 h2_server_calls(p->server) - calls);
    if (faults[i].code)
        cr_expect_eq(r, -faults[i].code, "%s: %d %s", faults[i].name, r,
                     p->err.text);
    cr_expect(strstr(p->err.text, faults[i].says), "%s: %s", faults[i].name,
              p->err.text);
    cr_expect(strstr(p->err.text, p->endpoint), "%s", p->err.text);
    cr_expect(strstr(p->err.text, "Version"), "%s", p->err.text);
    cr_expect_not(p->end.unsent, "%s", faults[i].name);
    h2_server_fault(p->server, H2_WELL);
    must_work(p, faults[i].name);
    cr_expect_gt(h2_server_connections(p->server), before, "%s",
                 faults[i].name);
}

static void check_faults(bool tls)
{
    struct place p;
    virtual_begin();
    place_init(&p, tls);
    must_work(&p, "nothing");
    long before = peak_kib();
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        check_fault(&p, i, tls);
    fprintf(stderr, "%s: peak of %ld KiB before, %ld after\n",
            tls ? "tls" : "clear", before, peak_kib());
    cr_expect_lt(peak_kib() - before, MEMORY_KIB);
    place_fini(&p);
    virtual_end();
}

Test(grpc, a_hostile_server_costs_one_call_with_tls)
{
    check_faults(true);
}

Test(grpc, a_hostile_server_costs_one_call_in_cleartext)
{
    check_faults(false);
}

/* Until GOAWAY is there, which follows the answer. */
static void until_answered(struct place *p)
{
    while (h2_server_answers(p->server) < h2_server_calls(p->server))
        (void)poll(NULL, 0, 1);
}

/* In one read with the trailers or not, an answer that is whole is one. */
static void check_farewell(bool tls)
{
    struct place p;
    place_init(&p, tls);
    for (int i = 0; i < 20; i++) {
        h2_server_fault(p.server, i % 2 ? H2_GOAWAY_AFTER : H2_GOAWAY_WITH);
        must_work(&p, "nothing");
        until_answered(&p);
        h2_server_fault(p.server, H2_GOAWAY_REFUSED);
        cr_expect_eq(ask(&p, DEADLINE_MS), -EREMOTEIO, "%s", p.err.text);
        cr_expect_eq(p.end.code, GRPC_NOT_FOUND);
        cr_expect_str_eq(p.end.message, "there is none");
        until_answered(&p);
    }
    h2_server_fault(p.server, H2_GOAWAY_HALF);
    cr_expect_eq(ask(&p, DEADLINE_MS), -EPROTO, "%s", p.err.text);
    cr_expect(strstr(p.err.text, "grpc-status"), "%s", p.err.text);
    expect_ended(&p, GRPC_BROKEN, 1);
    h2_server_fault(p.server, H2_RESET_AFTER);
    for (int i = 0; i < 5; i++)
        must_work(&p, "RST after the trailers");
    place_fini(&p);
}

Test(grpc, a_farewell_after_a_reply)
{
    check_farewell(true);
    check_farewell(false);
}

Test(grpc, a_server_that_starts_anew_is_found)
{
    struct place p;
    place_init(&p, true);
    must_work(&p, "nothing");
    struct h2_config config = {.cert = p.server_cert,
                               .key = p.server_key,
                               .ca = p.ca,
                               .holder = h2_server_leave(p.server)};
    cr_expect_eq(ask(&p, DEADLINE_MS), -ECONNREFUSED, "%s", p.err.text);
    expect_ended(&p, GRPC_UNREACHED, 1);
    cr_expect(p.end.unsent);
    p.server = h2_server_start(&config);
    h2_server_reply(p.server, "Version", "reply", 5);
    must_work(&p, "a restart");
    place_fini(&p);
}

/* --- who refuses whom ----------------------------------------------------- */

static void refused(struct place *p, const char *side, const char *why)
{
    cr_expect_eq(ask(p, DEADLINE_MS), -EKEYREJECTED, "%s", p->err.text);
    cr_expect(strstr(p->err.text, side), "%s", p->err.text);
    cr_expect(strstr(p->err.text, why), "%s", p->err.text);
    cr_expect(p->end.unsent);
    cr_expect_eq(h2_server_calls(p->server), 0);
}

static void server_with(struct cert_spec spec, bool foreign, const char *why)
{
    struct place p;
    struct cert *other = cert_authority("others");
    memset(&p, 0, sizeof p);
    place_files(&p);
    write_pair(foreign ? other : p.authority, &spec, p.server_cert,
               p.server_key);
    place_serve(&p, true);
    place_client(&p, true, 0);
    refused(&p, "we refuse the server's certificate", why);
    cert_destroy(other);
    place_fini(&p);
}

Test(grpc, a_server_is_refused_for_its_certificate)
{
    struct cert_spec spec = server_spec;
    server_with(spec, true, "has signed it");
    spec.local = false;
    spec.dns[0] = "elsewhere";
    server_with(spec, false, "subject alternative names");
    spec = server_spec;
    spec.from_s = -7200;
    spec.until_s = -3600;
    server_with(spec, false, "expired");
    spec.from_s = 3600;
    spec.until_s = 7200;
    server_with(spec, false, "not valid yet");
    spec = server_spec;
    spec.purposes = CERT_CLIENT;
    server_with(spec, false, "not meant for servers");
}

static void client_with(struct cert_spec spec, bool foreign, const char *why)
{
    struct place p;
    struct cert *other = cert_authority("others");
    memset(&p, 0, sizeof p);
    place_files(&p);
    write_pair(foreign ? other : p.authority, &spec, p.cert, p.key);
    place_serve(&p, true);
    place_client(&p, true, HEARS_MS);
    for (int i = 0; i < 10; i++) /* it is a race for libcurl */
        refused(&p, "the server refuses our certificate", why);
    expect_ended(&p, GRPC_DISTRUSTED, 10);
    cert_destroy(other);
    place_fini(&p);
}

Test(grpc, a_server_refuses_our_certificate)
{
    struct cert_spec spec = client_spec;
    client_with(spec, true, "CN=others");
    spec.from_s = -7200;
    spec.until_s = -3600;
    client_with(spec, false, "it has expired on 2");
    spec.from_s = 3600;
    spec.until_s = 7200;
    client_with(spec, false, "it is not valid before 2");
}

Test(grpc, new_files_are_used_without_a_restart)
{
    struct place p;
    struct cert_spec spec = client_spec;
    spec.from_s = -7200;
    spec.until_s = -3600;
    memset(&p, 0, sizeof p);
    place_files(&p);
    place_serve(&p, true);
    place_client(&p, true, HEARS_MS);
    must_work(&p, "nothing");
    must_work(&p, "nothing");
    cr_expect_eq(h2_server_connections(p.server), 1);
    write_pair(p.authority, &client_spec, p.cert, p.key);
    must_work(&p, "rotation");
    cr_expect_eq(h2_server_connections(p.server), 2);
    write_pair(p.authority, &spec, p.cert, p.key);
    cr_expect_eq(ask(&p, DEADLINE_MS), -EKEYREJECTED, "%s", p.err.text);
    write_pair(p.authority, &client_spec, p.cert, p.key);
    must_work(&p, "an expired certificate");
    (void)unlink(p.key);
    cr_expect_eq(ask(&p, DEADLINE_MS), -EKEYREJECTED, "%s", p.err.text);
    cr_expect(strstr(p.err.text, p.key), "%s", p.err.text);
    place_fini(&p);
}

/* --- what is no endpoint -------------------------------------------------- */

#define TWENTY "01234567890123456789"
#define LONG_PATH "unix:///" TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY

Test(grpc, what_is_not_safe_is_refused)
{
    static const char *const none[] = {
        "",
        "tcp://",
        "tcp://host",
        "tcp://host:",
        "tcp://host:0",
        "tcp://host:65536",
        "tcp://host:1/x",
        "tcp://a@host:1",
        "tcp://host:1x",
        "tcp://[::1:1",
        "http://host:1",
        "unix://relative",
        "unix://",
        LONG_PATH,
    };
    struct grpc_config config = {.ca = "a", .cert = "b", .key = "c"};
    struct grpc *g = NULL;
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        config.endpoint = none[i];
        cr_expect_eq(grpc_create(&config, &g, &err), -EINVAL, "%s", none[i]);
        cr_expect_null(g);
    }
    config.endpoint = "tcp://[::1]:7443";
    cr_assert_eq(grpc_create(&config, &g, &err), 0, "%s", err.text);
    grpc_destroy(g);
    g = NULL;
    config.plaintext = true;
    cr_expect_eq(grpc_create(&config, &g, &err), -EINVAL);
    config = (struct grpc_config){.endpoint = "tcp://127.0.0.1:7443"};
    cr_expect_eq(grpc_create(&config, &g, &err), -EINVAL);
    cr_expect(strstr(err.text, "all three"), "%s", err.text);
    config.ca = "a";
    config.cert = "b";
    cr_expect_eq(grpc_create(&config, &g, &err), -EINVAL);
    grpc_destroy(NULL);
}
