/* policy_file - the operator's policy, read at the start and again whenever
 * its file changes.  A file that is wrong leaves the policy as it is. */
#ifndef BIGA_EXTENDER_APP_POLICY_FILE_H
#define BIGA_EXTENDER_APP_POLICY_FILE_H

#include "extender/keep/writer.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/io/metrics.h"
#include "model/decide/policy.h"

struct policy_file;
/* Reads `path`: the file and its policy (the caller's reference), or why
 * not: the error names the path. */
int policy_file_open(const char *path, struct policy_file **ret_file,
                     struct policy **ret_policy, struct error *err);
void policy_file_close(struct policy_file *f); /* NULL allowed */

/* From then on policy_file_poll() tells the writer, the metrics and the log of
 * changes. */
void policy_file_serve(struct policy_file *f, struct writer *writer,
                       struct metrics *metrics);
/* For a reload_item; ctx is the struct policy_file. */
void policy_file_poll(void *ctx);

const char *policy_file_path(const struct policy_file *f);
/* Why the file as it is now is not in force; nothing when it is.  Any
 * thread. */
void policy_file_error(struct policy_file *f, struct str *out);

#endif
