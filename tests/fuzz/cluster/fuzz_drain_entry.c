/* What is read of a drain is within its limits, and reads the same once it is
 * written; bytes behind a NUL are the key. */
#include <stdlib.h>
#include <string.h>

#include "extender/leader/drain_entry.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_key(const char *key)
{
    char node[DEMAND_NAME_MAX + 1], card[TOPO_ID_MAX + 1];
    char again[DRAIN_KEY_MAX + 1];
    struct error err = {0};
    if (drain_entry_read_key(key, node, card, &err) < 0)
        return;
    if (!*node || (drain_entry_key(node, card, again, &err) == 0 &&
                   strcmp(again, key) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xstrndup((const char *)data, size);
    size_t length = strlen(text);
    struct card_bar a = {0}, b = {0};
    cleanup_str struct str out = STR_INIT(DRAIN_TEXT_MAX);
    struct error err = {0};
    if (length < size) {
        cleanup_free char *key = xstrndup((const char *)data + length + 1,
                                          size - length - 1);
        try_key(key);
    }
    if (drain_entry_read(text, length, &a, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    if (!a.drains || !*a.reason || !*a.why)
        abort();
    drain_entry_write(&a, &out);
    if (drain_entry_read(str_text(&out), out.size, &b, &err) < 0 ||
        !card_bar_is_same(&a, &b) || strcmp(a.by, b.by) != 0)
        abort();
    return 0;
}
