/* Any bytes as what pods are made of: no crash; a refusal says why; what is
 * accepted is a JSON array. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/jobs/pod_documents.h"
#include "lib/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    cleanup_str struct str out = STR_INIT(1 << 20);
    cleanup_with(json) cJSON *json = NULL;
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    (void)pod_documents_need_making(text, size);
    int r = pod_documents_make(text, size, &config, 64, &out, &err);
    require(r <= 0 && (r == 0) == (err.text[0] == '\0'));
    if (r < 0)
        return 0;
    require(json_parse(str_text(&out), out.size, &json, &err) == 0);
    require(cJSON_IsArray(json) && cJSON_GetArraySize(json) <= 64);
    return 0;
}
