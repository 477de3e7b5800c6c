/* What real kube-schedulers sent, answered by the running server: each with
 * 200 and a body that Go's decoder would take for that verb. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/http/rawclient.h"
#include "tests/lib/sim/world.h"
#include "tests/lib/testdata.h"

static const char *verb_of(const char *file)
{
    static const char *const verbs[] = {"filter", "prioritize", "bind",
                                        "preempt"};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strstr(file, verbs[i]))
            return verbs[i];
    cr_assert_fail("%s names no verb", file);
    return NULL;
}

/* Was this node name in the request? */
static bool asked(const char *request, const char *name)
{
    cleanup_free char *quoted = xasprintf("\"%s\"", name);
    return strstr(request, quoted) != NULL;
}

static void check_failures(const cJSON *map, const char *request)
{
    const cJSON *m;
    if (cJSON_IsNull(map))
        return;
    cr_assert(cJSON_IsObject(map));
    cJSON_ArrayForEach(m, map)
    {
        cr_assert(cJSON_IsString(m));
        cr_assert(asked(request, m->string), "%s", m->string);
    }
}

static void check_filter(const cJSON *r, const char *request)
{
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(r, "Nodes");
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(r, "NodeNames");
    const cJSON *m;
    cr_assert(cJSON_IsObject(nodes) || cJSON_IsArray(names),
              "both lists are null");
    if (cJSON_IsArray(names))
        cJSON_ArrayForEach(m, names)
        {
            cr_assert(cJSON_IsString(m));
            cr_assert(asked(request, m->valuestring));
        }
    if (cJSON_IsObject(nodes)) {
        const cJSON *items = cJSON_GetObjectItemCaseSensitive(nodes, "items");
        cr_assert(cJSON_IsArray(items));
        cJSON_ArrayForEach(m, items)
        {
            const cJSON *meta = cJSON_GetObjectItemCaseSensitive(m, "metadata");
            const cJSON *name = cJSON_GetObjectItemCaseSensitive(meta, "name");
            cr_assert(cJSON_IsString(name));
            cr_assert(asked(request, name->valuestring));
        }
    }
    check_failures(cJSON_GetObjectItemCaseSensitive(r, "FailedNodes"), request);
    check_failures(
        cJSON_GetObjectItemCaseSensitive(r, "FailedAndUnresolvableNodes"),
        request);
    cr_assert(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(r, "Error")));
}

static void check_prioritize(const cJSON *r, const char *request)
{
    const cJSON *m;
    cr_assert(cJSON_IsArray(r));
    cJSON_ArrayForEach(m, r)
    {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(m, "Host");
        const cJSON *score = cJSON_GetObjectItemCaseSensitive(m, "Score");
        cr_assert(cJSON_IsString(host) && asked(request, host->valuestring));
        cr_assert(cJSON_IsNumber(score));
        cr_assert(score->valuedouble >= 0 && score->valuedouble <= 10);
        cr_assert_eq(score->valuedouble, (double)(int)score->valuedouble);
    }
}

static void check_preempt(const cJSON *r, const char *request)
{
    const cJSON *map =
        cJSON_GetObjectItemCaseSensitive(r, "NodeNameToMetaVictims");
    const cJSON *node, *pod;
    cr_assert(cJSON_IsObject(map));
    cJSON_ArrayForEach(node, map)
    {
        cr_assert(asked(request, node->string));
        cr_assert(cJSON_IsNumber(
            cJSON_GetObjectItemCaseSensitive(node, "NumPDBViolations")));
        const cJSON *pods = cJSON_GetObjectItemCaseSensitive(node, "Pods");
        cr_assert(cJSON_IsArray(pods));
        cJSON_ArrayForEach(pod, pods)
        {
            const cJSON *uid = cJSON_GetObjectItemCaseSensitive(pod, "UID");
            cr_assert(cJSON_IsString(uid));
            cr_assert(asked(request, uid->valuestring));
        }
    }
}

static void check_answer(const char *file, const char *verb,
                         const struct raw_reply *a, const char *request)
{
    struct error err = {0};
    cleanup_with(json) cJSON *r = NULL;
    cr_assert_eq(a->status, 200, "%s: %d %s", file, a->status,
                 str_text(&a->body));
    cr_assert_eq(json_parse(a->body.data, a->body.size, &r, &err), 0, "%s: %s",
                 file, err.text);
    if (strcmp(verb, "filter") == 0)
        check_filter(r, request);
    else if (strcmp(verb, "prioritize") == 0)
        check_prioritize(r, request);
    else if (strcmp(verb, "preempt") == 0)
        check_preempt(r, request);
    else
        cr_assert(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(r, "Error")));
}

static void replay(struct server *s, bool own_path)
{
    const char *data = testdata_dir();
    if (!data) {
        (void)fprintf(stderr, "captures: no test data ($BIGA_DATA)\n");
        cr_skip_test("no test data: set BIGA_DATA");
    }
    cleanup_free char *dir = xasprintf("%s/captures", data);
    struct dirent **files;
    int n = scandir(dir, &files, NULL, alphasort), seen = 0;
    cr_assert_gt(n, 0);
    for (int i = 0; i < n; i++) {
        const char *name = files[i]->d_name;
        if (strstr(name, ".http")) {
            cleanup_free char *path = xasprintf("%s/%s", dir, name);
            cleanup_free char *text = testdata_read(path, NULL);
            const char *verb = verb_of(name);
            cleanup_free char *url = own_path
                                         ? xasprintf("/v1/scheduler/%s", verb)
                                         : xasprintf("/xpu/v1/%s", verb);
            char *body = strstr(text, "\r\n\r\n");
            cr_assert_not_null(body, "%s", name);
            body += 4;
            struct raw_reply reply = {0};
            (void)world_call(s, SERVER_SCHEDULER, "POST", url,
                             (struct jtext){body, strlen(body), false}, &reply);
            check_answer(name, verb, &reply, body);
            raw_reply_fini(&reply);
            seen++;
        }
        free(files[i]);
    }
    free(files);
    cr_assert_gt(seen, 40);
}

Test(captures, are_answered_by_an_empty_extender)
{
    cleanup_with(server) struct server *s = world_start();
    replay(s, true);
}

Test(captures, are_answered_under_their_own_prefix)
{
    cleanup_with(server) struct server *s = world_start();
    world_publish(s, 4, 2);
    replay(s, false);
}
