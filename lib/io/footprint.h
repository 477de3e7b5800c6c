/* footprint - a program that mostly waits, on a host whose memory belongs to
 * others: what it does not use is given back. */
#ifndef BIGA_LIB_IO_FOOTPRINT_H
#define BIGA_LIB_IO_FOOTPRINT_H

/* At the start, before any thread: few threads at work at a time need no heap
 * each, and a heap that shrinks with every large buffer has to grow again. */
void footprint_limit(void);

/* Give back free heap, and the pages of programs and libraries that were
 * needed at the start alone: those in use are mapped again from the page cache
 * at once.  Takes about a millisecond; any thread. */
void footprint_trim(void);

#endif
