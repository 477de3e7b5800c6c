/* fabric_files - the files that say where hosts hang, read at the start and
 * again whenever one of them changes.  When one is wrong, the fabric stays as
 * it is. */
#ifndef BIGA_EXTENDER_APP_FABRIC_FILES_H
#define BIGA_EXTENDER_APP_FABRIC_FILES_H

#include "extender/keep/writer.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/io/metrics.h"
#include "model/fabric/fabric.h"

struct fabric_files;
/* Reads the files of a comma-separated list ("": none yet, then there is no
 * fabric either); `labels` is for
 * fabric_labels_parse().  The files and their fabric (the caller's
 * reference), or why not: the error names the setting or the file. */
int fabric_files_open(const char *list, const char *labels,
                      struct fabric_files **ret_files,
                      struct fabric **ret_fabric, struct error *err);
void fabric_files_close(struct fabric_files *f); /* NULL allowed */

/* From then on fabric_files_poll() tells the writer, the metrics and the log of
 * changes. */
void fabric_files_serve(struct fabric_files *f, struct writer *writer,
                        struct metrics *metrics);
/* Nodes with labels that say where they hang, beside the files: what these
 * say comes first. */
struct fabric_nodes {
    bool (*changed)(void *ctx);                /* since it was last asked */
    void (*write)(void *ctx, struct str *out); /* a list of Nodes as JSON, or
                                                * nothing */
    void *ctx;
};
/* From the next poll on; all NULL ends it. Any thread. */
void fabric_files_join(struct fabric_files *f,
                       const struct fabric_nodes *nodes);
/* The labels to look at; none: those of all presets. */
const struct fabric_labels *fabric_files_labels(const struct fabric_files *f);
/* For a reload_item; ctx is the struct fabric_files.  Any thread. */
void fabric_files_poll(void *ctx);

size_t fabric_files_count(const struct fabric_files *f);
const char *fabric_files_path(const struct fabric_files *f, size_t i);
/* Why the files as they are now are not in force; nothing when they are.
 * Any thread. */
void fabric_files_error(struct fabric_files *f, struct str *out);

#endif
