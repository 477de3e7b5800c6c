/* A one-time pad for the arguments of `files`: on Linux every user of the card
 * may read the arguments of any process (/proc/PID/cmdline).  The pad is made
 * on the card, sent to the host over standard output, and used once. */
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "card/card_private.h"
#include "lib/base/mem.h"

/* In the pod's folder, which is root's alone: the id, then the bytes. */
static const char pad_name[] = ".biga-pad";

static int fill(unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = getrandom(data, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

static void id_text(const unsigned char *id, char ret_text[CARD_PAD_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < PAD_ID; i++) {
        ret_text[2 * i] = digits[id[i] >> 4];
        ret_text[2 * i + 1] = digits[id[i] & 15];
    }
    ret_text[CARD_PAD_ID_SIZE - 1] = '\0';
}

static int keep(int top, const unsigned char *data, size_t size)
{
    if (unlinkat(top, pad_name, 0) != 0 && errno != ENOENT)
        return -errno;
    cleanup_fd int fd =
        openat(top, pad_name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : card_write(fd, data, size);
}

int card_pad(const char *dir, size_t size, int out,
             char ret_id[CARD_PAD_ID_SIZE], struct error *err)
{
    cleanup_fd int top = card_open_pod(dir, err);
    if (top < 0)
        return top;
    cleanup_free unsigned char *data = xmalloc(PAD_ID + size);
    int rc = fill(data, PAD_ID + size);
    if (!rc)
        rc = keep(top, data, PAD_ID + size);
    if (rc)
        return error_errno(err, -rc, "%s/%s", dir, pad_name);
    rc = card_write(out, data + PAD_ID, size);
    if (rc)
        return error_errno(err, -rc, "output");
    id_text(data, ret_id);
    return 0;
}

int pad_take(int top, const char *id, struct pad *ret_pad, struct error *err)
{
    struct pad pad = {.data = xmalloc(PAD_ID + CARD_PAD_MAX)};
    char text[CARD_PAD_ID_SIZE] = "";
    size_t size = 0;
    ssize_t n = 0;
    cleanup_fd int fd = openat(top, pad_name,
                               O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    while (fd >= 0 && size < PAD_ID + CARD_PAD_MAX &&
           (n = read(fd, pad.data + size, PAD_ID + CARD_PAD_MAX - size)) > 0)
        size += (size_t)n;
    if (size >= PAD_ID)
        id_text(pad.data, text);
    if (fd < 0 || n < 0 || strcmp(text, id) != 0) {
        free(pad.data);
        return error_set(err, ESTALE,
                         "pad %.40s: is not there any more: ask for another",
                         id);
    }
    /* whatever becomes of it, it is used once */
    if (unlinkat(top, pad_name, 0) != 0) {
        free(pad.data);
        return error_errno(err, errno, "%s", pad_name);
    }
    pad.at = PAD_ID;
    pad.size = size;
    *ret_pad = pad;
    return 0;
}

bool pad_lift(struct pad *pad, unsigned char *data, size_t size)
{
    if (!pad->data)
        return true;
    if (size > pad->size - pad->at)
        return false;
    for (size_t i = 0; i < size; i++)
        data[i] ^= pad->data[pad->at++];
    return true;
}

void pad_fini(struct pad *pad)
{
    if (pad->data)
        explicit_bzero(pad->data, pad->size);
    free(pad->data);
}
