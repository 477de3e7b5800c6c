/* A path of JSON: any text is one or refused, and what is one leads somewhere
 * within the JSON or nowhere. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/base/json_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char json[] = "{\"a\":[{\"b\":1},[2]],\"c\":{\"d\":\"e\"}}";
    cleanup_with(json) cJSON *tree = cJSON_Parse(json);
    cleanup_free char *path = xstrndup(size ? (const char *)data : "", size);
    cleanup_str struct str out = STR_INIT(1024);
    struct error err = {0};
    assert(tree);
    if (json_path_check(path, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    const cJSON *at = json_path_find(tree, path);
    assert(json_scalar(at, &out) ==
           (cJSON_IsNumber(at) || cJSON_IsString(at) || cJSON_IsBool(at)));
    return 0;
}
