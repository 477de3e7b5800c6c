/* operations - an extender with something of everything, and how each
 * operation of its description (schema/openapi.yaml) is called. */
#ifndef BIGA_TESTS_LIB_SIM_OPERATIONS_H
#define BIGA_TESTS_LIB_SIM_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/server.h"
#include "tests/lib/http/openapi.h"

/* One good call. */
struct example {
    const char *method, *path; /* of the document */
    const char *target;        /* NULL: the path */
    const char *body;
    int status;
};

/* In an order in which each finds what it needs. */
extern const struct example ops_examples[];
extern const size_t ops_n_examples;
extern cJSON *ops_document;
extern struct raw_reply ops_reply; /* of the last call */

#define OPS_JSON "Content-Type: application/json\r\n"

void ops_start(void);
void ops_stop(void);

enum server_listener ops_listener(const struct operation *op);
uint16_t ops_port(const struct operation *op);
/* "GET" of "get" */
const char *ops_upper(const char *method, char out[8]);
/* The status. */
int ops_send(const struct operation *op, const char *target,
             const char *headers, const char *body);

const char *example_target(const struct example *e);
const char *example_body(const struct example *e);
/* The next example of an operation, and the operation of an example. */
const struct example *example_next(const struct operation *op,
                                   const struct example *after);
bool example_operation(const struct example *e, struct operation *ret);

/* Asserts that the answer is one of those that are described; `what` was
 * done, for the text. */
void ops_expect_described(const struct operation *op, const char *what);

#endif
