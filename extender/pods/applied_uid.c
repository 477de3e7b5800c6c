#include "extender/pods/applied_uid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void applied_uid_create(int64_t wall_ms, char ret_uid[APPLIED_UID_SIZE])
{
    unsigned char u[10];
    uint64_t ms = wall_ms > 0 ? (uint64_t)wall_ms : 0;
    if (getrandom(u, sizeof u, 0) != sizeof u)
        abort(); /* it never gives less, once the system is up */
    u[0] = (unsigned char)((u[0] & 0x0f) | 0x70);
    u[2] = (unsigned char)((u[2] & 0x3f) | 0x80);
    (void)snprintf(ret_uid, APPLIED_UID_SIZE,
                   "%08x-%04x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   (unsigned)(ms >> 16 & UINT32_MAX), (unsigned)(ms & 0xffff),
                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9]);
}

int64_t applied_uid_time_ms(const char *uid)
{
    uint32_t high, low;
    char version;
    if (strlen(uid) != APPLIED_UID_SIZE - 1 ||
        sscanf(uid, "%8" SCNx32 "-%4" SCNx32 "-%c", &high, &low, &version) !=
            3 ||
        version != '7')
        return 0;
    return (int64_t)((uint64_t)high << 16 | low);
}

int64_t applied_uid_time_s(const char *uid)
{
    return applied_uid_time_ms(uid) / 1000;
}
