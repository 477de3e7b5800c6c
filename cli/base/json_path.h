/* json_path - a member of a JSON text by its path, as kubectl's --sort-by takes
 * one: ".cards.idle", "{.pods[0].name}".  Pure. */
#ifndef BIGA_CLI_BASE_JSON_PATH_H
#define BIGA_CLI_BASE_JSON_PATH_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

enum { JSON_PATH_MAX = 1024 /* bytes */ };

/* 0, or -EINVAL: what is wrong with it. */
int json_path_check(const char *path, struct error *err);
/* What a path that is none wrong leads to; NULL: nothing is there. */
const cJSON *json_path_find(const cJSON *json, const char *path);

/* Append a text, number, true or false as a text; false for all else. */
bool json_scalar(const cJSON *json, struct str *out);

#endif
