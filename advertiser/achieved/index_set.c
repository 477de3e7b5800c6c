#include "advertiser/achieved/index_set.h"

#include <string.h>

#include "lib/base/mem.h"

bool index_set_add(struct index_set *s, uint64_t index)
{
    if (index >= INDEX_SET_MAX)
        return false;
    s->words[index / 64] |= UINT64_C(1) << (index % 64);
    return true;
}

bool index_set_has(const struct index_set *s, size_t index)
{
    return index < INDEX_SET_MAX && s->words[index / 64] >> (index % 64) & 1;
}

void index_set_unite(struct index_set *s, const struct index_set *more)
{
    for (size_t i = 0; i < ARRAY_LEN(s->words); i++)
        s->words[i] |= more->words[i];
}

bool index_set_is_empty(const struct index_set *s)
{
    return index_set_next(s, 0) == INDEX_SET_MAX;
}

size_t index_set_count(const struct index_set *s)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(s->words); i++)
        n += (size_t)__builtin_popcountll(s->words[i]);
    return n;
}

bool index_set_holds(const struct index_set *s, const struct index_set *part)
{
    for (size_t i = 0; i < ARRAY_LEN(s->words); i++)
        if (part->words[i] & ~s->words[i])
            return false;
    return true;
}

bool index_set_equal(const struct index_set *a, const struct index_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

size_t index_set_next(const struct index_set *s, size_t from)
{
    for (size_t i = from / 64; i < ARRAY_LEN(s->words); i++) {
        uint64_t word = s->words[i];
        if (i == from / 64)
            word &= UINT64_MAX << (from % 64);
        if (word)
            return i * 64 + (size_t)__builtin_ctzll(word);
    }
    return INDEX_SET_MAX;
}

/* --- text ------------------------------------------------------------------ */

static bool number_read(const char **p, const char *end, size_t *ret_number)
{
    size_t n = 0, digits = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && digits < 5; (*p)++, digits++)
        n = n * 10 + (size_t)(**p - '0');
    *ret_number = n;
    return digits > 0 && n < INDEX_SET_MAX;
}

/* N or N-M. */
static bool range_read(const char **p, const char *end, struct index_set *s)
{
    size_t first, last;
    if (!number_read(p, end, &first))
        return false;
    last = first;
    if (*p < end && **p == '-') {
        (*p)++;
        if (!number_read(p, end, &last) || last < first)
            return false;
    }
    for (size_t i = first; i <= last; i++)
        (void)index_set_add(s, i); /* it is below the limit */
    return true;
}

int index_set_parse(const char *text, size_t size, struct index_set *ret_set,
                    struct error *err)
{
    struct index_set set = {0};
    const char *p = text, *end = text + size;
    if (end > p && end[-1] == '\n')
        end--;
    bool good = size <= INDEX_SET_TEXT_MAX;
    while (good && p < end) {
        good = range_read(&p, end, &set);
        if (good && p < end)
            good = *p++ == ',' && p < end;
    }
    if (!good)
        return error_set(err, EINVAL,
                         "is \"%.*s\", must be numbers and ranges below %d, "
                         "like \"0-3,8\"",
                         (int)(size < 64 ? size : 64), text, INDEX_SET_MAX);
    *ret_set = set;
    return 0;
}

void index_set_format(const struct index_set *s, struct str *out)
{
    size_t i = index_set_next(s, 0);
    const char *comma = "";
    while (i < INDEX_SET_MAX) {
        size_t last = i;
        while (index_set_has(s, last + 1))
            last++;
        str_addf(out, "%s%zu", comma, i);
        if (last > i)
            str_addf(out, "-%zu", last);
        comma = ",";
        i = index_set_next(s, last + 1);
    }
}
