/* podtext - pods as texts, read or refused.  In the texts ' stands for ". */
#ifndef BIGA_TESTS_PODTEXT_H
#define BIGA_TESTS_PODTEXT_H

#include <stddef.h>

#include "model/pod/demand.h"

#define POD(role, labels, annotations, spec)                \
    "{'metadata':{'name':'p','namespace':'ns','uid':'u-1'," \
    "'labels':{'biga.dev/role':'" role "'" labels "},"      \
    "'annotations':{" annotations "}},'spec':{" spec "}}"
#define REQUESTS(list) "'containers':[{'resources':{'requests':{" list "}}}]"

char *pod_quoted(const char *text); /* the caller frees */

/* demand_read() of the whole text, as it stands. */
int pod_read_bytes(const char *json, size_t size, struct demand *d,
                   struct error *err);
/* Asserts that it is read. */
struct demand pod_read_ok(const char *text);
/* Asserts that it is refused with this code, with a text that contains
 * `want`, and that the out-parameter says no more than whose pod it is, or is
 * not touched. */
void pod_refused(int code, const char *text, const char *want);

#endif
