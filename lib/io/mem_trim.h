/* mem_trim - give back memory that a long-running program needed only once: freed
 * heap, and code of libraries that ran at the start (it is read again from
 * the file when it runs again).  Changes nothing but the resident size. */
#ifndef BIGA_LIB_IO_MEM_TRIM_H
#define BIGA_LIB_IO_MEM_TRIM_H

#include <stddef.h>

/* Bytes of code that were offered back. */
size_t mem_trim_memory(void);

#endif
