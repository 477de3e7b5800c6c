#include "lib/stream/stream_status.h"

/* metav1.StatusReason; "" is "unknown" there. */
static const char *reason_of(int code)
{
    switch (code) {
    case 400:
        return "BadRequest";
    case 404:
        return "NotFound";
    case 405:
        return "MethodNotAllowed";
    case 503:
        return "ServiceUnavailable";
    case 504:
        return "Timeout";
    default:
        return "";
    }
}

void stream_status_add(int code, const char *text, struct str *out)
{
    char brief[STREAM_STATUS_TEXT + 1];
    (void)snprintf(brief, sizeof brief, "%s", text);
    str_add(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                 "\"status\":\"Failure\",\"message\":");
    str_add_json(out, brief);
    str_addf(out, ",\"reason\":\"%s\",\"code\":%d}", reason_of(code), code);
}
