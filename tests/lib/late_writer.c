#include "tests/lib/late_writer.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "TID (name) STATE …" */
static bool sleeps(pid_t thread)
{
    char path[64], text[128] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const char *end = n > 0 ? strrchr(text, ')') : NULL;
    return end && strncmp(end, ") S", 3) == 0;
}

static void *write_late(void *arg)
{
    struct late_writer *w = arg;
    while (!atomic_load(&w->over) && !sleeps(w->reader))
        sched_yield();
    ssize_t n = write(w->fd, w->text, strlen(w->text));
    assert(n == (ssize_t)strlen(w->text));
    close(w->fd);
    return NULL;
}

void late_writer_begin(struct late_writer *w, const char *path,
                       const char *text)
{
    *w = (struct late_writer){.reader = gettid(), .text = text};
    w->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert(w->fd >= 0);
    int e = pthread_create(&w->thread, NULL, write_late, w);
    assert(e == 0);
}

void late_writer_end(struct late_writer *w)
{
    atomic_store(&w->over, true);
    (void)pthread_join(w->thread, NULL); /* a thread of ours: joinable */
}
