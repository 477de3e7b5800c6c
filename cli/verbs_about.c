/* What is told of each command besides what it is called with: the help, the
 * manual and completions are made of it. */
#include <string.h>

#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"

const struct verb_about verbs_about[] = {
    {.name = "nodes",
     .kind = "node",
     .lists = {&nodes_listing},
     .examples = "biga nodes --sort-by cards      # the emptiest last\n"
                 "biga nodes -l 'status!=ready'   # what is out of order\n"
                 "biga nodes -l 'gpus.free>3'     # where four GPUs are free",
     .see = "node cards topo"},
};
const size_t n_verbs_about = ARRAY_LEN(verbs_about);

const struct verb_about *verb_about(const char *name)
{
    static const struct verb_about nothing = {
        .name = "", .kind = "", .examples = "", .see = ""};
    for (size_t i = 0; i < n_verbs_about; i++)
        if (strcmp(verbs_about[i].name, name) == 0)
            return &verbs_about[i];
    return &nothing;
}
