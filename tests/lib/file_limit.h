/* file_limit - writes that fail, as on a full disk. */
#ifndef BIGA_TESTS_FILE_LIMIT_H
#define BIGA_TESTS_FILE_LIMIT_H

/* From now on no file of this process grows beyond the size that the log of
 * the database in the state directory `dir` has; after the other, as they
 * like. */
void file_limit_set(const char *dir);
void file_limit_lift(void);

#endif
