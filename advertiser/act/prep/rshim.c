#include "advertiser/act/prep/rshim.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/hidden_text.h"
#include "lib/base/mem.h"

static void put(char to[RSHIM_TEXT_MAX + 1], const char *text, size_t size)
{
    while (size > 0 && strchr(" \t\r", text[size - 1]))
        size--; /* also a NUL, which strchr() finds */
    size = size < RSHIM_TEXT_MAX ? size : RSHIM_TEXT_MAX;
    memcpy(to, text, size);
    for (size_t i = 0; i < size; i++)
        if (to[i] == '\t')
            to[i] = ' ';
    to[hidden_text_blank(to, size)] = '\0';
}

/* "NAME   VALUE" */
static void read_line(const char *line, size_t size, struct rshim *rshim)
{
    const struct {
        const char *name;
        char *to;
    } known[] = {
        {"DEV_NAME", rshim->device},
        {"BF_MODE", rshim->mode},
        {"DEV_INFO", rshim->info},
        {"OPN_STR", rshim->part},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i].name);
        if (size <= n || memcmp(line, known[i].name, n) != 0 ||
            !strchr(" \t", line[n]) || line[n] == '\0')
            continue;
        while (n < size && (line[n] == ' ' || line[n] == '\t'))
            n++;
        put(known[i].to, line + n, size - n);
    }
}

void rshim_read(const char *text, size_t size, struct rshim *ret_rshim)
{
    const char *end = text + size;
    *ret_rshim = (struct rshim){.device = ""};
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        const char *stop = nl ? nl : end;
        read_line(text, (size_t)(stop - text), ret_rshim);
        text = stop + 1;
    }
}

bool rshim_is_of(const struct rshim *rshim, const char *pci)
{
    static const char bus[] = "pcie-";
    const char *at = rshim->device;
    const char *dot = strrchr(pci, '.');
    if (!dot || strncmp(at, bus, sizeof bus - 1) != 0)
        return false;
    at += sizeof bus - 1;
    const char *colon = strchr(at, ':');
    bool whole = colon && strchr(colon + 1, ':');
    if (!whole && strncmp(pci, "0000:", 5) == 0)
        pci += 5;
    size_t n = (size_t)(dot - pci);
    return strncmp(at, pci, n) == 0 && at[n] == '.';
}

bool rshim_find(const char *dev, const char *pci, struct rshim *ret_rshim)
{
    cleanup_free char *text = xmalloc(RSHIM_MISC_MAX);
    for (int i = 0; i < RSHIM_MAX; i++) {
        struct rshim found;
        cleanup_free char *path = xasprintf("%s/rshim%d/misc", dev, i);
        /* a device: it may not hold us up */
        cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : read(fd, text, RSHIM_MISC_MAX);
        rshim_read(text, n > 0 ? (size_t)n : 0, &found);
        if (!rshim_is_of(&found, pci))
            continue;
        *ret_rshim = found;
        return true;
    }
    return false;
}
