/* biga apply, delete, release, trust: pods that the extender runs itself. */
#include <inttypes.h>
#include <string.h>

#include "cli/base/documents.h"
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "cli/verb/wait.h"
#include "lib/base/mem.h"

/* --- apply ---------------------------------------------------------------- */

/* Of one Job, and the same became of both. */
static bool is_alike(const cJSON *a, const cJSON *b)
{
    static const char *const members[] = {"madeBy", "namespace", "result"};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (strcmp(json_text(a, members[i]), json_text(b, members[i])) != 0)
            return false;
    return true;
}

/* All of its pods that fared alike, in one line. */
static void say_job(struct cli *c, const cJSON *items, const cJSON *first)
{
    const cJSON *x;
    unsigned n = 0;
    cJSON_ArrayForEach(x, items)
    {
        if (is_alike(x, first) && n++ == 0 && x != first)
            return; /* it was said with that one */
    }
    cli_line(c, "Job %s/%s %s: %u pod%s", json_text(first, "namespace"),
             json_text(first, "madeBy"), json_text(first, "result"), n,
             n == 1 ? "" : "s");
}

static void say_applied(struct cli *c, const cJSON *items)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, items)
    {
        const char *warning = json_text(x, "warning");
        if (*json_text(x, "madeBy"))
            say_job(c, items, x);
        if (*json_text(x, "madeBy") && !*warning)
            continue;
        cli_line(c, "%s %s/%s %s%s%s", json_text(x, "kind"),
                 json_text(x, "namespace"), json_text(x, "name"),
                 json_text(x, "result"),
                 *warning ? "; but it cannot start: " : "", warning);
    }
}

int verb_apply(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str body = STR_INIT(DOCUMENTS_MAX);
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    int rc = documents_read(argv[0], &body);
    if (rc == 0)
        rc = cli_post(c, "/v1/pods", &body, &json);
    if (rc == 0 && json)
        say_applied(c, json_list(json, "items"));
    return rc;
}

/* --- delete --------------------------------------------------------------- */

static void add_path(struct str *path, const char *what, const char *namespace,
                     const char *name)
{
    str_addf(path, "/v1/%s/", what);
    cli_add_encoded(path, namespace);
    str_add_c(path, '/');
    cli_add_encoded(path, name);
}

static int delete_one(struct cli *c, const char *what, const char *namespace,
                      const char *name)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    bool pod = strcmp(what, "pods") == 0;
    add_path(&path, what, namespace, name);
    if (c->set.grace >= 0 && pod)
        str_addf(&path, "?grace=%" PRId64, c->set.grace);
    int rc = cli_delete(c, str_text(&path), &json);
    if (rc == 0 && json)
        cli_line(c, "%s %s/%s %s", json_text(json, "kind"), namespace, name,
                 pod ? "is to end" : json_text(json, "result"));
    return rc;
}

int delete_job(struct cli *c, const char *namespace, const char *job)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *x;
    add_path(&path, "jobs", namespace, job);
    if (c->set.grace >= 0)
        str_addf(&path, "?grace=%" PRId64, c->set.grace);
    int rc = cli_delete(c, str_text(&path), &json);
    if (rc != 0 || !json)
        return rc;
    cJSON_ArrayForEach(x, json_list(json, "items"))
    {
        cli_line(c, "%s %s/%s is to end", json_text(x, "kind"), namespace,
                 json_text(x, "name"));
    }
    return 0;
}

/* Until it is gone. */
static int wait_gone(struct cli *c, bool job, const char *namespace,
                     const char *name)
{
    cleanup_free char *whole = xasprintf("%s/%s", namespace, name);
    struct wait_thing thing = {.job = job, .name = whole};
    int rc = wait_for_all(c, &thing, 1, WAIT_DELETED);
    free(thing.told);
    return rc;
}

int verb_delete(struct cli *c, int argc, char **argv)
{
    static const struct {
        const char *kind, *what;
    } kinds[] = {{"pod", "pods"},
                 {"configmap", "configmaps"},
                 {"secret", "secrets"},
                 {"job", NULL}};
    static const char job[] = "job/";
    const char *kind = argc > 1 ? argv[0] : "pod";
    char **name = &argv[argc - 1];
    if (argc == 1 && strncmp(*name, job, sizeof job - 1) == 0) {
        kind = "job";
        *name += sizeof job - 1;
    }
    if (c->set.grace >= 0 &&
        (strcmp(kind, "configmap") == 0 || strcmp(kind, "secret") == 0))
        return cli_usage("delete: --grace is for pods, not a %s", kind);
    if (*c->set.timeout && !c->set.wait)
        return cli_usage("delete: --timeout needs --wait");
    if (wait_check(c, "delete") || cli_qualify(c, "delete", name))
        return CLI_USAGE;
    const char *slash = strchr(*name, '/');
    cleanup_free char *namespace = xstrndup(*name, (size_t)(slash - *name));
    if (!*namespace || !slash[1]) /* pods without a job are of job "" */
        return cli_usage("delete: \"%s\": must be [NAMESPACE/]NAME", *name);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *what = kinds[i].what;
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        int rc = what ? delete_one(c, what, namespace, slash + 1)
                      : delete_job(c, namespace, slash + 1);
        bool goes = !what || strcmp(what, "pods") == 0; /* others are gone */
        return rc == 0 && c->set.wait && goes
                   ? wait_gone(c, !what, namespace, slash + 1)
                   : rc;
    }
    static const char *const words[] = {"pod", "job", "configmap", "secret",
                                        NULL};
    return cli_usage_word("delete", kind, words);
}

/* --- release -------------------------------------------------------------- */

int verb_release(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str key = STR_INIT(1024), path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    cli_pod_key(argv[0], &key);
    str_add(&path, "/v1/allocations/");
    cli_add_name(&path, argv[0]);
    int rc = cli_delete(c, str_text(&path), &json);
    if (rc == 0 && json)
        cli_line(c, "What pod %s had is free again.", key.data);
    return rc;
}

/* --- trust ---------------------------------------------------------------- */

int verb_trust(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str path = STR_INIT(1024);
    cleanup_with(json) cJSON *json = NULL;
    str_add(&path, "/v1/doubt");
    if (argc > 0) {
        str_add_c(&path, '/');
        cli_add_encoded(&path, argv[0]);
    }
    int rc = cli_delete(c, str_text(&path), &json);
    if (rc == 0 && json)
        cli_line(c, "%s%s: what is not allocated there is free again.",
                 argc > 0 ? "Node " : "All nodes", argc > 0 ? argv[0] : "");
    return rc;
}
