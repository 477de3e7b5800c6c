/* The URL of a stream as a remote names it: what is taken can stand in the
 * head of a request, and says the same when it is put together again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/stream/stream_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    for (; *text; text++)
        assert(*text > ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hosts[] = {"10.0.0.2", "fd00::2", "card0"};
    static struct stream_url url, again;
    cleanup_free char *text = xstrndup((const char *)data, size);
    struct error err;
    if (stream_url_parse(text, &url, &err))
        return 0;
    check_text(url.host);
    check_text(url.target);
    assert(url.host[0] && url.target[0] == '/' && url.port > 0);
    bool six = strchr(url.host, ':') != NULL;
    cleanup_free char *same =
        xasprintf("http%s://%s%s%s:%u%s", url.tls ? "s" : "", six ? "[" : "",
                  url.host, six ? "]" : "", url.port, url.target);
    if (strlen(same) <= STREAM_URL_MAX) {
        assert(stream_url_parse(same, &again, &err) == 0);
        assert(strcmp(again.host, url.host) == 0 && again.tls == url.tls);
        assert(strcmp(again.target, url.target) == 0 && again.port == url.port);
    }
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        int r = stream_url_is_at(&url, hosts[i], &err);
        assert(r == 0 || r == -EHOSTUNREACH);
    }
    return 0;
}
