#include "router/log/log_state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"
#include "lib/io/failpoint.h"

enum { SUM_SIZE = 16 + 1 }; /* characters of the last line */

bool log_key_ok(const char *key)
{
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= LOG_KEY_MAX && !key[n] && key[0] != '.';
}

/* --- its text ------------------------------------------------------------- */

static void encode_place(const struct log_place *place, struct str *out)
{
    str_addf(out, "%" PRIu64 " %" PRIu64 " %" PRIi64 "\n", place->device,
             place->inode, place->base);
}

void log_state_encode(const struct log_state *state, struct str *out)
{
    size_t from = out->size;
    str_add(out, "biga-log 1\n");
    encode_place(&state->now, out);
    encode_place(&state->before, out);
    str_addf(out, "%" PRIu64 "\n", state->kept);
    str_addf(out, "%016" PRIx64 "\n",
             hash_bytes(out->data + from, out->size - from));
}

int log_state_decode(const char *text, size_t size, struct log_state *ret_state,
                     struct error *err)
{
    char copy[LOG_STATE_TEXT_MAX];
    struct log_state state;
    uint64_t sum;
    int end = 0;
    if (size < SUM_SIZE || size >= LOG_STATE_TEXT_MAX)
        return error_set(err, EINVAL, "state: %zu bytes", size);
    memcpy(copy, text, size);
    copy[size] = '\0';
    int n = sscanf(copy,
                   "biga-log 1\n%" SCNu64 " %" SCNu64 " %" SCNi64 "\n%" SCNu64
                   " %" SCNu64 " %" SCNi64 "\n%" SCNu64 "\n%16" SCNx64 "%n",
                   &state.now.device, &state.now.inode, &state.now.base,
                   &state.before.device, &state.before.inode,
                   &state.before.base, &state.kept, &sum, &end);
    if (n != 8 || (size_t)end + 1 != size ||
        sum != hash_bytes(copy, size - SUM_SIZE))
        return error_set(err, EINVAL, "state: is damaged");
    *ret_state = state;
    return 0;
}

/* --- after a restart ------------------------------------------------------ */

static size_t find(const struct log_place *place, const struct log_seen *seen,
                   size_t n)
{
    size_t i = 0;
    while (i < n &&
           (seen[i].inode != place->inode || seen[i].device != place->device))
        i++;
    return i;
}

static uint64_t behind(const struct log_place *place, uint64_t size)
{
    int64_t next = place->base + (int64_t)size;
    return next > 0 ? (uint64_t)next : 0;
}

/* Rotated files are compressed and removed in time, and so that the newest
 * stays longest. */
static uint64_t next_of_others(const struct log_state *state,
                               const struct log_seen *seen, size_t n,
                               bool *ret_unsure)
{
    size_t before = find(&state->before, seen, n);
    uint64_t next = state->kept;
    /* the kubelet took the newer file back: its rename was in vain */
    if (before < n && state->before.inode)
        next = behind(&state->before, seen[before].size);
    *ret_unsure = true;
    return next > state->kept ? next : state->kept;
}

void log_state_resume(const struct log_state *state,
                      const struct log_seen *seen, size_t n, size_t named,
                      struct log_resume *ret_resume)
{
    size_t now = state->now.inode ? find(&state->now, seen, n) : n;
    struct log_resume found = {.how = LOG_RESUME_OTHER};
    if (now < n) {
        found.next = behind(&state->now, seen[now].size);
        found.how = now == named ? LOG_RESUME_SAME
                    : named == n ? LOG_RESUME_RENAMED
                                 : LOG_RESUME_OTHER;
        found.file = now;
    } else {
        found.next = next_of_others(state, seen, n, &found.unsure);
    }
    *ret_resume = found;
}

/* --- on disk -------------------------------------------------------------- */

static void name_of(const char *key, const char *end,
                    char ret_name[LOG_KEY_MAX + 8])
{
    (void)snprintf(ret_name, LOG_KEY_MAX + 8, "%s%s", key, end);
}

int log_state_load(int dir, const char *key, struct log_state *ret_state,
                   struct error *err)
{
    char name[LOG_KEY_MAX + 8], text[LOG_STATE_TEXT_MAX];
    name_of(key, ".log", name);
    cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (n < 0)
        return error_errno(err, errno, "%s", name);
    int rc = log_state_decode(text, (size_t)n, ret_state, err);
    return rc ? error_wrap(err, "%s", name) : 0;
}

static int write_whole(int dir, const char *name, const struct str *text)
{
    cleanup_fd int fd = openat(
        dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, text->data, text->size);
    if (n != (ssize_t)text->size)
        return n < 0 ? -errno : -ENOSPC;
    return fsync(fd) != 0 ? -errno : 0;
}

int log_state_save(int dir, const char *key, const struct log_state *state,
                   struct error *err)
{
    char name[LOG_KEY_MAX + 8], fresh[LOG_KEY_MAX + 8];
    cleanup_str struct str text = STR_INIT(LOG_STATE_TEXT_MAX);
    log_state_encode(state, &text);
    name_of(key, ".log", name);
    name_of(key, ".new", fresh);
    int rc = write_whole(dir, fresh, &text);
    (void)failpoint("log-before-state");
    if (!rc && renameat(dir, fresh, dir, name) != 0)
        rc = -errno;
    (void)failpoint("log-after-state");
    if (!rc && fsync(dir) != 0)
        rc = -errno;
    return rc ? error_errno(err, -rc, "%s", name) : 0;
}

int log_state_remove(int dir, const char *key, struct error *err)
{
    char name[LOG_KEY_MAX + 8];
    name_of(key, ".log", name);
    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
        return error_errno(err, errno, "%s", name);
    return 0;
}
