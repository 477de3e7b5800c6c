#include "lib/db/dbmark.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "lib/db/dbfile.h"
#include "lib/io/log.h"

enum {
    SLOTS = 2,
    SLOT_STRIDE = 4096, /* they never share a sector, nor a page */
};

static const char magic[8] = "BIGAMARK";

struct slot {
    char magic[sizeof magic];
    uint64_t number;
    uint64_t sum; /* of what is before it */
};

struct dbmark {
    int fd;
    char *path;
    uint64_t number;
    unsigned next; /* the slot that is written next */
    bool failed;   /* said so already */
};

static uint64_t slot_sum(const struct slot *s)
{
    return hash_mix(hash_bytes(s->magic, sizeof s->magic), s->number);
}

static bool slot_read(const struct dbmark *m, unsigned i, struct slot *ret_slot)
{
    return pread(m->fd, ret_slot, sizeof *ret_slot, (off_t)i * SLOT_STRIDE) ==
               (ssize_t)sizeof *ret_slot &&
           memcmp(ret_slot->magic, magic, sizeof magic) == 0 &&
           ret_slot->sum == slot_sum(ret_slot);
}

static bool slot_write(const struct dbmark *m, unsigned i, uint64_t number)
{
    struct slot s = {.number = number};
    memcpy(s.magic, magic, sizeof magic);
    s.sum = slot_sum(&s);
    return pwrite(m->fd, &s, sizeof s, (off_t)i * SLOT_STRIDE) ==
           (ssize_t)sizeof s;
}

/* Both slots, in a file that is whole before its name is. */
static int make_whole(struct dbmark *m, const char *dir, struct error *err)
{
    cleanup_free char *fresh = xasprintf("%s.new", m->path);
    m->fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                 0600);
    if (m->fd < 0)
        return error_errno(err, errno, "%s", fresh);
    errno = EIO; /* of a write that is short */
    for (unsigned i = 0; i < SLOTS; i++)
        if (!slot_write(m, i, 0))
            return error_errno(err, errno, "%s", fresh);
    if (fsync(m->fd) < 0 || rename(fresh, m->path) < 0)
        return error_errno(err, errno, "%s", fresh);
    return dbfile_sync(dir, err);
}

/* On a full disk there is none until the next start: reading goes on there. */
static int make(struct dbmark *m, const char *dir, struct error *err)
{
    struct error why = {0};
    int e = make_whole(m, dir, &why);
    if (e == -ENOSPC || e == -EDQUOT) {
        log_event(LOG_WARN, "mark-failed", "file", m->path, "error", why.text,
                  NULL);
        if (m->fd >= 0)
            (void)close(m->fd); /* nothing that counts is in it */
        m->fd = -1;
        m->failed = true;
        return 0;
    }
    if (e < 0 && err)
        *err = why;
    return e;
}

static int load(struct dbmark *m, const char *dir, struct error *err)
{
    bool found = false;
    m->fd = open(m->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (m->fd < 0 && errno == ENOENT)
        return make(m, dir, err);
    if (m->fd < 0 || fchmod(m->fd, 0600) < 0)
        return error_errno(err, errno, "%s", m->path);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot s;
        if (!slot_read(m, i, &s))
            continue;
        found = true;
        if (s.number >= m->number) {
            m->number = s.number;
            m->next = (i + 1) % SLOTS;
        }
    }
    if (!found)
        log_event(LOG_ERROR, "mark-damaged", "file", m->path, NULL);
    return 0;
}

int dbmark_open(const char *dir, const char *name, struct dbmark **ret_mark,
                struct error *err)
{
    cleanup_with(dbmark) struct dbmark *m = xcalloc(1, sizeof *m);
    m->path = xasprintf("%s/%s-mark", dir, name);
    m->fd = -1;
    int e = load(m, dir, err);
    if (e == 0)
        *ret_mark = steal(&m);
    return e;
}

void dbmark_close(struct dbmark *m)
{
    if (!m)
        return;
    if (m->fd >= 0) {
        dbmark_sync(m);
        (void)close(m->fd); /* what counts was synced */
    }
    free(m->path);
    free(m);
}

uint64_t dbmark_get(const struct dbmark *m)
{
    return m->number;
}

void dbmark_set(struct dbmark *m, uint64_t number)
{
    if (number <= m->number || m->fd < 0)
        return;
    m->number = number;
    errno = EIO;
    bool written = slot_write(m, m->next, number);
    if (!written && !m->failed)
        log_event(LOG_WARN, "mark-failed", "file", m->path, "error",
                  strerror(errno), NULL);
    m->failed = !written;
    m->next = (m->next + 1) % SLOTS;
}

void dbmark_sync(struct dbmark *m)
{
    if (m->fd >= 0)
        (void)fdatasync(m->fd); /* one that is too old does no harm */
}
