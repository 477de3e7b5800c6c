/* cri_image - the calls about images. */
#ifndef BIGA_ADVERTISER_CRI_CRI_IMAGE_H
#define BIGA_ADVERTISER_CRI_CRI_IMAGE_H

#include "advertiser/cri/cri_sandbox.h"

struct cri_image {
    bool present;
    char id[CRI_TEXT_MAX];
    uint64_t size;
    /* Whose its processes are: a number, else a name, else nobody said so, and
     * they are root's. */
    int64_t uid; /* -1 none */
    char username[CRI_TEXT_MAX];
    char
        arch[16]; /* "arm64", as in its manifest; "" the runtime does not say */
};
int cri_image_status(struct cri *c, const char *image, unsigned ms,
                     struct cri_image *ret_image, struct error *err);
int cri_pull_image(struct cri *c, const char *image,
                   const struct cri_sandbox_config *sandbox, unsigned ms,
                   struct error *err);

#endif
