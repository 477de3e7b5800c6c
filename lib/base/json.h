/* json - cJSON for configuration and small objects, behind a strict check;
 * and a reader that names the path of what is wrong.
 *
 * cJSON alone accepts malformed texts, cuts strings at \u0000 and keeps the
 * first of two equal keys; so a text reaches it only through json_parse(). */
#ifndef BIGA_LIB_BASE_JSON_H
#define BIGA_LIB_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/mem.h"

#define JSON_MEMBERS_MAX 65536 /* members of one object */

DEFINE_CLEANUP(json, cJSON *, cJSON_Delete)

/* Check that `data` is one strict JSON text (see jscan.h) without duplicate
 * keys in any object.  0, -EINVAL with the position, or -ENOMEM when there is
 * no memory for a large text's keys. */
int json_check(const char *data, size_t size, struct error *err);

/* json_check, then cJSON; -ENOMEM also when there is none for the tree.  The
 * caller owns `*ret_json` (cJSON_Delete). */
int json_parse(const char *data, size_t size, cJSON **ret_json,
               struct error *err);

/* The same in one piece of memory, which free() releases: for reading only, as
 * cJSON's functions that change or delete would release its parts. */
int json_parse_flat(const char *data, size_t size, cJSON **ret_json,
                    struct error *err);

/* A reader walks one object.  The first error wins and carries the path:
 * "spec.devices[3].name: required member missing".  After an error every
 * getter returns its zero value, so a caller may read on and check once.
 *
 *     struct reader r;
 *     reader_init(&r, json, "spec", err);
 *     const char *name = reader_string(&r, "name", 63);
 *     int64_t n = reader_int(&r, "count", 1, 128);
 *     return reader_finish_strict(&r);   // unknown members are errors
 */
enum { READER_PATH_MAX = 192, READER_SEEN_MAX = 64 };

struct reader {
    const cJSON *json;
    struct error *err;
    char path[READER_PATH_MAX];
    const char *seen[READER_SEEN_MAX];
    unsigned n_seen;
    bool failed;
};

/* Start on `json`, which must be an object; `path` is what error texts call
 * it ("" for the top). */
void reader_init(struct reader *r, const cJSON *json, const char *path,
                 struct error *err);

/* Required members.  Texts are borrowed from the cJSON tree. */
const char *reader_string(struct reader *r, const char *name, size_t max);
int64_t reader_int(struct reader *r, const char *name, int64_t min,
                   int64_t max);
bool reader_bool(struct reader *r, const char *name);
const cJSON *reader_object(struct reader *r, const char *name);
const cJSON *reader_array(struct reader *r, const char *name, int max);

/* The same, but NULL, `otherwise` or false when the member is absent or
 * null; a member of the wrong type is an error all the same. */
const char *reader_opt_string(struct reader *r, const char *name, size_t max);
int64_t reader_opt_int(struct reader *r, const char *name, int64_t min,
                       int64_t max, int64_t otherwise);
bool reader_opt_bool(struct reader *r, const char *name, bool otherwise);
const cJSON *reader_opt_object(struct reader *r, const char *name);
const cJSON *reader_opt_array(struct reader *r, const char *name, int max);

/* Record an error about member `name` (NULL: the object itself). Returns
 * -EINVAL. */
int reader_fail(struct reader *r, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The path of a member or an array element, into the caller's buffer. */
void reader_path(const struct reader *r, const char *name, int index,
                 char ret_path[READER_PATH_MAX]);

/* 0 when nothing was wrong.  _strict also refuses members that were never
 * asked for; _lenient ignores them. */
int reader_finish_strict(struct reader *r);
int reader_finish_lenient(struct reader *r);

#endif
