/* tmpdir - a directory of its own for a test, and its end. */
#ifndef BIGA_TESTS_TMPDIR_H
#define BIGA_TESTS_TMPDIR_H

/* Under $TMPDIR, else where files cost no disk, else /tmp. */
char *tmpdir_create(void);
/* With everything in it; frees the name. */
void tmpdir_remove(char *dir);

#endif
