/* arfile - the file in which the workers' hosts are: read once it is there, and
 * written whole or not at all. */
#ifndef BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARFILE_H
#define BIGA_DEPLOY_EXAMPLES_ALLREDUCE_ARFILE_H

#include "deploy/examples/allreduce/arhosts.h"

/* Waits up to `wait_s` for it to appear in its folder.  -ENOENT when it did not;
 * as arhosts_read(). */
int arfile_read(const char *path, unsigned wait_s, struct ar_hosts *ret_hosts,
                struct error *err);
/* What arhosts_read() takes. */
int arfile_write(const char *path, const char *text, struct error *err);

#endif
