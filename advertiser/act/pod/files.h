/* files - the contents of a pod's ConfigMaps and Secrets, from the JSON list
 * that came with it, for podspec_parse().  Pure. */
#ifndef BIGA_ADVERTISER_ACT_POD_FILES_H
#define BIGA_ADVERTISER_ACT_POD_FILES_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "model/pod/podspec.h"

struct files {
    cJSON *json; /* NULL: none */
};
/* `text` is [{"kind":"ConfigMap"|"Secret","name":"…","data":{"KEY":"base64"}}];
 * of size 0: none. 0 or -EINVAL with the path. */
int files_init(struct files *f, const char *text, size_t size,
               struct error *err);
void files_fini(struct files *f);
/* `f` must outlive it. */
struct podspec_source files_source(struct files *f);

#endif
