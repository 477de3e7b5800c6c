#include "model/topo/device_set.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

bool device_set_valid(const char *name, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if (size == 0 || size > DEVICE_SET_NAME_MAX || name[0] == '-' ||
        name[size - 1] == '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!name[i] || !strchr(allowed, name[i]))
            return false;
    return true;
}

/* Bytes of the name that `text` begins with. */
static size_t name_size(const char *text)
{
    return strcspn(text, " ");
}

/* Behind that name, and the space behind it. */
static const char *next_name(const char *text)
{
    text += name_size(text);
    return text + (*text == ' ');
}

/* As strcmp(), of a name that `text` begins with and one of `size` bytes. */
static int compare(const char *text, const char *name, size_t size)
{
    size_t n = name_size(text);
    int order = memcmp(text, name, n < size ? n : size);
    return order ? order : (n > size) - (n < size);
}

bool device_sets_add(struct device_sets *sets, const char *name, size_t size)
{
    size_t all = strlen(sets->text), n = 0;
    const char *at = NULL;
    if (!device_set_valid(name, size))
        return false;
    for (const char *p = sets->text; *p; p = next_name(p), n++) {
        int order = compare(p, name, size);
        if (order == 0)
            return true;
        if (order > 0 && !at)
            at = p;
    }
    if (n == DEVICE_SETS_MAX || all + size + (n > 0) > DEVICE_SETS_TEXT_MAX)
        return false;
    size_t offset = at ? (size_t)(at - sets->text) : all;
    char *to = sets->text + offset;
    memmove(to + size + (n > 0), to, all - offset + 1);
    if (n > 0)
        to[at ? size : 0] = ' ';
    memcpy(to + (n > 0 && !at), name, size);
    return true;
}

/* How many bytes of a wrong name an error repeats: plain characters alone. */
static int shown(const char *name, size_t size)
{
    size_t n = 0;
    while (n < size && n < 48 && name[n] >= ' ' && name[n] <= '~')
        n++;
    return (int)n;
}

int device_sets_parse(const char *text, char separator,
                      struct device_sets *ret_sets, struct error *err)
{
    const char ends[] = {separator, '\0'};
    struct device_sets sets = {""};
    while (*text) {
        text += strspn(text, " ");
        size_t whole = strcspn(text, ends), size = whole;
        while (size > 0 && text[size - 1] == ' ')
            size--;
        if (!device_set_valid(text, size))
            return error_set(err, EINVAL,
                             "\"%.*s\" must be the name of a set of devices: 1 "
                             "to %d of a-z, 0-9 and '-', no '-' at an end",
                             shown(text, size), text, DEVICE_SET_NAME_MAX);
        if (!device_sets_add(&sets, text, size))
            return error_set(err, EINVAL,
                             "at \"%.*s\": at most %d sets are allowed, whose "
                             "names together have at most %d bytes with a "
                             "space between",
                             shown(text, size), text, DEVICE_SETS_MAX,
                             DEVICE_SETS_TEXT_MAX);
        text += whole;
        if (*text && !*++text)
            return error_set(err, EINVAL, "ends with '%c'", separator);
    }
    *ret_sets = sets;
    return 0;
}

const char *device_sets_next(const char *text,
                             char ret_name[DEVICE_SET_NAME_MAX + 1])
{
    size_t size = name_size(text);
    assert(size > 0 && size <= DEVICE_SET_NAME_MAX);
    memcpy(ret_name, text, size);
    ret_name[size] = '\0';
    return next_name(text);
}

bool device_sets_have(const char *there, const char *wanted)
{
    for (; *wanted; wanted = next_name(wanted)) {
        const char *p = there;
        while (*p && compare(p, wanted, name_size(wanted)) != 0)
            p = next_name(p);
        if (!*p)
            return false;
    }
    return true;
}
