/* hostdir - a pod's directory where the runtime sees the advertiser's own file
 * system (the host): files, logs, and its end.  Paths are those that the
 * actuator makes; no symbolic link is followed below the pod's directory. */
#ifndef BIGA_ADVERTISER_ACT_CARD_HOSTDIR_H
#define BIGA_ADVERTISER_ACT_CARD_HOSTDIR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/io/lines.h"
#include "model/pod/podspec.h"

enum { HOSTDIR_LOG_MAX = 1 << 20 }; /* bytes read at once */

/* `dir`/logs, and `dir`/volumes with the contents of the pod's volumes;
 * those that are to be in memory below `memory`, made for them alone.  Both
 * are the owner's alone (0700), with what everybody may look into below. */
int hostdir_make(const char *dir, const char *memory,
                 const struct podspec *spec, struct error *err);
/* With all that is in it; one that is not there is a success. */
int hostdir_remove(const char *dir, struct error *err);
/* Of a container that has exited: waits, not for long, until its runtime has
 * written all of its log. */
void hostdir_log_await(const char *path);
/* What the container wrote, of a log file as the runtime writes it, as
 * actuator_logs() gives it.  A file that is not there (yet) is empty. */
int hostdir_log(const char *path, uint64_t offset, size_t max,
                struct str *ret_text, uint64_t *ret_next, struct error *err);
/* Lines as they are, see lib/io/lines.h. */
int hostdir_log_lines(const char *path, const struct lines_ask *ask,
                      struct str *ret_text, uint64_t *ret_next,
                      struct error *err);
/* As hostdir_log(), of the last `max` bytes of the file; -ENOENT: it is not there. */
int hostdir_log_tail(const char *path, size_t max, struct str *ret_text,
                     uint64_t *ret_next, struct error *err);

#endif
