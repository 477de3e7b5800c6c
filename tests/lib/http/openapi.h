/* openapi - a description of an HTTP interface (OpenAPI 3.0, as much of it as
 * schema/openapi.yaml uses), and whether an answer is as it says. */
#ifndef BIGA_TESTS_LIB_HTTP_OPENAPI_H
#define BIGA_TESTS_LIB_HTTP_OPENAPI_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "lib/base/str.h"
#include "tests/lib/http/rawclient.h"

/* Aborts when the text is none. */
cJSON *openapi_read(const char *yaml);
/* What `x` refers to, or itself; NULL stays. */
const cJSON *openapi_resolve(const cJSON *document, const cJSON *x);

/* One operation of a path. */
struct operation {
    const cJSON *document;
    const char *path;         /* "/v1/nodes/{node}" */
    const char *method;       /* "get" */
    const cJSON *item, *json; /* of the path, and its own */
};
/* The n-th operation of the document; false when there are no more. */
bool openapi_operation(const cJSON *document, size_t n,
                       struct operation *ret_operation);
/* The n-th parameter, of the path or its own, resolved; NULL: no more. */
const cJSON *openapi_parameter(const struct operation *op, size_t n);
/* Its schema's member, resolved; NULL: not said. */
const cJSON *openapi_constraint(const struct operation *op,
                                const cJSON *parameter, const char *member);

/* Is the answer one that the operation may give: its status, its type, and
 * its body?  Members that are not described are not, where any is.  Else says
 * in `why` what is not. */
bool openapi_answers(const struct operation *op, const struct raw_reply *reply,
                     struct str *why);

#endif
