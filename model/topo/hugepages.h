/* hugepages - how much of which size of huge pages: what a container asks for,
 * and what a set of a card's devices gives.  Pure. */
#ifndef BIGA_MODEL_TOPO_HUGEPAGES_H
#define BIGA_MODEL_TOPO_HUGEPAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HUGEPAGES_SIZES_MAX = 4, /* as many as one machine has of them */
    HUGEPAGES_TEXT_SIZE = 8, /* "512Mi" */
};

struct hugepages {
    struct {
        uint64_t page, bytes; /* of one page; of all of that size */
    } list[HUGEPAGES_SIZES_MAX];
    size_t n; /* each size once */
};

/* The size of a page as Kubernetes calls it, "2Mi": a power of two from 4Ki to
 * 512Gi in its shortest form. */
bool hugepages_page_parse(const char *text, uint64_t *ret_page);
void hugepages_page_text(uint64_t page, char ret_text[HUGEPAGES_TEXT_SIZE]);
/* "512Mi": whole pages, at least one. */
bool hugepages_amount_parse(const char *text, uint64_t page,
                            uint64_t *ret_bytes);
/* 0: none of that size. */
uint64_t hugepages_of(const struct hugepages *h, uint64_t page);
/* So much more, or up to that much; what is too much is UINT64_MAX.  False:
 * they would be more than HUGEPAGES_SIZES_MAX sizes. */
bool hugepages_add(struct hugepages *h, uint64_t page, uint64_t bytes);
bool hugepages_raise(struct hugepages *h, uint64_t page, uint64_t bytes);

#endif
