#include "cli/verb/host_notes.h"

#include <string.h>

#include "cli/base/cli.h"
#include "lib/base/mem.h"

enum { NOTES_MAX = 6, TEXT_MAX = 4096 }; /* of one device */

static const cJSON *pod_of(const cJSON *a)
{
    return cJSON_GetObjectItemCaseSensitive(a, "pod");
}

static bool has(const cJSON *a, const struct host_device *d)
{
    const cJSON *x;
    const char *list = d->kind == DEVICE_CARD  ? "cards"
                       : d->kind == DEVICE_GPU ? "gpus"
                                               : "nics";
    cJSON_ArrayForEach(x, json_list(a, list))
    {
        if (strcmp(json_text(x, "id"), d->id) == 0)
            return true;
    }
    return false;
}

static bool same(const cJSON *a, const cJSON *b, const char *name)
{
    return strcmp(json_text(a, name), json_text(b, name)) == 0;
}

/* Is an xPU pod of the same pair on that card?  Then that says it. */
static bool is_told(const cJSON *items, const cJSON *a,
                    const struct host_device *d)
{
    const cJSON *pod = pod_of(a), *x;
    if (d->kind != DEVICE_CARD || !*json_text(pod, "job") ||
        strcmp(json_text(pod, "role"), "host") != 0)
        return false;
    cJSON_ArrayForEach(x, items)
    {
        const cJSON *other = pod_of(x);
        if (strcmp(json_text(other, "role"), "xpu") == 0 &&
            same(x, a, "node") && same(other, pod, "namespace") &&
            same(other, pod, "job") &&
            json_number(other, "pair") == json_number(pod, "pair") && has(x, d))
            return true;
    }
    return false;
}

/* Without what is known: "NS/" of `known`, or all of it. */
static void add_name(const char *namespace, const char *name, const char *known,
                     struct str *out)
{
    size_t size = strlen(namespace);
    if (!known || strncmp(known, namespace, size) != 0 || known[size] != '/')
        str_addf(out, "%s/%s", namespace, name);
    else
        str_add(out, name);
}

static void add_note(const cJSON *a, const struct host_device *d,
                     const char *known, struct str *out)
{
    const cJSON *pod = pod_of(a);
    const char *namespace = json_text(pod, "namespace");
    const char *job = json_text(pod, "job"), *role = json_text(pod, "role");
    cleanup_str struct str whole = STR_INIT(TEXT_MAX);
    str_addf(&whole, "%s/%s", namespace, job);
    if (json_true(a, "held"))
        str_add(out, "kept for ");
    if (!*job) {
        add_name(namespace, json_text(pod, "name"), known, out);
    } else {
        if (!known || strcmp(known, str_text(&whole)) != 0) {
            add_name(namespace, job, known, out);
            str_add_c(out, ' ');
        }
        str_addf(out, "pair %.0f %s", json_number(pod, "pair"),
                 strcmp(role, "xpu") == 0 ? "xPU" : role);
    }
    if (d->kind == DEVICE_GPU)
        str_addf(out, ", %s", cli_relation(a));
}

static char *note(const struct host *h, const struct host_device *d,
                  const cJSON *items, const char *known)
{
    cleanup_str struct str text = STR_INIT(TEXT_MAX);
    size_t n = 0;
    const cJSON *a;
    cJSON_ArrayForEach(a, items)
    {
        if (strcmp(json_text(a, "node"), h->name) != 0 || !has(a, d) ||
            is_told(items, a, d) || n++ >= NOTES_MAX)
            continue;
        str_add(&text, n == 1 ? "◀ " : ", ");
        add_note(a, d, known, &text);
    }
    if (n > NOTES_MAX)
        str_addf(&text, " and %zu more", n - NOTES_MAX);
    return n ? xstrdup(str_text(&text)) : NULL;
}

void host_notes_init(struct host_notes *n, const struct host *host,
                     const cJSON *allocations, const char *job)
{
    n->host = host;
    n->texts = xcalloc(host->n + 1, sizeof *n->texts);
    for (size_t i = 0; i < host->n; i++)
        if (host->devices[i].kind != DEVICE_NUMA)
            n->texts[i] = note(host, &host->devices[i],
                               json_list(allocations, "items"), job);
}

void host_notes_fini(struct host_notes *n)
{
    for (size_t i = 0; n->texts && i < n->host->n; i++)
        free(n->texts[i]);
    free(n->texts);
}
