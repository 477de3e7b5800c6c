#include "extender/serve/unknown_keys.h"

#include "extender/judge/why.h"
#include "lib/base/jwrite.h"

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
    jwrite_object(out, NULL);
    jwrite_key(out, "pod");
    why_write_pod(pod, out);
    if (find(app, pod, &text))
        jwrite_text(out, "warning", str_text(&text));
}

void unknown_keys_write_line(const struct app *app, const struct demand *pod,
                             struct str *out)
{
    cleanup_str struct str text = STR_INIT(4096);
    if (find(app, pod, &text))
        str_addf(out, "warning: %s\n", str_text(&text));
}
