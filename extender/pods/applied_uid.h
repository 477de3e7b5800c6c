/* applied_uid - the uid of a pod that was applied.  It tells when that was, so
 * that this outlives a restart without being stored. */
#ifndef BIGA_EXTENDER_PODS_APPLIED_UID_H
#define BIGA_EXTENDER_PODS_APPLIED_UID_H

#include <stdint.h>

#include "extender/pods/applied_status.h"

/* A new one: version 7 of RFC 9562, the time and 74 random bits. */
void applied_uid_create(int64_t wall_ms, char ret_uid[APPLIED_UID_SIZE]);
/* When it was made, since 1970; 0: it does not tell. */
int64_t applied_uid_time_ms(const char *uid);
int64_t applied_uid_time_s(const char *uid);

#endif
