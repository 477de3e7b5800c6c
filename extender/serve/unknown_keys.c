#include "extender/serve/unknown_keys.h"

#include "extender/cluster/cluster.h"
#include "extender/judge/why.h"
#include "extender/pods/applied.h"
#include "model/pod/pod_keys.h"

/* Of a pod that was applied to an older extender, which did not look. */
static bool find_applied(struct applied *pods, const struct demand *pod,
                         struct str *text)
{
    cleanup_with(pod_set) struct pod_set *set = applied_get(pods);
    const struct applied_pod *p = pod_set_find(set, pod->namespace, pod->name);
    struct error odd;
    struct jscan s;
    if (!p)
        return false;
    jscan_init(&s, p->json, p->size);
    if (pod_keys_check(&s, &odd) == 0)
        return false;
    str_add(text, odd.text);
    return true;
}

static bool find(const struct app *app, const struct demand *pod,
                 struct str *text)
{
    if (app->cluster)
        return cluster_find_odd(app->cluster, pod->namespace, pod->name, text);
    return app->applied && find_applied(app->applied, pod, text);
}

void unknown_keys_write_pod(const struct app *app, const struct demand *pod,
                            struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    str_add(out, "{\"pod\":");
    why_write_pod(pod, out);
    if (!find(app, pod, &text))
        return;
    str_add(out, ",\"warning\":");
    str_add_json(out, str_text(&text));
}

void unknown_keys_write_line(const struct app *app, const struct demand *pod,
                             struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    if (find(app, pod, &text))
        str_addf(out, "warning: %s\n", str_text(&text));
}
