/* sanitized - whether a sanitizer is compiled in, which keeps what was freed,
 * wants more address space than any limit of a test, and takes its time. */
#ifndef BIGA_TESTS_SANITIZED_H
#define BIGA_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* gcc */
#define SANITIZED
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

/* Of N rounds of a random test, those that are made: each costs some five times
 * as much where a sanitizer looks on, and a build without one makes them all. */
#ifdef SANITIZED
#define ROUNDS_OF(n) (((n) + 3) / 4)
#else
#define ROUNDS_OF(n) (n)
#endif

#endif
