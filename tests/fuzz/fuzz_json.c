/* The strict check against the scanner and cJSON: the check takes no more
 * than the scanner; what the scanner takes cJSON reads, and prints as a text
 * that the scanner takes again (unless it rounds a number out of range). */
#include "lib/base/json.h"

#include <assert.h>
#include <string.h>

#include "lib/base/jscan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool scans(const char *text, size_t size, const char **ret_fault)
{
    struct jscan s;
    jscan_init(&s, text, size);
    bool taken = jscan_skip(&s) && jscan_end(&s);
    *ret_fault = taken ? "" : s.fault;
    return taken;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same(const cJSON *a, const cJSON *b)
{
    for (; a && b; a = a->next, b = b->next)
        if (a->type != b->type || a->valueint != b->valueint ||
            a->valuedouble != b->valuedouble ||
            !is_same_text(a->string, b->string) ||
            !is_same_text(a->valuestring, b->valuestring) ||
            !is_same(a->child, b->child))
            return false;
    return !a && !b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct error err = {0};
    const char *fault;
    bool taken = scans(text, size, &fault);
    bool checked = json_check(text, size, &err) == 0;
    assert(taken || !checked);
    if (!checked) {
        assert(strstr(err.text, " at line "));
        assert(!taken || strncmp(err.text, "duplicate key", 13) == 0 ||
               strncmp(err.text, "too many members", 16) == 0);
    }
    if (!taken)
        return 0;
    cleanup_with(json) cJSON *json = cJSON_ParseWithLength(text, size);
    assert(json);
    cleanup_free cJSON *flat = NULL;
    if (checked)
        assert(json_parse_flat(text, size, &flat, &err) == 0 &&
               is_same(json, flat));
    cleanup_free char *again = cJSON_PrintUnformatted(json);
    assert(again && (scans(again, strlen(again), &fault) ||
                     strcmp(fault, "number out of range") == 0));
    cleanup_with(json) cJSON *twice = cJSON_Parse(again);
    assert(twice);
    return 0;
}
