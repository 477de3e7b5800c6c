/* What was achieved of a promise, for biga allocations and biga job. */
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

static const cJSON *achieved_of(const cJSON *of)
{
    return cJSON_GetObjectItemCaseSensitive(of, "achieved");
}

static bool is_state(const cJSON *of, const char *state)
{
    return strcmp(json_text(achieved_of(of), "state"), state) == 0;
}

/* Is there a relation to be achieved?  Not of a service. */
static bool has_relation(const cJSON *of)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(of, "pod");
    return strcmp(json_text(pod, "role"), "service") != 0 &&
           (json_number(of, "numa") >= 0 ||
            cJSON_GetArraySize(json_list(of, "gpus")) > 0);
}

void achieved_add(struct table *t, const cJSON *of)
{
    const char *relation = json_text(achieved_of(of), "relation");
    cleanup_free char *lost = xasprintf("%s lost",
                                        *relation ? relation : "unknown");
    if (!achieved_of(of))
        table_add(t, "-");
    else if (is_state(of, "lost"))
        table_add_style(t, STYLE_BAD, lost);
    else if (*relation)
        table_add_style(t, relation_style(relation), relation);
    else
        table_add(t, is_state(of, "kept") && !has_relation(of) ? "kept"
                                                               : "unknown");
}

void achieved_line(struct cli *c, const char *name, const cJSON *of)
{
    if (is_state(of, "lost"))
        cli_line(c, "%s lost its alignment: %s", name,
                 json_text(achieved_of(of), "text"));
}
