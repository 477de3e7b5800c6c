/* policy_view - the policy in force, what namespaces have of their quotas and
 * where services have their shares, as JSON and as tables.  Pure. */
#ifndef BIGA_EXTENDER_VIEW_POLICY_VIEW_H
#define BIGA_EXTENDER_VIEW_POLICY_VIEW_H

#include <stddef.h>

#include "extender/state/snapshot.h"
#include "extender/state/usage.h"
#include "lib/base/str.h"

/* Members (no braces): "hash" (null without a policy), "quotas": [{
 * "namespace","cards":{"used","limit"},"cardCores","cardMemoryMiB"}] (limit
 * null: none) and "services": [{"namespace","name","nodes","models","pci",
 * "cores","memoryMiB","priority","shares":{"held","short","never"},
 * "lacking":[{"node","card","state"}]}], `lacking` the first few. */
enum { POLICY_LACKING_MAX = 16 };
void policy_view(const struct snapshot *s, struct str *out);
/* Two tables. */
void policy_view_text(const struct snapshot *s, struct str *out);

/* The shares of a card: [{"namespace","name","cores","memoryMiB","state"}]. */
void policy_view_card(const struct node *node, const struct policy *policy,
                      size_t card, struct str *out);

#endif
