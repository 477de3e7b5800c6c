#include "cli/base/ws_client.h"

#include <sys/random.h>

#include "lib/base/base64.h"

enum { KEY_SIZE = 16 };

static void fill_random(unsigned char *to, size_t size)
{
    while (getrandom(to, size, 0) != (ssize_t)size)
        ; /* so few bytes come at once, but for a signal */
}

void ws_client_add_key(struct str *out)
{
    unsigned char key[KEY_SIZE];
    fill_random(key, sizeof key);
    base64_add(out, key, sizeof key);
}

void ws_client_add_frame(enum ws_kind kind, const char *data, size_t size,
                         struct str *out)
{
    unsigned char mask[WS_MASK];
    fill_random(mask, sizeof mask);
    ws_frame_write(kind, mask, data, size, out);
}
