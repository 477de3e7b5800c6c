/* yaml - YAML as people write it for Kubernetes, as JSON.
 *
 * By libyaml's parser, with the JSON types of YAML's core schema (what
 * kubectl understands): plain null, true, false, integers and decimals are
 * such, all else is text.  Refused: anchors and aliases, tags, keys that are
 * no texts, equal keys, more than YAML_DEPTH_MAX levels. */
#ifndef BIGA_LIB_IO_YAML_H
#define BIGA_LIB_IO_YAML_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "lib/base/error.h"

enum {
    YAML_DEPTH_MAX = 64,
    YAML_SIZE_MAX = 4 << 20,
    YAML_DOCUMENTS_MAX = 1024
};

/* Each document of the text (JSON is YAML), in order; empty ones are left
 * out.  The caller owns each `json` (cJSON_Delete).  -EINVAL with line and
 * column. */
typedef int yaml_document_f(void *ctx, cJSON *json);
int yaml_each(const char *data, size_t size, yaml_document_f *visit, void *ctx,
              struct error *err);
/* The only document; -EINVAL when there is none or another. */
int yaml_parse(const char *data, size_t size, cJSON **ret_json,
               struct error *err);

#endif
