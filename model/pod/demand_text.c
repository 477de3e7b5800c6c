/* One text of a pod: names and numbers, and what is said of wrong ones. */
#include <string.h>

#include "lib/base/utf8.h"
#include "model/pod/demand_private.h"

enum {
    RAW_MAX = 6 * DEMAND_NAME_MAX, /* every character an escape */
    SHOWN_MAX = 48, /* bytes of a wrong value that an error repeats */
};

int demand_fail_text(const struct pod *pod, enum pod_text which,
                     const char *allowed, struct error *err)
{
    const struct jtext *t = &pod->text[which];
    size_t shown = t->size < SHOWN_MAX ? t->size : SHOWN_MAX;
    while (shown < t->size && shown > 0 && utf8_inside(t->data[shown]))
        shown--; /* not within a character */
    return error_set(err, EDOM, "%s: is \"%.*s%s\", must be %s",
                     pod_text_path(which), (int)shown, t->data,
                     shown < t->size ? "…" : "", allowed);
}

bool demand_copy_text(const struct jtext *t, char *dst, size_t dst_size)
{
    char raw[RAW_MAX + 1];
    if (t->size > RAW_MAX)
        return false;
    size_t size = jtext_decode(t, raw);
    if (size >= dst_size)
        return false;
    memcpy(dst, raw, size + 1);
    return true;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

bool demand_is_name(const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || !is_alnum(text[0]) || !is_alnum(text[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(text[i]) && !strchr("-_.", text[i]))
            return false;
    return true;
}

int demand_take_name(const struct pod *pod, enum pod_text which, char *dst,
                     size_t dst_size, struct error *err)
{
    char name[DEMAND_NAME_MAX + 1], allowed[96];
    if (demand_copy_text(&pod->text[which], name, dst_size) &&
        demand_is_name(name)) {
        memcpy(dst, name, strlen(name) + 1);
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed,
                   "1 to %zu letters, digits, '-', '_' or '.', the first and "
                   "last a letter or digit",
                   dst_size - 1);
    return demand_fail_text(pod, which, allowed, err);
}

int demand_take_number(const struct pod *pod, enum pod_text which, int32_t max,
                       int32_t *value, struct error *err)
{
    int32_t min = which == POD_SIZE || which == POD_CARDS ? 1 : 0;
    char text[12], allowed[64];
    int64_t parsed = 0;
    bool ok = demand_copy_text(&pod->text[which], text, sizeof text) &&
              text[0] != '\0' && (text[0] != '0' || text[1] == '\0');
    for (const char *p = text; ok && *p; p++) {
        ok = *p >= '0' && *p <= '9';
        parsed = parsed * 10 + (*p - '0');
    }
    if (ok && parsed >= min && parsed <= max) {
        *value = (int32_t)parsed;
        return 0;
    }
    (void)snprintf(allowed, sizeof allowed, "a whole number from %d to %d",
                   (int)min, (int)max);
    return demand_fail_text(pod, which, allowed, err);
}
