/* testdata - where the machines, traces and captures are that the tests
 * read but the repository does not carry. */
#ifndef BIGA_TESTS_TESTDATA_H
#define BIGA_TESTS_TESTDATA_H

#include <stddef.h>

/* $BIGA_DATA, else ../shared/data seen from the working directory; NULL when
 * neither is there (a test then prints why and skips). A constant text. */
const char *testdata_dir(void);

/* The whole file, NUL-terminated; the caller frees.  Aborts when it cannot
 * be read. */
char *testdata_read(const char *path, size_t *ret_size);

#endif
