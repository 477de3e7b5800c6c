/* banned - functions that do not compile here, and what to use instead.
 * Included before every file by the Makefile. */
#ifndef BIGA_LIB_BASE_BANNED_H
#define BIGA_LIB_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* macros of glibc for clang, with _FORTIFY_SOURCE */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat  /* struct str, snprintf */
#pragma GCC poison sprintf vsprintf               /* struct str, snprintf */
#pragma GCC poison strtok                         /* strtok_r, strsep */
#pragma GCC poison atoi atol atoll atof           /* strtol and a check */
#pragma GCC poison gmtime localtime ctime asctime /* the _r forms */
#pragma GCC poison gets tmpnam mktemp

#endif
