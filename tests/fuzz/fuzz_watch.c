/* What the reflector reads of an answer: a list's own members, an event of a
 * watch, a Status.  What is taken is JSON, and within its caps. */
#include <assert.h>
#include <string.h>

#include "lib/kube/reflector_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool scans(const char *data, size_t size)
{
    struct jscan s;
    jscan_init(&s, data, size);
    return jscan_skip(&s) && jscan_end(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    cleanup_str struct str next = STR_INIT(KUBE_CONTINUE_MAX);
    char version[KUBE_VERSION_MAX + 1];
    struct error err = {0};
    struct status status;
    struct event event;
    if (kube_list_read(text, size, version, &next, &err) == 0) {
        assert(scans(text, size));
        assert(version[0] && strlen(version) <= KUBE_VERSION_MAX);
        assert(strlen(str_text(&next)) == next.size);
    } else {
        assert(err.text[0]);
    }
    if (event_read(text, size, &event, &err) == 0) {
        assert(scans(text, size));
        assert(scans(event.object.data, event.object.size));
        assert(event.object.data > text &&
               event.object.data + event.object.size < text + size);
        assert((event.version[0] == '\0') == (event.type == EVENT_ERROR));
    }
    status_read(text, size, &status);
    assert(memchr(status.message, '\0', sizeof status.message));
    return 0;
}
