#include "advertiser/act/flash/flash_image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

enum { PIECE = 1 << 20, SUM_SIZE = FLASH_SUM_LEN / 2 };

bool flash_sum_read(const char *text, size_t size,
                    char ret_sum[FLASH_SUM_LEN + 1])
{
    char sum[FLASH_SUM_LEN + 1] = "";
    if (size < FLASH_SUM_LEN ||
        (size > FLASH_SUM_LEN && !isspace((unsigned char)text[FLASH_SUM_LEN])))
        return false;
    for (size_t i = 0; i < FLASH_SUM_LEN; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return false;
        sum[i] = (char)tolower((unsigned char)text[i]);
    }
    memcpy(ret_sum, sum, sizeof sum);
    return true;
}

/* What it has to be. */
static int find_sum(const char *path, const char *given,
                    char ret_sum[FLASH_SUM_LEN + 1], struct error *err)
{
    cleanup_free char *beside = xasprintf("%s.sha256", path), *text = NULL;
    size_t size = strlen(given);
    if (size > 0)
        return flash_sum_read(given, size, ret_sum)
                   ? 0
                   : error_set(err, EINVAL,
                               "sha256: is \"%.80s\", must be %d hexadecimal "
                               "digits",
                               given, FLASH_SUM_LEN);
    if (access(beside, F_OK) < 0)
        return error_set(err, EINVAL,
                         "%s: nothing says what its SHA-256 must be: give it "
                         "(--sha256), or put it in %s.sha256",
                         path, path);
    int e = file_read(beside, FLASH_SUM_FILE_MAX, &text, &size, err);
    if (e == 0 && !flash_sum_read(text, size, ret_sum))
        e = error_set(err, EINVAL,
                      "%s: must begin with %d hexadecimal digits, as "
                      "sha256sum writes it",
                      beside, FLASH_SUM_LEN);
    return e == -ENOENT ? -EIO : e;
}

static int open_image(const char *path, struct stat *ret_st, struct error *err)
{
    struct stat st;
    /* a FIFO must not hold us up: do not wait for its writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "%s", path);
    int e = 0;
    if (fstat(fd, &st) < 0)
        e = error_errno(err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        e = error_set(err, EINVAL, "%s: is no regular file", path);
    else if (st.st_size == 0 || st.st_size > FLASH_IMAGE_MAX)
        e = error_set(err, EFBIG, "%s: has %jd bytes, must have 1 to %" PRId64,
                      path, (intmax_t)st.st_size, FLASH_IMAGE_MAX);
    if (e < 0) {
        (void)close(fd); /* nothing was written to it */
        return e;
    }
    *ret_st = st;
    return fd;
}

static int add_all(gnutls_hash_hd_t hash, int fd, const char *path,
                   int64_t size, bool (*keep)(void *ctx), void *ctx,
                   struct error *err)
{
    cleanup_free char *piece = xmalloc(PIECE);
    int64_t used = 0;
    for (ssize_t n = 1; n != 0;) {
        if (keep && !keep(ctx))
            return error_set(err, ECANCELED, "%s: given up", path);
        n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "%s", path);
        used += n;
        if (used > size)
            break;
        if (gnutls_hash(hash, piece, (size_t)n) < 0)
            return error_set(err, EIO, "%s: SHA-256 does not work here", path);
    }
    return used == size ? 0
                        : error_set(err, EAGAIN,
                                    "%s: changed while it was read: is it "
                                    "still being copied?",
                                    path);
}

static int sum_of(int fd, const char *path, int64_t size,
                  bool (*keep)(void *ctx), void *ctx,
                  char ret_sum[FLASH_SUM_LEN + 1], struct error *err)
{
    unsigned char bytes[SUM_SIZE];
    gnutls_hash_hd_t hash;
    if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
        return error_set(err, EIO, "%s: SHA-256 does not work here", path);
    int e = add_all(hash, fd, path, size, keep, ctx, err);
    gnutls_hash_deinit(hash, bytes);
    for (size_t i = 0; i < SUM_SIZE; i++)
        (void)snprintf(ret_sum + 2 * i, 3, "%02x", bytes[i]);
    return e;
}

int flash_image_check(const char *path, const char *sum,
                      bool (*keep)(void *ctx), void *ctx,
                      struct flash_image *ret_image, struct error *err)
{
    char wanted[FLASH_SUM_LEN + 1], found[FLASH_SUM_LEN + 1];
    struct stat st;
    int fd = open_image(path, &st, err);
    if (fd < 0)
        return fd;
    cleanup_fd int held = fd;
    int e = find_sum(path, sum, wanted, err);
    if (e == 0)
        e = sum_of(fd, path, st.st_size, keep, ctx, found, err);
    if (e == 0 && strcmp(wanted, found) != 0)
        e = error_set(err, EBADMSG,
                      "%s: its SHA-256 is %s, must be %s: it is damaged, not "
                      "whole, or another one (%jd bytes)",
                      path, found, wanted, (intmax_t)st.st_size);
    if (e == 0)
        ret_image->st = st;
    return e;
}

static bool is_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whoever writes to it, or moves it away and back, changes its ctime, which
 * nobody can set. */
bool flash_image_is_same(const char *path, const struct flash_image *image)
{
    const struct stat *was = &image->st;
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == was->st_dev &&
           st.st_ino == was->st_ino && st.st_size == was->st_size &&
           is_time(&st.st_mtim, &was->st_mtim) &&
           is_time(&st.st_ctim, &was->st_ctim);
}
