/* clock - the time, injectable for tests, and waiting for it.  Deadlines and
 * ages use only the monotonic clock: wall time may jump. */
#ifndef BIGA_LIB_IO_CLOCK_H
#define BIGA_LIB_IO_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_ms(void);      /* monotonic milliseconds */
int64_t clock_ns(void);      /* monotonic nanoseconds */
int64_t clock_wall_s(void);  /* seconds since 1970, which may jump */
int64_t clock_wall_ns(void); /* nanoseconds since then */

/* A condition for clock_wait(); pthread_cond_destroy() ends it. */
void clock_wait_init(pthread_cond_t *ret_wake);
/* With `lock` held: wait for `wake` or for clock_ms() to be `due_ms`; INT64_MAX
 * is never.  False when the time has come; true may be spurious, too. */
bool clock_wait(pthread_cond_t *wake, pthread_mutex_t *lock, int64_t due_ms);

/* Until then, as poll() and epoll_wait() take it: -1 for INT64_MAX, 0 when the
 * time has come. */
int clock_poll_ms(int64_t due_ms);

/* With the lock of those who wait: as pthread_cond_signal() and _broadcast(),
 * but in virtual time whoever is woken waits no more from then on, not only
 * when it runs (clock_waiting()). */
void clock_wake_one(pthread_cond_t *wake);
void clock_wake_all(pthread_cond_t *wake);

/* Wall time in seconds since 1970 as RFC 3339 has it, in UTC without a
 * fraction: "2026-01-02T03:04:05Z"; the number itself when it is no year. */
enum { CLOCK_UTC_MAX = 32 };
void clock_format_utc(int64_t unix_s, char ret_text[CLOCK_UTC_MAX]);
/* Back, with a fraction or without, which is dropped; -1: it is none. */
int64_t clock_parse_utc(const char *text);

/* Tests: from now on time is virtual: clock_ms/_ns return `ms` (and * 1e6),
 * and who begins to wait, waits until that is due; -1 is real time again.  Who
 * is due is woken.  The caller holds none of the locks that are waited with. */
void clock_set_fake(int64_t ms);
/* Tests: is it virtual?  Real time-outs, as those of libcurl, mean nothing
 * then. */
bool clock_is_fake(void);

/* Tests: how many threads wait now while time is virtual, but those that were
 * woken for their time or by clock_wake_*(); and when the first of them is due
 * (INT64_MAX: none). */
size_t clock_waiting(int64_t *ret_next_ms);
/* Tests: wall time is `s` seconds later than it is. */
void clock_set_wall_ahead(int64_t s);

#endif
