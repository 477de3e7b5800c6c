#include "lib/stream/stream_url.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

static void expect(const char *text, bool tls, const char *host, unsigned port,
                   const char *target)
{
    struct stream_url url;
    struct error err = {0};
    cr_assert_eq(stream_url_parse(text, &url, &err), 0, "%s", err.text);
    cr_expect_eq(url.tls, tls);
    cr_expect_str_eq(url.host, host);
    cr_expect_eq(url.port, port);
    cr_expect_str_eq(url.target, target);
}

Test(stream_url, is_taken_apart)
{
    expect("http://10.0.0.2:4711/exec/Ab_-1", false, "10.0.0.2", 4711,
           "/exec/Ab_-1");
    expect("https://card0.lab:1/attach/x?tty=1&b", true, "card0.lab", 1,
           "/attach/x?tty=1&b");
    expect("HTTPS://[fd00::2]:65535/p", true, "fd00::2", 65535, "/p");
    expect("http://[::]:80", false, "::", 80, "/");
    expect("http://h?q", false, "h", 80, "/?q");
    expect("https://h/", true, "h", 443, "/");
}

Test(stream_url, foreign_texts_are_refused)
{
    static const char *const texts[] = {
        "",
        "/exec/x",
        "ftp://h/x",
        "http:/h/x",
        "http:///x",
        "http://:80/x",
        "http://user@h/x",
        "http://user:pass@h:80/x",
        "http://h:0/x",
        "http://h:65536/x",
        "http://h:4294967377/x",
        "http://h:/x",
        "http://h:80x/x",
        "http://h:+80/x",
        "http://[fd00::2/x",
        "http://[fd00::2%eth0]:80/x",
        "http://[h]:80/x",
        "http://[]:80/x",
        "http://h/x#y",
        "http://h/x y",
        "http://h/x\r\nHost: other",
        "http://h/x\ty",
        "http://h/\xc3\xa9",
        "http://h\\x",
    };
    struct stream_url url = {.port = 7};
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        cr_expect_eq(stream_url_parse(texts[i], &url, &err), -EINVAL, "%s",
                     texts[i]);
    cr_expect_eq(url.port, 7, "written on a failure");
}

Test(stream_url, length_has_a_cap)
{
    static char text[STREAM_URL_MAX + 2];
    struct stream_url url;
    struct error err;
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "http://h/", 9);
    cr_expect_eq(stream_url_parse(text, &url, &err), -ENAMETOOLONG);
    text[STREAM_URL_MAX] = '\0';
    cr_expect_eq(stream_url_parse(text, &url, &err), 0);
    memset(text + 7, 'h', STREAM_HOST_MAX + 1);
    cr_expect_eq(stream_url_parse(text, &url, &err), -EINVAL);
}

static int at(const char *host_of_url, const char *endpoint, struct error *err)
{
    struct stream_url url = {.port = 1};
    (void)snprintf(url.host, sizeof url.host, "%s", host_of_url);
    return stream_url_is_at(&url, endpoint, err);
}

Test(stream_url, only_the_endpoints_host_is_dialled)
{
    struct error err = {0};
    cr_expect_eq(at("10.0.0.2", "10.0.0.2", &err), 0);
    cr_expect_eq(at("fd00::2", "fd00:0::0:2", &err), 0);
    cr_expect_eq(at("::ffff:10.0.0.2", "10.0.0.2", &err), 0);
    cr_expect_eq(at("Card0", "card0", &err), 0);
    cr_expect_eq(at("127.0.0.1", "127.0.0.1", &err), 0);
    /* all of its addresses, or the one that a name led to there */
    cr_expect_eq(at("::", "10.0.0.2", &err), 0);
    cr_expect_eq(at("0.0.0.0", "10.0.0.2", &err), 0);
    cr_expect_eq(at("10.0.0.2", "card0", &err), 0);

    cr_expect_eq(at("10.0.0.3", "10.0.0.2", &err), -EHOSTUNREACH);
    cr_expect(strstr(err.text, "10.0.0.3") && strstr(err.text, "10.0.0.2"));
    cr_expect_eq(at("card1", "card0", &err), -EHOSTUNREACH);
    cr_expect_eq(at("localhost", "10.0.0.2", &err), -EHOSTUNREACH);
    cr_expect_eq(at("127.0.0.1", "card0", &err), -EHOSTUNREACH);
    cr_expect_eq(at("127.0.0.1", "10.0.0.2", &err), -EHOSTUNREACH);
    cr_expect(strstr(err.text, "stream_server_address"));
    cr_expect_eq(at("::1", "10.0.0.2", &err), -EHOSTUNREACH);
    cr_expect_eq(at("::ffff:127.0.0.9", "card0", &err), -EHOSTUNREACH);
}
