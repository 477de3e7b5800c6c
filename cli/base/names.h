/* names - what there is of a kind, by name: for completions, and to guess what
 * was meant by a name that is unknown.  Nothing is said when it cannot be
 * asked, and a slow server is not waited for. */
#ifndef BIGA_CLI_BASE_NAMES_H
#define BIGA_CLI_BASE_NAMES_H

#include "cli/base/cli.h"

enum { NAMES_WAIT_MS = 1500 };

/* `each` is called with every name, whole ("NAMESPACE/NAME", "NODE/CARD"), and
 * a few words about it, until it returns false.  Kinds: node, card, pod, job,
 * configmap, secret, namespace, host-card, host-pod, and place, nodes as well
 * as cards; of others there is none. */
typedef bool names_f(void *ctx, const char *name, const char *about);
void names_of(struct cli *c, const char *kind, names_f *each, void *ctx);

/* The name of the kind that was probably meant by `word`: one with a slip, or
 * the same in another namespace; false when there is none. */
bool names_guess(struct cli *c, const char *kind, const char *word,
                 struct str *ret_name);
/* "Did you mean …?" on stderr, when there is one and it is another. */
void names_hint(struct cli *c, const char *kind, const char *word);

#endif
