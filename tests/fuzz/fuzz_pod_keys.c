/* Any bytes as a pod whose keys are looked at: no crash; what is said has a
 * path, is valid UTF-8, and is the same again; a cursor that went through
 * stands behind the pod. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "model/pod/pod_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_text(const char *text)
{
    size_t size = strlen(text);
    require(size > 0);
    for (size_t i = 0, n; i < size; i += n)
        require((n = utf8_sequence(text + i, size - i)) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jscan s, again, skip;
    struct error err = {0}, other = {0};
    jscan_init(&s, (const char *)data, size);
    again = skip = s;
    int r = pod_keys_check(&s, &err);
    require(pod_keys_check(&again, &other) == r && err.code == other.code &&
            strcmp(err.text, other.text) == 0);
    bool sound = jscan_skip(&skip);
    require(sound == (r != -EINVAL));
    if (sound)
        require(jscan_offset(&s) == jscan_offset(&skip));
    if (r == 0)
        return 0;
    require(r == -err.code && (r == -EDOM || r == -EINVAL));
    check_text(err.text);
    if (r == -EDOM)
        require(strncmp(err.text, "metadata.", 9) == 0 ||
                strncmp(err.text, "spec.", 5) == 0);
    return 0;
}
