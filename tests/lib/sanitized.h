/* sanitized - whether a sanitizer is compiled in, which keeps what was freed
 * and wants more address space than any limit of a test. */
#ifndef BIGA_TESTS_SANITIZED_H
#define BIGA_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* gcc */
#define SANITIZED
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#endif
