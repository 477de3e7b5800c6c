/* thread_safety - which lock a function needs, for clang's -Wthread-safety to
 * check; other compilers see nothing.
 *
 * A `lock_role` names a lock where its address is not at hand in each
 * declaration: declare one extern, never define it, and let one pair of
 * functions that lock and unlock acquire and release it. */
#ifndef BIGA_LIB_BASE_THREAD_SAFETY_H
#define BIGA_LIB_BASE_THREAD_SAFETY_H

#ifdef __clang__
#define THREAD_SAFETY(x) __attribute__((x))
#else
#define THREAD_SAFETY(x)
#endif

/* Of functions: the caller has it, and has it afterwards. */
#define REQUIRES(role) THREAD_SAFETY(requires_capability(role))
/* The caller must not have it. */
#define EXCLUDES(role) THREAD_SAFETY(locks_excluded(role))
#define ACQUIRES(role) THREAD_SAFETY(acquire_capability(role))
#define RELEASES(role) THREAD_SAFETY(release_capability(role))
/* Of a definition: not looked into. */
#define NO_THREAD_SAFETY THREAD_SAFETY(no_thread_safety_analysis)
/* Of members: only with it. */
#define GUARDED_BY(role) THREAD_SAFETY(guarded_by(role))

struct THREAD_SAFETY(capability("mutex")) lock_role {
    char unused;
};

#endif
