#include "extender/relay/relay_line.h"

#include <stdio.h>

#include "lib/base/json.h"

int relay_line_read(const char *data, size_t size, struct relay_line *ret_line,
                    struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    struct reader r;
    int rc = json_parse(data, size, &json, err);
    if (rc < 0)
        return rc;
    reader_init(&r, json, "", err);
    int64_t status = reader_int(&r, "status", 200, 599);
    const char *text = reader_opt_string(&r, "error", RELAY_ERROR_MAX);
    if (!r.failed && status > 200 && status < 400)
        return reader_fail(&r, "status", "is %d, must be 200 or 400 to 599",
                           (int)status);
    rc = reader_finish_lenient(&r);
    if (rc < 0)
        return rc;
    ret_line->status = (unsigned)status;
    (void)snprintf(ret_line->error, sizeof ret_line->error, "%s",
                   text ? text : "");
    return 0;
}
