#include "extender/serve/unknown_keys.h"

#include "extender/judge/why.h"

static bool find(const struct app *app, const struct demand *pod,
                 struct str *text)
{
    return pod_source_ask(&app->source, find_unknown_key, pod->namespace,
                          pod->name, text);
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
