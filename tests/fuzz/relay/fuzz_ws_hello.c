/* A WebSocket's handshake, three lines: key, version, protocols.  What is chosen
 * is one that we know, and what is answered an answer to that key. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "extender/relay/ws_hello.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next line, or NULL. */
static char *line(char **text)
{
    return *text ? strsep(text, "\n") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const known[] = {"v5.channel.k8s.io",
                                        "v4.channel.k8s.io", NULL};
    cleanup_free char *own = xstrndup((const char *)data, size);
    char *text = own;
    struct ws_ask ask;
    struct ws_hello hello;
    struct error err = {0};
    ask.key = line(&text);
    ask.version = line(&text);
    ask.protocols = line(&text);
    if (ws_hello_read(&ask, known, &hello, &err) < 0) {
        assert(*err.text);
        return 0;
    }
    assert(hello.protocol == known[0] || hello.protocol == known[1]);
    assert(strstr(ask.protocols, hello.protocol));
    assert(strlen(hello.accept) == WS_ACCEPT_SIZE - 1);
    return 0;
}
