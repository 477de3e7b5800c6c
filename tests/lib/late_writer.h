/* late_writer - who writes a file only when somebody waits for it, as a
 * runtime may write the last lines of a container that has exited. */
#ifndef BIGA_TESTS_LIB_LATE_WRITER_H
#define BIGA_TESTS_LIB_LATE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct late_writer {
    pthread_t thread;
    pid_t reader; /* the thread that begins it */
    int fd;
    const char *text;
    atomic_bool over;
};

/* Has `path` open; adds `text` and closes it once the caller's thread sleeps in
 * a call, or late_writer_end() was called. */
void late_writer_begin(struct late_writer *w, const char *path,
                       const char *text);
void late_writer_end(struct late_writer *w);

#endif
