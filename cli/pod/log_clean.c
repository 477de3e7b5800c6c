#include "cli/pod/log_clean.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/hidden_text.h"
#include "lib/base/mem.h"

/* How many bytes at the end begin a character and are not all of it. */
static size_t cut_size(const char *data, size_t size)
{
    for (size_t n = 1; n <= 3 && n <= size; n++) {
        unsigned char b = (unsigned char)data[size - n];
        if (b >= 0xc0)
            return n < (b < 0xe0 ? 2U : b < 0xf0 ? 3U : 4U) ? n : 0;
        if (b < 0x80)
            break;
    }
    return 0;
}

void log_clean(const char *data, size_t size, struct log_cut *cut,
               struct str *out)
{
    cleanup_str struct str all = STR_INIT(STR_MAX_DEFAULT);
    str_add_n(&all, cut->bytes, cut->n);
    str_add_n(&all, data, size);
    const char *text = str_text(&all);
    cut->n = cut_size(text, all.size);
    size_t end = all.size - cut->n;
    memcpy(cut->bytes, text + end, cut->n);
    for (size_t i = 0, n; i < end; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, end - i, &hidden);
        if (!hidden || (text[i] && strchr("\n\t\r", text[i])))
            str_add_n(out, text + i, n);
        else
            str_add_c(out, '?');
    }
}
