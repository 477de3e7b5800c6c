#include "lib/h2/grpc_text.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/hidden_text.h"
#include "lib/base/mem.h"

void grpc_text(const char *data, size_t size, char *ret_text, size_t text_size)
{
    size_t used = 0;
    for (size_t i = 0, n; i < size; i += n) {
        const char *at = data + i;
        bool hidden;
        n = hidden_text_next(at, size - i, &hidden);
        char other = *at == '\n' || *at == '\t' || *at == '\r' ? ' ' : '?';
        size_t add = hidden ? 1 : n;
        if (used + add >= text_size)
            break;
        memcpy(ret_text + used, hidden ? &other : at, add);
        used += add;
    }
    ret_text[used] = '\0';
}

size_t grpc_text_decode(const char *value, size_t size, char *ret_data,
                        size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n < max; i++) {
        int high = -1, low = -1;
        if (value[i] == '%' && i + 2 < size) {
            high = hex_digit(value[i + 1]);
            low = hex_digit(value[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            ret_data[n++] = (char)(high << 4 | low);
            i += 2;
        } else {
            ret_data[n++] = value[i];
        }
    }
    return n;
}

void grpc_text_encode(const char *data, size_t size, struct str *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            str_add_c(out, (char)c);
        } else {
            str_add_c(out, '%');
            str_add_c(out, digits[c >> 4]);
            str_add_c(out, digits[c & 15]);
        }
    }
}

/* --- grpc-timeout --------------------------------------------------------- */

/* `n` units are `n` * `times` / `parts` milliseconds. */
static const struct unit {
    char name;
    int64_t times, parts;
} units[] = {
    {'m', 1, 1},       {'S', 1000, 1}, {'M', 60000, 1},
    {'H', 3600000, 1}, {'u', 1, 1000}, {'n', 1, 1000000},
};
enum { DIGITS_MAX = 8, VALUE_MAX = 99999999, EXACT_UNITS = 4 };

bool grpc_timeout_read(const char *text, int64_t *ret_ms)
{
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > DIGITS_MAX || !text[digits] || text[digits + 1])
        return false;
    int64_t value = strtol(text, NULL, 10);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (units[i].name == text[digits]) {
            *ret_ms = (value * units[i].times + units[i].parts - 1) /
                      units[i].parts;
            return true;
        }
    return false;
}

void grpc_timeout_write(int64_t ms, char ret_text[GRPC_TIMEOUT_MAX])
{
    int64_t value = VALUE_MAX;
    size_t i = 0;
    if (ms < 1)
        ms = 1;
    for (; i < EXACT_UNITS; i++) {
        value = (ms - 1) / units[i].times + 1;
        if (value <= VALUE_MAX)
            break;
    }
    if (i == EXACT_UNITS) { /* 11,000 years are as good as never */
        value = VALUE_MAX;
        i--;
    }
    (void)snprintf(ret_text, GRPC_TIMEOUT_MAX, "%d%c", (int)value,
                   units[i].name);
}
