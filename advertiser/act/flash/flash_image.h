/* flash_image - is the file whole that a card is to be flashed with?  By its
 * SHA-256, which is given or stands in FILE.sha256, as sha256sum writes it. */
#ifndef BIGA_ADVERTISER_ACT_FLASH_FLASH_IMAGE_H
#define BIGA_ADVERTISER_ACT_FLASH_FLASH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/base/error.h"

#define FLASH_IMAGE_MAX ((int64_t)16 << 30) /* bytes */
enum {
    FLASH_SUM_LEN = 64,        /* hexadecimal digits */
    FLASH_SUM_FILE_MAX = 4096, /* bytes of FILE.sha256 */
    FLASH_PATH_MAX = 1023,     /* bytes of the path of an image */
};

/* 64 hexadecimal digits, and then the end or a space. */
bool flash_sum_read(const char *text, size_t size,
                    char ret_sum[FLASH_SUM_LEN + 1]);

/* As it was when it was checked. */
struct flash_image {
    struct stat st;
};

/* Reads all of it. `sum` "": what stands beside.  0; -ENOENT: there is no such
 * file; -ECANCELED when keep(), which is asked now and then, said so; else
 * -errno, it cannot be used. */
int flash_image_check(const char *path, const char *sum,
                      bool (*keep)(void *ctx), void *ctx,
                      struct flash_image *ret_image, struct error *err);
/* Nobody has written to the file since that check, nor put another there. */
bool flash_image_is_same(const char *path, const struct flash_image *image);

#endif
