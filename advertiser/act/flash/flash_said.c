#include "advertiser/act/flash/flash_said.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/hidden_text.h"

struct line {
    const char *at;
    size_t size;
};

/* What comes behind the word; false: it is another line. */
static bool begins(struct line *l, const char *word)
{
    size_t n = strlen(word);
    if (l->size < n || memcmp(l->at, word, n) != 0)
        return false;
    l->at += n;
    l->size -= n;
    return true;
}

static void put(char *to, const struct line *l, size_t max)
{
    size_t size = l->size < max ? l->size : max;
    memcpy(to, l->at, size);
    for (size_t i = 0; i < size; i++)
        if (to[i] == '\t' || to[i] == '\0')
            to[i] = '?';
    to[hidden_text_blank(to, size)] = '\0';
}

static void read_progress(struct line *l, struct flash_said *said)
{
    int percent = 0;
    size_t n = 0;
    for (; n < l->size && n < 4 && l->at[n] >= '0' && l->at[n] <= '9'; n++)
        percent = percent * 10 + (l->at[n] - '0');
    bool ends = n == l->size || l->at[n] == ' ';
    if (n == 0 || !ends || percent > 100)
        return;
    said->percent = percent;
    n += n < l->size;
    const struct line rest = {l->at + n, l->size - n};
    put(said->phase, &rest, FLASH_PHASE_MAX);
}

void flash_said_read(const char *text, size_t size, struct flash_said *ret)
{
    struct flash_said said = {.percent = -1};
    const char *end = text + size;
    for (const char *nl; text < end; text = nl + 1) {
        nl = memchr(text, '\n', (size_t)(end - text));
        if (!nl)
            break; /* it is still being written */
        struct line l = {text, (size_t)(nl - text)};
        if (l.size > 0 && l.at[l.size - 1] == '\r')
            l.size--;
        if (begins(&l, "progress "))
            read_progress(&l, &said);
        else if (begins(&l, "version ") && l.size <= FLASH_VERSION_MAX)
            put(said.version, &l, FLASH_VERSION_MAX);
    }
    *ret = said;
}
