#include "lib/stream/stream_url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- the text ------------------------------------------------------------- */

static int bad(struct error *err, const char *text, const char *why)
{
    return error_set(err, EINVAL, "stream's URL \"%.100s\": %s", text, why);
}

static bool is_printable(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return true;
}

/* A name of DNS or an address of version 4. */
static bool name_is_good(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    return *host && !host[strspn(host, letters)];
}

/* HOST or [HOST]; `*at` is moved behind it, as below. */
static int take_host(const char *text, const char **at, struct stream_url *url,
                     struct error *err)
{
    struct in6_addr six;
    bool brackets = **at == '[';
    const char *host = *at + brackets;
    size_t len = strcspn(host, brackets ? "]" : ":/?");
    if (len > STREAM_HOST_MAX)
        return bad(err, text, "its host is too long");
    memcpy(url->host, host, len);
    url->host[len] = '\0';
    if (brackets ? host[len] != ']' || inet_pton(AF_INET6, url->host, &six) != 1
                 : !name_is_good(url->host))
        return bad(err, text, "its host is neither a name nor an address");
    *at = host + len + brackets;
    return 0;
}

static int take_port(const char *text, const char **at, struct stream_url *url,
                     struct error *err)
{
    unsigned port = 0;
    url->port = url->tls ? 443 : 80;
    if (**at != ':')
        return 0;
    const char *digits = *at + 1;
    size_t n = strspn(digits, "0123456789");
    for (size_t i = 0; i < n && i <= 5; i++)
        port = port * 10 + (unsigned)(digits[i] - '0');
    if (n < 1 || n > 5 || port < 1 || port > UINT16_MAX)
        return bad(err, text, "its port is not 1 to 65535");
    url->port = (uint16_t)port;
    *at = digits + n;
    return 0;
}

static int take_target(const char *text, const char *at, struct stream_url *url,
                       struct error *err)
{
    if (*at && *at != '/' && *at != '?')
        return bad(err, text, "something stands between port and path");
    if (strchr(at, '#'))
        return bad(err, text, "it has a fragment");
    (void)snprintf(url->target, sizeof url->target, "%s%s",
                   *at == '/' ? "" : "/", at); /* fits: the scheme is gone */
    return 0;
}

int stream_url_parse(const char *text, struct stream_url *ret_url,
                     struct error *err)
{
    struct stream_url url = {0};
    if (strnlen(text, STREAM_URL_MAX + 1) > STREAM_URL_MAX)
        return error_set(err, ENAMETOOLONG,
                         "stream's URL \"%.100s…\" has more than %d bytes",
                         text, STREAM_URL_MAX);
    if (!is_printable(text))
        return bad(err, text, "it has a byte that is no printable ASCII");
    url.tls = strncasecmp(text, "https://", 8) == 0;
    if (!url.tls && strncasecmp(text, "http://", 7) != 0)
        return bad(err, text, "it is neither http:// nor https://");
    const char *at = text + (url.tls ? 8 : 7);
    int r = take_host(text, &at, &url, err);
    if (r == 0)
        r = take_port(text, &at, &url, err);
    if (r == 0)
        r = take_target(text, at, &url, err);
    if (r == 0)
        *ret_url = url;
    return r;
}

/* --- its host -------------------------------------------------------------- */

/* An address of either version as one of version 6; false: it is a name. */
static bool address_of(const char *host, struct in6_addr *ret_address)
{
    struct in_addr four;
    if (inet_pton(AF_INET6, host, ret_address) == 1)
        return true;
    if (inet_pton(AF_INET, host, &four) != 1)
        return false;
    memset(ret_address, 0, sizeof *ret_address);
    memset(&ret_address->s6_addr[10], 0xff, 2);
    memcpy(&ret_address->s6_addr[12], &four, sizeof four);
    return true;
}

static bool is_loopback(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LOOPBACK(a) ||
           (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static bool is_unspecified(const struct in6_addr *a)
{
    static const unsigned char none[4];
    return IN6_IS_ADDR_UNSPECIFIED(a) ||
           (IN6_IS_ADDR_V4MAPPED(a) && memcmp(&a->s6_addr[12], none, 4) == 0);
}

int stream_url_is_at(const struct stream_url *url, const char *host,
                     struct error *err)
{
    struct in6_addr theirs, ours;
    bool address = address_of(url->host, &theirs);
    bool named = !address_of(host, &ours);
    if (!address && named && strcasecmp(url->host, host) == 0)
        return 0;
    if (address && is_unspecified(&theirs))
        return 0;
    if (address && named && !is_loopback(&theirs))
        return 0;
    if (address && !named && memcmp(&theirs, &ours, sizeof ours) == 0)
        return 0;
    if (address && is_loopback(&theirs))
        return error_set(err, EHOSTUNREACH,
                         "the runtime at %s serves streams on its loopback "
                         "(%s) only: set its stream_server_address, as "
                         "deploy/card-setup does",
                         host, url->host);
    return error_set(err, EHOSTUNREACH,
                     "the runtime at %s names \"%s\" as the host of its "
                     "streams, which is not its own address: set its "
                     "stream_server_address",
                     host, url->host);
}
