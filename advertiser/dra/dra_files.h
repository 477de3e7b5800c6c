/* dra_files - what is prepared, in two folders: a record of each claim, durable
 * before anybody is told, and the CDI file that container runtimes read, which
 * is made of the record and may go with the next boot.
 *
 *     DIR/UID.json                              the record (dra_record.h)
 *     CDI_DIR/xpu.biga.dev-claim_UID.json       the CDI file (cdi.h)
 *
 * A record is written first and removed last: so whoever comes after a kill
 * knows of every CDI file that may be there.  Each file is written beside its
 * place ("….new") and renamed.  One thread. */
#ifndef BIGA_ADVERTISER_DRA_DRA_FILES_H
#define BIGA_ADVERTISER_DRA_DRA_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "advertiser/dra/dra_record.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum { DRA_RECORDS_MAX = 4096 };

struct dra_files;
/* The folders are made when they are missing (DIR 0700, CDI_DIR 0755), and all
 * records read.  CDI files of ours without a record are removed, and so is what
 * was half written; a record that cannot be read is logged and removed.  No
 * other file of CDI_DIR is touched. */
int dra_files_open(const char *dir, const char *cdi_dir,
                   struct dra_files **ret_files, struct error *err);
void dra_files_close(struct dra_files *f); /* NULL allowed */
DEFINE_CLEANUP(dra_files, struct dra_files *, dra_files_close)

/* Borrowed until the next change; NULL: there is none. */
const struct dra_record *dra_files_find(const struct dra_files *f,
                                        const char *uid);
/* The one with the least UID above this one ("": of all); NULL at the end. */
const struct dra_record *dra_files_next(const struct dra_files *f,
                                        const char *uid);
size_t dra_files_count(const struct dra_files *f);

/* In place of the record of its UID.  Durable when it returns 0; -ENOSPC when
 * there are DRA_RECORDS_MAX.  Takes the record in any case. */
int dra_files_put(struct dra_files *f, struct dra_record *record,
                  struct error *err);
/* The CDI file of a record has this text; nothing is written when it has it
 * already.  `ret_written` may be NULL. */
int dra_files_put_cdi(struct dra_files *f, const char *uid,
                      const struct str *text, bool *ret_written,
                      struct error *err);
/* CDI file and record are gone, durably; also when there was none. */
int dra_files_remove(struct dra_files *f, const char *uid, struct error *err);

/* "mkdir -p": every folder of the path that is missing gets this mode. */
int dra_make_dirs(const char *path, unsigned mode, struct error *err);

#endif
