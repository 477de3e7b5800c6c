#include "cli/base/ws_status.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

/* {"status":"Failure","message":"…","reason":"NonZeroExitCode",
 *  "details":{"causes":[{"reason":"ExitCode","message":"3"}]}} */
static const char *exit_code_of(const cJSON *status)
{
    const cJSON *cause,
        *details = cJSON_GetObjectItemCaseSensitive(status, "details");
    cJSON_ArrayForEach(cause, json_list(details, "causes"))
    {
        if (strcmp(json_text(cause, "reason"), "ExitCode") == 0)
            return json_text(cause, "message");
    }
    return "";
}

int ws_status_read(const char *json, size_t size, int *ret_code,
                   struct error *err)
{
    cleanup_with(json) cJSON *status = NULL;
    cleanup_str struct str clean = STR_INIT(ERROR_TEXT_MAX);
    int r = json_parse(json, size, &status, err);
    if (r < 0)
        return error_set(err, EPROTO, "how the command ended is no JSON");
    if (strcmp(json_text(status, "status"), "Success") == 0) {
        *ret_code = 0;
        return 0;
    }
    const char *code = exit_code_of(status);
    char *end = NULL;
    unsigned long value = strtoul(code, &end, 10);
    if (*code >= '0' && *code <= '9' && !*end && value <= 255) {
        *ret_code = (int)value;
        return 0;
    }
    if (strcmp(json_text(status, "status"), "Failure") != 0 || *code)
        return error_set(err, EPROTO,
                         "how the command ended is not understood: status "
                         "\"%.20s\", exit code \"%.20s\"",
                         json_text(status, "status"), code);
    text_clean(json_text(status, "message"), &clean);
    return error_set(err, EIO, "the runtime did not run it: %s",
                     str_text(&clean));
}
