#include "lib/h2/grpc_code.h"

#include <stdio.h>

#include "lib/base/mem.h"

const char *grpc_code_name(int code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    if (code >= 0 && (size_t)code < ARRAY_LEN(names))
        return names[code];
    static _Thread_local char other[24];
    (void)snprintf(other, sizeof other, "code %d", code);
    return other;
}
