/* fit - what Biga judges of nodes, for a test: one line of commands on stdin.
 *
 *   node JSON      a Node is there
 *   pod JSON       a pod is there, bound or not
 *   judge JSON     a pod's needs: a line "NODE\tTEXT" for each node ("ok" when
 *                  it fits), the line of all together, and an empty one
 *   pin NODE JSON  spec.affinity that pins this pod there, as one line */
#include <stdio.h>
#include <string.h>

#include "extender/fit/fit_nodes.h"
#include "lib/base/jrow.h"

enum { NODES_MAX = 4096, NAME_MAX_ = 254 };

static char *names[NODES_MAX];
static size_t n_names;

struct object {
    char name[NAME_MAX_], uid[64], node[NAME_MAX_], phase[32];
};

static struct object read_object(const char *json)
{
    static const struct jrow metadata[] = {
        JROW("name", JROW_LAX, jrow_copy, struct object, name),
        JROW("uid", JROW_LAX, jrow_copy, struct object, uid), JROW_END};
    static const struct jrow spec[] = {
        JROW("nodeName", JROW_LAX, jrow_copy, struct object, node), JROW_END};
    static const struct jrow status[] = {
        JROW("phase", JROW_LAX, jrow_copy, struct object, phase), JROW_END};
    static const struct jrow rows[] = {
        JROW_OBJECT("metadata", JROW_LAX, metadata),
        JROW_OBJECT("spec", JROW_LAX, spec),
        JROW_OBJECT("status", JROW_LAX, status), JROW_END};
    struct object o = {0};
    struct jscan s;
    jscan_init_kube(&s, json, strlen(json));
    (void)jrow_read(&s, JROW_LAX, rows, &o);
    return o;
}

static void end_with(int rc, const struct error *err)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void put_node(struct fit_nodes *r, const char *json)
{
    struct error err;
    size_t i = 0;
    struct object o = read_object(json);
    end_with(fit_nodes_put(r, json, strlen(json), &err), &err);
    while (i < n_names && strcmp(names[i], o.name) != 0)
        i++;
    if (i == n_names && n_names < NODES_MAX)
        names[n_names++] = xstrdup(o.name);
}

static void put_pod(struct fit_nodes *r, const char *json)
{
    struct error err;
    struct object o = read_object(json);
    bool finished = strcmp(o.phase, "Succeeded") == 0 ||
                    strcmp(o.phase, "Failed") == 0;
    const struct fit_pod pod = {o.uid, o.node, finished, json, strlen(json)};
    end_with(fit_nodes_put_pod(r, FIT_OTHERS, &pod, &err), &err);
}

static struct pod_needs *read_needs(const char *json)
{
    struct error err;
    struct pod_needs *needs = NULL;
    end_with(pod_needs_read(json, strlen(json), &needs, &err), &err);
    return needs;
}

static void judge(struct fit_nodes *r, const char *json)
{
    cleanup_with(pod_needs) struct pod_needs *needs = read_needs(json);
    cleanup_str struct str all = STR_INIT(STR_MAX_DEFAULT);
    for (size_t i = 0; i < n_names; i++) {
        struct fit_verdict v;
        bool ok = fit_nodes_judge(r, needs, names[i], &v) == FIT_OK;
        (void)printf("%s\t%s\n", names[i], ok ? "ok" : v.text);
    }
    fit_nodes_explain(r, needs, (const char *const *)names, n_names, &all);
    (void)printf("%s\n\n", str_text(&all));
}

static void pin(const char *node, const char *json)
{
    cleanup_with(pod_needs) struct pod_needs *needs = read_needs(json);
    cleanup_str struct str out = STR_INIT(STR_MAX_DEFAULT);
    pod_needs_write_affinity(needs, node, &out);
    (void)printf("%s\n", str_text(&out));
}

/* The word in front, and what is behind it. */
static char *split(char *line)
{
    char *rest = strchr(line, ' ');
    if (!rest)
        return line + strlen(line);
    *rest = '\0';
    return rest + 1;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    struct fit_nodes *r = fit_nodes_create();
    while ((n = getline(&line, &size, stdin)) > 0) {
        line[n - (line[n - 1] == '\n')] = '\0';
        char *rest = split(line);
        if (strcmp(line, "node") == 0)
            put_node(r, rest);
        else if (strcmp(line, "pod") == 0)
            put_pod(r, rest);
        else if (strcmp(line, "judge") == 0)
            judge(r, rest);
        else if (strcmp(line, "pin") == 0) {
            char *json = split(rest);
            pin(rest, json);
        }
        (void)fflush(stdout);
    }
    for (size_t i = 0; i < n_names; i++)
        free(names[i]);
    free(line);
    fit_nodes_destroy(r);
    return 0;
}
