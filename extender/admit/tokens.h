/* tokens - a file of bearer tokens and whose they are.
 *
 *     # a comment
 *     TOKEN,USER
 *     TOKEN,USER,log:*,exec:team-a,attach:team-a
 *
 * Behind the user stand rights to pods: VERB:NAMESPACE, VERB one of log, exec,
 * attach, portforward, view or * for all of them, NAMESPACE one or * for all.
 * Without any it is log:*.  A token all of whose rights are of some namespaces
 * sees and changes what is in these alone (reach.h), and view is a right to
 * nothing else; all else that the listener has, each token may.
 *
 * A token has 16 to 256 letters, digits or any of "-._~+/=" (RFC 6750); a
 * user is a name of up to 253 printable characters without a comma.  Of the
 * tokens only their SHA-256 is kept.  Pure. */
#ifndef BIGA_EXTENDER_ADMIT_TOKENS_H
#define BIGA_EXTENDER_ADMIT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "extender/state/scope.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"

enum {
    TOKENS_MAX = 1024,
    TOKENS_TEXT_MAX = 1 << 20, /* bytes of the file */
    TOKEN_MIN = 16,
    TOKEN_MAX = 256,
    TOKEN_USER_MAX = 253,
    TOKEN_RIGHTS_MAX = 64, /* of one token */
    TOKEN_NAMESPACE_MAX = 63,
};

struct tokens;
/* The error names the line, never what stands there: it may be a token. */
int tokens_parse(const char *text, size_t size, struct tokens **ret_tokens,
                 struct error *err);
void tokens_destroy(struct tokens *t); /* NULL allowed */
DEFINE_CLEANUP(tokens, struct tokens *, tokens_destroy)
size_t tokens_count(const struct tokens *t);
/* Whose token it is; NULL: nobody's.  Borrowed. */
const char *tokens_user(const struct tokens *t, const char *token);
/* The namespaces that it sees, NULL: all, as of a token that is nobody's.
 * Borrowed. */
struct scope *tokens_scope(const struct tokens *t, const char *token);
/* May it, of a pod in that namespace: "log", "exec", "attach",
 * "portforward" or "view"? */
bool tokens_may(const struct tokens *t, const char *token, const char *verb,
                const char *namespace);

#endif
