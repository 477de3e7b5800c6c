/* yaml_write - JSON as YAML for people, as kubectl's -o yaml has it.  Texts
 * that a reader of YAML 1.1 or 1.2 could take for something else are quoted. */
#ifndef BIGA_LIB_IO_YAML_WRITE_H
#define BIGA_LIB_IO_YAML_WRITE_H

#include <cjson/cJSON.h>

#include "lib/base/str.h"

/* Append `json` as one document, without a "---". */
void yaml_write(const cJSON *json, struct str *out);

#endif
