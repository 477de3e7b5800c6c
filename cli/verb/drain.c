/* biga drain, biga undrain */
#include <stdlib.h>
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

/* "/v1/cards/NODE/CARD/drain" of NODE/CARD, "/v1/nodes/NODE/drain" of NODE. */
static void add_path(struct str *path, const char *what)
{
    const char *slash = strchr(what, '/');
    cleanup_free char *node = slash ? xstrndup(what, (size_t)(slash - what))
                                    : xstrdup(what);
    str_add(path, slash ? "/v1/cards/" : "/v1/nodes/");
    cli_add_encoded(path, node);
    if (slash) {
        str_add_c(path, '/');
        cli_add_encoded(path, slash + 1);
    }
    str_add(path, "/drain");
}

static int check(const char *verb, const char *what)
{
    const char *slash = strchr(what, '/');
    if (*what && what[0] != '/' && (!slash || slash[1]))
        return 0;
    return cli_usage("%s: \"%s\": must be NODE/CARD, as "
                     "host03/0000:17:00.0, or NODE",
                     verb, what);
}

static void say_pods(struct cli *c, const cJSON *pods, const char *end)
{
    const cJSON *pod;
    cleanup_str struct str text = STR_INIT(STR_MAX_DEFAULT);
    cJSON_ArrayForEach(pod, pods)
    {
        str_addf(&text, "%s%s/%s", text.size ? ", " : "",
                 json_text(pod, "namespace"), json_text(pod, "name"));
    }
    if (text.size)
        cli_line(c, "Pods there: %s; %s.", str_text(&text), end);
    else
        cli_line(c, "No pod is there.");
}

int verb_drain(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096), body = STR_INIT(65536);
    cleanup_with(json) cJSON *json = NULL;
    const char *by = getenv("USER"); /* where the server knows nobody */
    int rc = check("drain", argv[0]);
    (void)argc;
    if (rc)
        return rc;
    if (!c->set.reason || !*c->set.reason)
        return cli_usage("drain: why? --reason TEXT is for those who wonder "
                         "later");
    add_path(&path, argv[0]);
    jwrite_object(&body, NULL);
    jwrite_text(&body, "reason", c->set.reason);
    if (by && *by)
        jwrite_text(&body, "by", by);
    jwrite_bool(&body, "evict", c->set.evict);
    jwrite_end_object(&body);
    rc = cli_post(c, str_text(&path), &body, &json);
    if (rc || !json)
        return rc;
    cli_line(c, "%s is drained: nothing new is placed there.", argv[0]);
    say_pods(c, json_list(json, "pods"),
             c->set.evict ? "they were told to end"
                          : "they stay; --evict has them end");
    return 0;
}

int verb_undrain(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    int rc = check("undrain", argv[0]);
    (void)argc;
    if (rc)
        return rc;
    add_path(&path, argv[0]);
    rc = cli_delete(c, str_text(&path), &json);
    if (rc == 0 && json)
        cli_line(c, "%s takes new pods again.", argv[0]);
    return rc;
}
