/* In the folder: "hurry", one record "GEN SEQ\n" of whoever came last and wants
 * the others to return; and "slot.XX.0" to "slot.XX.3", for the round of that
 * SEQ modulo 4, of which at most three are under way: who runs has it locked,
 * and writes "GEN SEQ begun.\n", then "GEN SEQ done\n", a line "TAG OFFSET
 * DUE\n" for each file, and ".\n".  XX are the last digits of GEN: a round may
 * hang, whose runtime was killed and takes its output no more, and no other
 * chain is to wait for it. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "card/card.h"
#include "card/card_private.h"
#include "card/follow_private.h"
#include "lib/base/mem.h"

enum {
    SLOTS = 4,
    SLOT_MAX = 64 + FOLLOW_FILES_MAX * 72, /* bytes */
    RECORD_MAX = 64,
    COME_MS = 5000, /* so long may the one before be on its way */
};

/* Up to `max` - 1 bytes of the file, as a text; empty when it cannot be
 * read. */
static void read_text(int fd, char *text, size_t max)
{
    ssize_t n = fd < 0 ? 0 : pread(fd, text, max - 1, 0);
    text[n > 0 ? n : 0] = '\0';
}

static int write_text(int fd, const char *text, size_t size)
{
    /* in one piece: who reads must not find half a record */
    ssize_t n = pwrite(fd, text, size, 0);
    if (n != (ssize_t)size)
        return n < 0 ? -errno : -ENOSPC;
    return ftruncate(fd, (off_t)size) != 0 ? -errno : 0;
}

static int name_open(const struct follow_meet *m, const char *name)
{
    int fd = openat(m->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    return fd < 0 ? -errno : fd;
}

static int slot_open(const struct follow_meet *m, uint64_t seq)
{
    char name[24];
    size_t len = strlen(m->gen);
    (void)snprintf(name, sizeof name, "slot.%s.%d",
                   m->gen + (len > 2 ? len - 2 : 0), (int)(seq % SLOTS));
    return name_open(m, name);
}

static void wait_for_change(const struct follow_meet *m)
{
    char events[4096];
    struct pollfd p = {.fd = m->notify, .events = POLLIN};
    (void)poll(&p, 1, FOLLOW_LOOK_MS / 5); /* all is looked at again */
    while (m->notify >= 0 && read(m->notify, events, sizeof events) > 0)
        ;
}

/* --- to return at once ---------------------------------------------------- */

/* The round that was last to want it; false when none is of our chain. */
static bool hurry_parse(const struct follow_meet *m, int fd, uint64_t *ret_seq)
{
    char text[RECORD_MAX];
    size_t len = strlen(m->gen);
    read_text(fd, text, sizeof text);
    *ret_seq = 0;
    if (strncmp(text, m->gen, len) != 0 || text[len] != ' ')
        return false;
    *ret_seq = strtoull(text + len + 1, NULL, 10);
    return true;
}

static bool hurry_read(const struct follow_meet *m, uint64_t *ret_seq)
{
    cleanup_fd int fd = openat(m->dir, "hurry",
                               O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return hurry_parse(m, fd, ret_seq);
}

static int hurry_others(const struct follow_meet *m)
{
    char text[RECORD_MAX];
    uint64_t seq;
    int n = snprintf(text, sizeof text, "%s %" PRIu64 "\n", m->gen, m->seq);
    cleanup_fd int fd = name_open(m, "hurry");
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_EX) != 0) /* until it is closed */
        return -errno;
    /* a later round may have been the first to come here */
    return hurry_parse(m, fd, &seq) && seq > m->seq
               ? 0
               : write_text(fd, text, (size_t)n);
}

void follow_meet_look(struct follow_meet *m)
{
    uint64_t seq;
    if (!hurry_read(m, &seq) || seq > m->seq)
        m->hurried = true;
}

/* --- begin and end -------------------------------------------------------- */

static int slot_begin(struct follow_meet *m)
{
    char text[RECORD_MAX];
    int n = snprintf(text, sizeof text, "%s %" PRIu64 " begun.\n", m->gen,
                     m->seq);
    m->slot = slot_open(m, m->seq);
    if (m->slot < 0)
        return m->slot;
    /* whoever has it is of a chain that is over, or has looked who is before
     * it; it is told again, should it have come after us */
    while (flock(m->slot, LOCK_EX | LOCK_NB) != 0) {
        int rc = errno != EWOULDBLOCK ? -errno : hurry_others(m);
        if (rc)
            return rc;
        wait_for_change(m);
    }
    return write_text(m->slot, text, (size_t)n);
}

int follow_meet_open(struct follow_meet *m, const char *dir, struct error *err)
{
    m->slot = m->notify = -1;
    m->dir = card_open_pod(dir, err);
    if (m->dir < 0)
        return m->dir;
    m->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    char name[40];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", m->dir);
    if (m->notify >= 0)
        (void)inotify_add_watch(m->notify, name, IN_MODIFY | IN_CREATE);
    int rc = m->start == FOLLOW_NEXT ? 0 : hurry_others(m);
    if (!rc)
        rc = slot_begin(m);
    return rc ? error_errno(err, -rc, "%s", dir) : 0;
}

void follow_meet_close(struct follow_meet *m)
{
    int fds[] = {m->slot, m->notify, m->dir};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]); /* what counts is written */
}

int follow_meet_pass(const struct follow_meet *m,
                     const struct follow_file *files, size_t n,
                     struct error *err)
{
    cleanup_free char *text = xmalloc(SLOT_MAX);
    size_t at = (size_t)snprintf(text, SLOT_MAX, "%s %" PRIu64 " done\n",
                                 m->gen, m->seq);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, SLOT_MAX - at,
                               "%" PRIu32 " %" PRIu64 " %" PRIi64 "\n",
                               files[i].tag, files[i].next, files[i].due_ns);
    at += (size_t)snprintf(text + at, SLOT_MAX - at, ".\n");
    int rc = write_text(m->slot, text, at);
    return rc ? error_errno(err, -rc, "slot") : 0;
}

/* --- the one before ------------------------------------------------------- */

enum before { BEFORE_NONE, BEFORE_BEGUN, BEFORE_DONE };

/* `*ret_list`: behind its first line. */
static enum before before_parse(const struct follow_meet *m, const char *text,
                                const char **ret_list)
{
    char head[RECORD_MAX];
    int n = snprintf(head, sizeof head, "%s %" PRIu64 " ", m->gen, m->seq - 1);
    size_t size = strlen(text);
    if (strncmp(text, head, (size_t)n) != 0)
        return BEFORE_NONE;
    if (strncmp(text + n, "done\n", 5) != 0 || size < 3 ||
        strcmp(text + size - 3, "\n.\n") != 0)
        return BEFORE_BEGUN;
    *ret_list = text + n + 5;
    return BEFORE_DONE;
}

static void take_over(const char *list, struct follow_file *files, size_t n)
{
    char *end;
    /* both lists are in the order of tags, as the host makes them */
    for (size_t i = 0; *list >= '0' && *list <= '9'; list = end + 1) {
        unsigned long long tag = strtoull(list, &end, 10);
        unsigned long long next = strtoull(end, &end, 10);
        long long due = strtoll(end, &end, 10);
        while (i < n && files[i].tag < tag)
            i++;
        if (i < n && files[i].tag == tag) {
            files[i].next = next;
            files[i].due_ns = due;
        }
    }
}

/* Whether nobody has it locked. */
static bool is_free(int slot)
{
    return flock(slot, LOCK_SH | LOCK_NB) == 0 && flock(slot, LOCK_UN) == 0;
}

int follow_meet_wait(struct follow_meet *m, struct follow_file *files, size_t n,
                     struct error *err)
{
    uint64_t seq;
    const char *list;
    bool begun = false;
    cleanup_free char *text = xmalloc(SLOT_MAX);
    int64_t come_ns = follow_now_ns() + (int64_t)COME_MS * 1000000;
    cleanup_fd int slot = m->start == FOLLOW_FIRST ? -1
                                                   : slot_open(m, m->seq - 1);
    while (m->start != FOLLOW_FIRST) {
        /* free before it was seen begun, it may be begun since then */
        bool left = begun && is_free(slot);
        read_text(slot, text, SLOT_MAX);
        enum before found = before_parse(m, text, &list);
        if (found == BEFORE_DONE) {
            take_over(list, files, n);
            break;
        }
        if (found == BEFORE_BEGUN && !begun) {
            begun = true;
            continue;
        }
        /* it may be the second to start, and what it writes not be there */
        bool over = found == BEFORE_NONE ? follow_now_ns() > come_ns
                                         : left || !hurry_read(m, &seq);
        if (over)
            return error_set(err, ESTALE,
                             "round %" PRIu64 " has no one before it", m->seq);
        wait_for_change(m);
    }
    if (!hurry_read(m, &seq))
        (void)hurry_others(m); /* a late one of a chain that is over */
    m->hurried = false;
    follow_meet_look(m);
    return 0;
}
