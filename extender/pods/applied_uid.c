#include "extender/pods/applied_uid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/base64.h"

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
    uint64_t ms = 0;
    if (strlen(uid) != APPLIED_UID_SIZE - 1 || uid[8] != '-' ||
        uid[13] != '-' || uid[14] != '7')
        return 0;
    for (size_t i = 0; i < 13; i++) {
        int digit = hex_digit(uid[i]);
        if (i == 8)
            continue;
        if (digit < 0)
            return 0;
        ms = ms << 4 | (unsigned)digit;
    }
    return (int64_t)ms;
}

int64_t applied_uid_time_s(const char *uid)
{
    return applied_uid_time_ms(uid) / 1000;
}
