#include "model/topo/hugepages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 9,
    PAGE_SHIFT_MIN = 12,
    PAGE_SHIFT_MAX = 39,
    SHIFT = 10, /* from unit to unit */
};

static const char *const units[] = {"Ki", "Mi", "Gi", "Ti"};

/* A number and a unit. */
static bool read_bytes(const char *text, uint64_t *ret_bytes)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > DIGITS_MAX || text[0] == '0')
        return false;
    uint64_t bytes = strtoull(text, NULL, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        bytes <<= SHIFT;
        if (strcmp(text + n, units[i]) == 0) {
            *ret_bytes = bytes;
            return true;
        }
    }
    return false;
}

void hugepages_page_text(uint64_t page, char ret_text[HUGEPAGES_TEXT_SIZE])
{
    size_t unit = 0;
    page >>= SHIFT;
    for (; page >> SHIFT; page >>= SHIFT)
        unit++;
    (void)snprintf(ret_text, HUGEPAGES_TEXT_SIZE, "%u%s",
                   (unsigned)page & 0xfff, units[unit & 3]);
}

bool hugepages_page_parse(const char *text, uint64_t *ret_page)
{
    char plain[HUGEPAGES_TEXT_SIZE];
    uint64_t page;
    if (!read_bytes(text, &page) || (page & (page - 1)) ||
        page < UINT64_C(1) << PAGE_SHIFT_MIN ||
        page > UINT64_C(1) << PAGE_SHIFT_MAX)
        return false;
    hugepages_page_text(page, plain);
    if (strcmp(plain, text) != 0)
        return false;
    *ret_page = page;
    return true;
}

bool hugepages_amount_parse(const char *text, uint64_t page,
                            uint64_t *ret_bytes)
{
    uint64_t bytes;
    if (!read_bytes(text, &bytes) || bytes % page != 0)
        return false;
    *ret_bytes = bytes;
    return true;
}

static uint64_t *find(struct hugepages *h, uint64_t page)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].page == page)
            return &h->list[i].bytes;
    if (h->n == HUGEPAGES_SIZES_MAX)
        return NULL;
    h->list[h->n].page = page;
    h->list[h->n].bytes = 0;
    return &h->list[h->n++].bytes;
}

uint64_t hugepages_of(const struct hugepages *h, uint64_t page)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].page == page)
            return h->list[i].bytes;
    return 0;
}

bool hugepages_add(struct hugepages *h, uint64_t page, uint64_t bytes)
{
    uint64_t *at = find(h, page);
    if (at)
        *at = *at > UINT64_MAX - bytes ? UINT64_MAX : *at + bytes;
    return at != NULL;
}

bool hugepages_raise(struct hugepages *h, uint64_t page, uint64_t bytes)
{
    uint64_t *at = find(h, page);
    if (at && *at < bytes)
        *at = bytes;
    return at != NULL;
}
