/* kill -9 of who copies a log, at every named point, at its first, second, …
 * hit, while the log is rotated, and with half a write in the file: after the
 * restart the kubelet's files have what the remote's had, byte for byte.  A
 * kubelet that was told nothing takes its rename back, or has died as well.
 *
 *   race_log_kill
 *
 * The program runs itself as the one that dies ("--child DIR").  Exits with 77
 * when it was built without -DFAILPOINTS. */
#include <stdio.h>

#include "lib/io/failpoint.h"

#ifndef FAILPOINTS

int main(void)
{
    (void)printf("race_log_kill: skipped, built without -DFAILPOINTS\n");
    return 77;
}

#else

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/io/file.h"
#include "lib/io/log.h"
#include "tests/lib/card/follower.h"
#include "tests/lib/tmpdir.h"

enum {
    LOG_SIZE = 3 << 20,
    ROTATED_AT = 400000, /* bytes */
    FINISH_MS = 600000,
};

static const unsigned hits[] = {1, 2, 3, 5, 8};

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "race_log_kill: %s: %s\n", what, why);
    abort();
}

/* --- who dies ------------------------------------------------------------- */

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static char *file_of(const char *top, int n)
{
    return n < 0 ? xasprintf("%s/pods/pod/0.log", top)
                 : xasprintf("%s/pods/pod/0.log.%03d", top, n);
}

static int rotated(const char *top)
{
    for (int n = 0;; n++) {
        cleanup_free char *path = file_of(top, n);
        if (size_of(path) < 0)
            return n;
    }
}

static void rotate(struct log_copier *c, const char *top, const char *path)
{
    struct error err;
    cleanup_free char *to = file_of(top, rotated(top));
    /* one that is not there was renamed by a kubelet that has died: asked for
     * again, and nothing else */
    if (rename(path, to) != 0 && errno != ENOENT)
        die(path, strerror(errno));
    if (log_copier_reopen(c, "0.log", &err) != 0)
        die("reopen", err.text);
}

static int child(const char *top)
{
    struct follower card = {0};
    struct error err;
    struct log_copier *c = follower_copier(&card, top);
    cleanup_free char *path = file_of(top, -1);
    if (follower_add(c, top, "0.log", &err) != 0)
        die("add", err.text);
    do {
        if (size_of(path) < 0 || size_of(path) > ROTATED_AT ||
            rotated(top) == 0)
            rotate(c, top, path);
    } while (log_copier_finish(c, "0.log", 1, &err) == -ETIMEDOUT);
    if (log_copier_finish(c, "0.log", FINISH_MS, &err) != 0)
        die("finish", err.text);
    log_copier_destroy(c);
    return 0;
}

/* --- who looks ------------------------------------------------------------ */

/* Whether it was killed. */
static bool run(const char *self, const char *top, const char *points)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setenv("BIGA_FAILPOINTS", points, 1);
        (void)execl(self, self, "--child", top, (char *)NULL);
        _exit(1);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            die("waitpid", strerror(errno));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die(points, "the child has failed");
    return false;
}

/* The answer did not come: the kubelet takes its rename back. */
static void take_back(const char *top)
{
    int n = rotated(top);
    cleanup_free char *path = file_of(top, -1);
    cleanup_free char *last = file_of(top, n - 1);
    if (n > 0 && size_of(path) <= 0 && rename(last, path) != 0)
        die(last, strerror(errno));
}

static void compare(const char *top, const struct str *wanted,
                    const char *points)
{
    struct str all = STR_INIT(2 * LOG_SIZE);
    struct error err;
    for (int n = 0, last = rotated(top); n <= last; n++) {
        cleanup_free char *path = file_of(top, n < last ? n : -1);
        char *text = NULL;
        size_t size;
        if (file_read(path, 2 * LOG_SIZE, &text, &size, &err) != 0)
            die(points, err.text);
        str_add_n(&all, text, size);
        free(text);
    }
    if (all.size != wanted->size ||
        memcmp(all.data, wanted->data, all.size) != 0)
        die(points, "the kubelet's files have other bytes");
    str_fini(&all);
}

static bool try_point(const char *self, const struct str *wanted,
                      const char *points, bool takes_back)
{
    char *top = tmpdir_create();
    cleanup_free char *remote = xasprintf("%s/remote", top);
    if (mkdir(remote, 0755) != 0)
        die(remote, strerror(errno));
    follower_write(top, "0.log", wanted->data, wanted->size);
    bool killed = run(self, top, points);
    if (killed && takes_back)
        take_back(top);
    if (killed && run(self, top, ""))
        die(points, "killed without a reason");
    compare(top, wanted, points);
    tmpdir_remove(top);
    return killed;
}

int main(int argc, char **argv)
{
    struct str text = STR_INIT(2 * LOG_SIZE);
    unsigned n_killed = 0;
    log_set_level(LOG_ERROR);
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        return child(argv[2]);
    for (unsigned i = 0; text.size < LOG_SIZE; i++)
        str_addf(&text, "2026-01-01T00:00:00.1Z stdout F line %u\n", i);
    const char *const *name = failpoint_names();
    for (; *name; name++)
        for (size_t i = 0; i < 2 * ARRAY_LEN(hits); i++) {
            unsigned hit = hits[i / 2];
            bool half = strcmp(*name, "log-half-write") == 0;
            if (strncmp(*name, "log-", 4) != 0)
                continue;
            cleanup_free char *points =
                half ? xasprintf("log-half-write=fail:%u,"
                                 "log-before-write=kill:%u",
                                 hit, hit)
                     : xasprintf("%s=kill:%u", *name, hit);
            n_killed += try_point("/proc/self/exe", &text, points, i % 2);
        }
    (void)printf("race_log_kill: killed %u times\n", n_killed);
    str_fini(&text);
    return n_killed < 20;
}

#endif
