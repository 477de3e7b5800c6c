/* tmpdir - a directory of its own for a test, and its end. */
#ifndef BIGA_TESTS_TMPDIR_H
#define BIGA_TESTS_TMPDIR_H

/* Under $TMPDIR or /tmp; the caller frees the text. */
char *tmpdir_create(void);
/* With everything in it. */
void tmpdir_remove(const char *dir);

#endif
