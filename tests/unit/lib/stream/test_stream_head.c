#include "lib/stream/stream_head.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

#define SPDY "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
#define HOST "Host: 127.0.0.1:4711\r\n"

static int request(const char *text, struct stream_request *ret,
                   struct error *err)
{
    return stream_request_read(text, strlen(text), ret, err);
}

static int answer(const char *text, const char *upgrade,
                  struct stream_answer *ret, struct error *err)
{
    return stream_answer_read(text, strlen(text), upgrade, ret, err);
}

Test(stream_head, its_end_is_found_as_it_comes)
{
    static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
    for (size_t seen = 0; seen <= 24; seen++)
        for (size_t size = seen; size < 24; size++)
            cr_assert_eq(stream_head_end(text, size, seen), 0);
    for (size_t seen = 0; seen < 24; seen++)
        cr_assert_eq(stream_head_end(text, sizeof text - 1, seen), 24);
    cr_expect_eq(stream_head_end(text, 0, 0), 0);
}

/* What the kubelet sends for kubectl exec, and what is made of it. */
Test(stream_head, request_is_written_anew)
{
    struct stream_request rq;
    struct error err = {0};
    struct stream_url url = {.tls = true, .port = 10010};
    cleanup_str struct str out = STR_INIT(1 << 16);
    (void)snprintf(url.target, sizeof url.target, "/exec/TOKEN");
    int r = request("POST /abc?tty=1 HTTP/1.1\r\n" HOST
                    "User-Agent: kubectl/1.37\r\n"
                    "Authorization: Bearer secret\r\nCookie: secret\r\n"
                    "X-Remote-User: secret\r\nContent-Length: 0\r\n"
                    "connection: keep-alive,  UPGRADE\r\n"
                    "Upgrade: spdy/3.1\r\nOrigin: http://node:10250\r\n"
                    "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
                    "X-Stream-Protocol-Version: v3.channel.k8s.io \r\n"
                    "X-Forwarded-For: 10.1.1.1\r\nExpect: x\r\n\r\n",
                    &rq, &err);
    cr_assert_eq(r, 0, "%s", err.text);
    cr_expect(rq.token_len == 3 && memcmp(rq.token, "abc", 3) == 0);
    stream_request_write(&rq, &url, "fd00::2", &out);
    cr_expect_str_eq(str_text(&out),
                     "POST /exec/TOKEN?tty=1 HTTP/1.1\r\n"
                     "Host: [fd00::2]:10010\r\n"
                     "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                     "User-Agent: kubectl/1.37\r\n"
                     "Origin: https://[fd00::2]:10010\r\n"
                     "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
                     "X-Stream-Protocol-Version: v3.channel.k8s.io\r\n"
                     "Content-Length: 0\r\n\r\n");
}

Test(stream_head, websocket_request_loses_its_bearer)
{
    struct stream_request rq;
    struct error err = {0};
    struct stream_url url = {.port = 1};
    cleanup_str struct str out = STR_INIT(1 << 16);
    (void)snprintf(url.target, sizeof url.target, "/x?a=b");
    int r = request("GET /abc?tty=1 HTTP/1.1\r\n" HOST
                    "Upgrade: WebSocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Protocol: v5.channel.k8s.io, "
                    "base64url.bearer.authorization.k8s.io.c2VjcmV0,"
                    "v4.channel.k8s.io\r\n\r\n",
                    &rq, &err);
    cr_assert_eq(r, 0, "%s", err.text);
    stream_request_write(&rq, &url, "card0", &out);
    cr_expect_str_eq(str_text(&out),
                     "GET /x?a=b HTTP/1.1\r\nHost: card0:1\r\n"
                     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Protocol: v5.channel.k8s.io, "
                     "v4.channel.k8s.io\r\n\r\n");
}

Test(stream_head, requests_that_are_refused)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"", -EINVAL},
        {"\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY, -EINVAL},
        {"GET /a HTTP/1.0\r\n" HOST SPDY "\r\n", -EINVAL},
        {"GET /a b HTTP/1.1\r\n" HOST SPDY "\r\n", -EINVAL},
        {"GET / HTTP/1.1\r\n" HOST SPDY "\r\n", -EINVAL},
        {"GET a HTTP/1.1\r\n" HOST SPDY "\r\n", -EINVAL},
        {"GET /\xc3\xa9 HTTP/1.1\r\n" HOST SPDY "\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" SPDY "\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST HOST SPDY "\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "X: a\nY: b\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "X: a\rY: b\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "X : a\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY " folded\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "nothing\r\n\r\n", -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY ": x\r\n\r\n", -EINVAL},
        {"PUT /a HTTP/1.1\r\n" HOST SPDY "\r\n", -EOPNOTSUPP},
        {"GET /a HTTP/1.1\r\n" HOST "\r\n", -EPROTONOSUPPORT},
        {"GET /a HTTP/1.1\r\n" HOST "Upgrade: SPDY/3.1\r\n\r\n",
         -EPROTONOSUPPORT},
        {"GET /a HTTP/1.1\r\n" HOST "Connection: close\r\n"
         "Upgrade: SPDY/3.1\r\n\r\n",
         -EPROTONOSUPPORT},
        {"GET /a HTTP/1.1\r\n" HOST "Connection: Upgrade\r\n"
         "Upgrade: h2c\r\n\r\n",
         -EPROTONOSUPPORT},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "Upgrade: websocket\r\n\r\n",
         -EPROTONOSUPPORT},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "Content-Length: 1\r\n\r\n", -EFBIG},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "Content-Length: 0\r\n"
         "content-length: 0\r\n\r\n",
         -EINVAL},
        {"GET /a HTTP/1.1\r\n" HOST SPDY "Transfer-Encoding: chunked\r\n\r\n",
         -EFBIG},
    };
    struct stream_request rq;
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(request(cases[i].text, &rq, &err), cases[i].code, "%s",
                     cases[i].text);
}

Test(stream_head, number_of_fields_has_a_cap)
{
    struct stream_request rq;
    struct error err;
    cleanup_str struct str text = STR_INIT(1 << 16);
    str_add(&text, "GET /a HTTP/1.1\r\n" HOST SPDY);
    for (int i = 3; i < STREAM_FIELDS_MAX; i++)
        str_add(&text, "A: b\r\n");
    size_t size = text.size;
    str_add(&text, "\r\n");
    cr_expect_eq(request(text.data, &rq, &err), 0);
    text.size = size;
    str_add(&text, "A: b\r\n\r\n");
    cr_expect_eq(request(text.data, &rq, &err), -E2BIG);
}

Test(stream_head, answer_is_written_anew)
{
    struct stream_answer a;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(1 << 16);
    int r = answer("HTTP/1.1 101 Switching Protocols\r\n"
                   "Date: now\r\nSet-Cookie: x\r\nLocation: http://h\r\n"
                   "connection: upgrade\r\nUPGRADE: spdy/3.1\r\n"
                   "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n",
                   "SPDY/3.1", &a, &err);
    cr_assert_eq(r, 0, "%s", err.text);
    cr_expect_eq(a.status, 101);
    cr_expect_str_eq(a.protocol, "v4.channel.k8s.io");
    stream_answer_write(&a, "SPDY/3.1", &out);
    cr_expect_str_eq(str_text(&out),
                     "HTTP/1.1 101 Switching Protocols\r\n"
                     "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                     "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
}

Test(stream_head, refusals_of_the_remote_are_passed_on)
{
    struct stream_answer a;
    struct error err = {0};
    cleanup_str struct str out = STR_INIT(1 << 16);
    cr_assert_eq(answer("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
                        "X-Accepted-Stream-Protocol-Versions: v4\r\n"
                        "Content-Length: 12\r\nKeep-Alive: 5\r\n\r\n",
                        "SPDY/3.1", &a, &err),
                 0, "%s", err.text);
    cr_expect_eq(a.length, 12);
    stream_answer_write(&a, "SPDY/3.1", &out);
    cr_expect_str_eq(str_text(&out),
                     "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n"
                     "Content-Type: text/plain\r\n"
                     "X-Accepted-Stream-Protocol-Versions: v4\r\n"
                     "Content-Length: 12\r\n\r\n");
    cr_assert_eq(answer("HTTP/1.1 500\r\nTransfer-Encoding: chunked\r\n\r\n",
                        "SPDY/3.1", &a, &err),
                 0);
    cr_expect(a.chunked && a.length == UINT64_MAX);
}

#define WS "Upgrade: websocket\r\nConnection: Upgrade\r\n"

Test(stream_head, answers_that_are_refused)
{
    static const char *const texts[] = {
        "",
        "\r\n\r\n",
        "HTTP/1.1 101 x\r\n\r\n",
        "HTTP/1.1 101 x\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 x\r\n" WS "Upgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.0 101 x\r\n" WS "\r\n",
        "HTTP/1.1 +10 x\r\n" WS "\r\n",
        "HTTP/1.1 1010 x\r\n" WS "\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n",
        "HTTP/1.1 600 x\r\n\r\n",
        "HTTP/1.1 404 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 404 x\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 404 x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 404 x\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 404 x\r\nContent-Length: 1\r\n"
        "Transfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 404 x\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 404 x\r\nA: b\nC: d\r\n\r\n",
        "HTTP/1.1 101 x\r\n" WS "Sec-WebSocket-Protocol: 0123456789012345678"
        "901234567890123456789012345678901234567890123456789\r\n\r\n",
    };
    struct stream_answer a;
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        cr_expect_eq(answer(texts[i], "websocket", &a, &err), -EPROTO, "%s",
                     texts[i]);
}

Test(stream_head, our_own_answer)
{
    cleanup_str struct str out = STR_INIT(STREAM_REFUSAL_MAX);
    stream_refusal_write(404, "no such stream: \"x\"", &out);
    cr_expect_str_eq(
        str_text(&out),
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 133\r\n\r\n"
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"no such stream: \\\"x\\\"\","
        "\"reason\":\"NotFound\",\"code\":404}");
    cleanup_free char *text = xmalloc(4096);
    memset(text, '\1', 4095);
    text[4095] = '\0';
    for (int status = 400; status < 600; status++) {
        str_reset(&out);
        stream_refusal_write(status, text, &out);
        cr_expect(!out.overflow && str_text(&out)[out.size - 1] == '}');
    }
}
