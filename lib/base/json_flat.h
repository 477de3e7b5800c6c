/* json_flat - a cJSON tree in one piece of memory.  Of lib/base alone: others
 * use json_parse_flat(). */
#ifndef BIGA_LIB_BASE_JSON_FLAT_H
#define BIGA_LIB_BASE_JSON_FLAT_H

#include <cjson/cJSON.h>
#include <stddef.h>

/* The tree of a text that json_check() has taken and that has so many values;
 * NULL when there is no memory for it. */
cJSON *json_flat_build(const char *data, size_t size, size_t n_values);

#endif
