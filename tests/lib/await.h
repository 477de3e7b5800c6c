/* await - until something that another thread does can be seen. */
#ifndef BIGA_TESTS_AWAIT_H
#define BIGA_TESTS_AWAIT_H

#include <unistd.h>

enum { AWAIT_LOOKS = 60000, AWAIT_US = 5000 };

/* Looks until the condition is true, or for so long (5 minutes) that it never
 * will be: the caller asserts what it waited for. */
#define AWAIT(condition)                                                   \
    do {                                                                   \
        for (int await_left = AWAIT_LOOKS; await_left > 0 && !(condition); \
             await_left--)                                                 \
            (void)usleep(AWAIT_US);                                        \
    } while (0)

#endif
