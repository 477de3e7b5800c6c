/* Any text: refused, or as many documents as there are, each of which is
 * strict JSON no deeper than promised; and what is JSON means the same read as
 * YAML, or is refused. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/io/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned depth_of(const cJSON *json)
{
    unsigned most = 0;
    if (!cJSON_IsArray(json) && !cJSON_IsObject(json))
        return 0;
    for (const cJSON *c = json->child; c; c = c->next) {
        unsigned d = depth_of(c);
        most = d > most ? d : most;
    }
    return most + 1;
}

static int check(void *ctx, cJSON *json)
{
    struct error err;
    char *text = cJSON_PrintUnformatted(json);
    assert(text && depth_of(json) <= YAML_DEPTH_MAX);
    assert(json_check(text, strlen(text), &err) == 0);
    cJSON_free(text);
    cJSON_Delete(json);
    (*(unsigned *)ctx)++;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    unsigned n = 0;
    struct error err = {0};
    int r = yaml_each(text, size, check, &n, &err);
    assert(r == 0 || (r == -EINVAL && err.text[0]));
    cleanup_with(json) cJSON *yaml = NULL;
    cleanup_with(json) cJSON *json = NULL;
    int one = yaml_parse(text, size, &yaml, &err);
    assert((one == 0) == (r == 0 && n == 1));
    if (one == 0 && json_parse(text, size, &json, &err) == 0) {
        char *a = cJSON_PrintUnformatted(yaml);
        char *b = cJSON_PrintUnformatted(json);
        assert(strcmp(a, b) == 0);
        cJSON_free(a);
        cJSON_free(b);
    }
    return 0;
}
