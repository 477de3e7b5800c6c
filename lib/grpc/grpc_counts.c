#include "lib/grpc/grpc_counts.h"

#include <errno.h>

const char *grpc_outcome_name(enum grpc_outcome outcome)
{
    static const char *const names[GRPC_OUTCOMES] = {
        [GRPC_ANSWERED] = "ok",
        [GRPC_REFUSED] = "refused",
        [GRPC_LATE] = "timeout",
        [GRPC_UNREACHED] = "unreachable",
        [GRPC_DISTRUSTED] = "certificate",
        [GRPC_BROKEN] = "protocol",
        [GRPC_GIVEN_UP] = "cancelled",
    };
    return (unsigned)outcome < GRPC_OUTCOMES ? names[outcome] : "";
}

enum grpc_outcome grpc_outcome_of(int r)
{
    switch (-r) {
    case 0:
        return GRPC_ANSWERED;
    case EREMOTEIO:
        return GRPC_REFUSED;
    case ETIMEDOUT:
        return GRPC_LATE;
    case EKEYREJECTED:
        return GRPC_DISTRUSTED;
    case EPROTO:
    case EMSGSIZE:
        return GRPC_BROKEN;
    case ECANCELED:
        return GRPC_GIVEN_UP;
    default:
        return GRPC_UNREACHED;
    }
}
