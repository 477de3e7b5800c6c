/* virtual - virtual time for tests of threads: it goes on when all of them
 * wait for it, so that nothing takes time but what waits for it. */
#ifndef BIGA_TESTS_VIRTUAL_H
#define BIGA_TESTS_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Until virtual_end() time is virtual; before any thread is started. */
void virtual_begin(void);
void virtual_end(void);
bool virtual_is_on(void);

/* When `n` threads wait in clock_wait(). */
void virtual_settle(size_t n);

/* The same; then time goes on until one of them is due, at most for `max_ms`,
 * and when `n` threads wait again it returns. */
void virtual_step(size_t n, int64_t max_ms);

/* Something, also beside the others, takes `ms`. */
void virtual_take(int64_t ms);

#endif
