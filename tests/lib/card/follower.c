#include "tests/lib/card/follower.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/follow.h"

static int read_back(int fd, struct cri_exec *ret_exec)
{
    off_t size = lseek(fd, 0, SEEK_END);
    str_init(&ret_exec->out, ret_exec->max);
    str_init(&ret_exec->err, 4096);
    if (!str_reserve(&ret_exec->out, (size_t)size) ||
        pread(fd, ret_exec->out.data, (size_t)size, 0) != size)
        return -EMSGSIZE;
    ret_exec->out.size = (size_t)size;
    ret_exec->out.data[size] = '\0';
    return 0;
}

int follower_exec(void *ctx, const char *remote, unsigned lane,
                  const char *const *argv, size_t n_argv, unsigned ms,
                  struct cri_exec *ret_exec, struct error *err)
{
    struct follower *f = ctx;
    (void)remote;
    (void)lane;
    (void)ms;
    (void)atomic_fetch_add(&f->n_calls, 1);
    if (atomic_fetch_sub(&f->n_fail, 1) > 0)
        return error_set(err, ECONNREFUSED, "as the test wants it");
    (void)atomic_fetch_add(&f->n_fail, 1);
    cleanup_fd int out = memfd_create("out", MFD_CLOEXEC);
    int rc = card_follow((int)n_argv - 2, argv + 2, out, err);
    if (atomic_fetch_sub(&f->n_cut, 1) > 0)
        (void)!ftruncate(out, lseek(out, 0, SEEK_END) / 2);
    else
        (void)atomic_fetch_add(&f->n_cut, 1);
    ret_exec->exit_code = rc == 0         ? 0
                          : rc == -ESTALE ? FOLLOW_STATUS_STRANGER
                                          : 1;
    return read_back(out, ret_exec);
}

struct log_copier *follower_copier(struct follower *f, const char *top)
{
    static const char *const folders[] = {"pods", "pods/pod", "remote"};
    struct error err;
    struct log_copier *c = NULL;
    (void)signal(SIGIO, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        cleanup_free char *path = xasprintf("%s/%s", top, folders[i]);
        (void)mkdir(path, 0755); /* it may be there */
    }
    cleanup_free char *pods = xasprintf("%s/pods", top);
    cleanup_free char *states = xasprintf("%s/states", top);
    cleanup_free char *meet = xasprintf("%s/meet", top);
    struct log_copier_config config = {
        .pod_logs = pods,
        .states = states,
        .remote_dir = meet,
        .exec = follower_exec,
        .ctx = f,
        .linger_ms = 8,
        .round_max = 1 << 20,
        .free_step = 1 << 20,
    };
    if (log_copier_create(&config, &c, &err) != 0) {
        (void)fprintf(stderr, "log_copier: %s\n", err.text);
        abort();
    }
    return c;
}

int follower_add(struct log_copier *c, const char *top, const char *name,
                 struct error *err)
{
    cleanup_free char *remote = xasprintf("%s/remote/%s", top, name);
    cleanup_free char *path = xasprintf("%s/pods/pod/%s", top, name);
    struct log_target target = {
        .key = name, .remote = "card", .remote_path = remote, .path = path};
    return log_copier_add(c, &target, err);
}

void follower_write(const char *top, const char *name, const char *data,
                    size_t size)
{
    cleanup_free char *path = xasprintf("%s/remote/%s", top, name);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ssize_t n = write(fd, data, size);
    if (n != (ssize_t)size)
        abort();
}
