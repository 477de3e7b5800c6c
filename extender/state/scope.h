/* scope - the namespaces whose pods somebody may see.  Immutable;
 * ref-counted. */
#ifndef BIGA_EXTENDER_STATE_SCOPE_H
#define BIGA_EXTENDER_STATE_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* What stands in place of others' pods and claims: no namespace is so. */
#define SCOPE_HIDDEN_NAMESPACE "-"
#define SCOPE_HIDDEN_NAME "hidden"

struct scope;
/* Of `n` names; NULL, as everywhere below, is all namespaces. */
struct scope *scope_create(const char *const *names, size_t n);
struct scope *scope_ref(struct scope *s);
void scope_unref(struct scope *s); /* NULL allowed */
DEFINE_CLEANUP(scope, struct scope *, scope_unref)

bool scope_sees(const struct scope *s, const char *namespace);
/* The same of "NAMESPACE/NAME". */
bool scope_sees_object(const struct scope *s, const char *object);
bool scope_is_same(const struct scope *a, const struct scope *b);
/* Another one for other names; 0 for all. */
uint64_t scope_hash(const struct scope *s);
/* "a, b". */
void scope_write(const struct scope *s, struct str *out);

#endif
