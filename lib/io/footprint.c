#include "lib/io/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ARENAS_MAX = 2,
    SPARE = 1 << 20, /* bytes of heap that are not given back at once */
};

void footprint_limit(void)
{
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, SPARE);
    (void)mallopt(M_MMAP_THRESHOLD, SPARE);
}

/* A segment that nobody may write to is as the file is.  Tables that the loader
 * has filled in are in one that was writable, and stay. */
static int drop_unwritten(struct dl_phdr_info *info, size_t size, void *ctx)
{
    uintptr_t page = *(const uintptr_t *)ctx;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        uintptr_t to = (from + h->p_memsz + page - 1) & ~(page - 1);
        from &= ~(page - 1);
        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W))
            /* what cannot be dropped stays */
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void footprint_trim(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(drop_unwritten, &page);
}
