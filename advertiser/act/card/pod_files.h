/* pod_files - the directories and files of a pod where it runs: on the host made
 * by ourselves, on a card by the helper. */
#ifndef BIGA_ADVERTISER_ACT_CARD_POD_FILES_H
#define BIGA_ADVERTISER_ACT_CARD_POD_FILES_H

#include <stdbool.h>

#include "advertiser/act/card/pod_dir.h"
#include "lib/base/error.h"
#include "model/pod/podspec.h"

/* Its volumes with their contents, before its sandbox.  -ENOENT when a card
 * needs the helper for that and it does not run. */
int pod_files_make(const struct pod_access *pod, const struct podspec *spec,
                   struct error *err);
/* All that is in its directories, also of huge pages that the card file does
 * not give any more; `spec` NULL: not known.  With `*ret_refused` whoever was
 * asked could not remove it; else nobody answered. */
int pod_files_remove(const struct pod_access *pod, const struct podspec *spec,
                     bool *ret_refused, struct error *err);

#endif
