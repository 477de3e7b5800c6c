#include "lib/base/jwrite.h"

void jwrite_key(struct str *out, const char *key)
{
    char last = out->size ? out->data[out->size - 1] : '\n';
    bool comma = last != '{' && last != '[' && last != ':' && last != ',' &&
                 last != '\n';
    size_t n = key ? strlen(key) : 0, size = comma + (key ? n + 3 : 0);
    if (!str_reserve(out, size))
        return;
    char *to = out->data + out->size;
    if (comma)
        *to++ = ',';
    if (key) {
        *to = '"';
        memcpy(to + 1, key, n);
        memcpy(to + 1 + n, "\":", 3);
    }
    out->size += size;
    out->data[out->size] = '\0';
}

void jwrite_object(struct str *out, const char *key)
{
    jwrite_key(out, key);
    str_add_c(out, '{');
}

void jwrite_end_object(struct str *out)
{
    str_add_c(out, '}');
}

void jwrite_array(struct str *out, const char *key)
{
    jwrite_key(out, key);
    str_add_c(out, '[');
}

void jwrite_end_array(struct str *out)
{
    str_add_c(out, ']');
}

void jwrite_text(struct str *out, const char *key, const char *text)
{
    jwrite_key(out, key);
    str_add_json(out, text);
}

void jwrite_int(struct str *out, const char *key, int64_t value)
{
    jwrite_key(out, key);
    str_add_i64(out, value);
}

void jwrite_uint(struct str *out, const char *key, uint64_t value)
{
    jwrite_key(out, key);
    str_add_u64(out, value);
}

void jwrite_bool(struct str *out, const char *key, bool value)
{
    jwrite_key(out, key);
    str_add(out, value ? "true" : "false");
}

void jwrite_null(struct str *out, const char *key)
{
    jwrite_key(out, key);
    str_add(out, "null");
}

void jwrite_text_or_null(struct str *out, const char *key, const char *text)
{
    if (text)
        jwrite_text(out, key, text);
    else
        jwrite_null(out, key);
}

void jwrite_int_or_null(struct str *out, const char *key, int64_t value)
{
    if (value >= 0)
        jwrite_int(out, key, value);
    else
        jwrite_null(out, key);
}

void jwrite_known_text(struct str *out, const char *key, const char *text)
{
    if (*text)
        jwrite_text(out, key, text);
}

void jwrite_known(struct str *out, const char *key, uint64_t value)
{
    if (value)
        jwrite_uint(out, key, value);
}
