/* thread_name - what a thread is called in top -H, ps -L, gdb and perf.  One
 * without a name has that of the thread that began it. */
#ifndef BIGA_LIB_IO_THREAD_NAME_H
#define BIGA_LIB_IO_THREAD_NAME_H

enum { THREAD_NAME_MAX = 15 }; /* characters; what Linux keeps */

/* The calling thread's from now on: what it does, and for whom (NULL: for all).
 * When the name is too long, `whose` loses words from its beginning: "list" for
 * "card-0000-17-00" is "list 0000-17-00", "volumes" is "volumes 17-00". */
void thread_name(const char *what, const char *whose);

#endif
