/* Any bytes as the images and containers of a hostile remote: no crash, and
 * what is to go is short, and used by nobody. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "router/image/image_shelf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GOES_MAX = 16, STEP_MS = 1000 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check(struct image_shelf *s, int64_t now_ms, bool full)
{
    static const struct image_rules rules = {
        .high = 85, .low = 80, .max_age_ms = STEP_MS / 2};
    const struct image_disk disk = {.size = 100, .available = 5};
    struct image_goes goes[GOES_MAX];
    size_t n = image_shelf_plan(s, &rules, &disk, full, now_ms, goes, GOES_MAX);
    must(n <= GOES_MAX);
    for (size_t i = 0; i < n; i++) {
        must(strlen(goes[i].id) <= IMAGE_ID_MAX && goes[i].why);
        must(strlen(goes[i].name) <= IMAGE_NAME_MAX);
        must(!image_shelf_is_used(s, goes[i].id));
        must(!strchr(goes[i].id, '\x1b') && !strchr(goes[i].name, '\x1b'));
    }
}

/* The first two bytes are the size of the list of images. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(image_shelf) struct image_shelf *s = image_shelf_create();
    struct error err = {0};
    if (size < 2)
        return 0;
    size_t n = (size_t)data[0] << 8 | data[1];
    n = n < size - 2 ? n : size - 2;
    const char *rest = (const char *)data + 2;
    const struct proto_bytes images = {rest, n},
                             containers = {rest + n, size - 2 - n};
    for (int64_t now = STEP_MS; now <= 3 * STEP_MS; now += STEP_MS) {
        int e = image_shelf_see(s, "biga-card:1", images, containers, now,
                                &err);
        must(e == 0 || (err.code == -e && err.text[0]));
        check(s, now, now == STEP_MS);
    }
    return 0;
}
