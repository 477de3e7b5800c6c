#include "extender/admit/listener.h"

#include "extender/app/app_metrics.h"

void listener_observe(void *ctx, const struct httpd_observation *o)
{
    const struct listener *listener = ctx;
    if (o->refusal) {
        const char *refusal[METRICS_LABELS_MAX] = {o->listener, o->refusal};
        metrics_add(listener->metrics, APP_REFUSALS, refusal, 1);
    }
    if (o->status == 0)
        return;
    const char code[] = {(char)('0' + o->status / 100 % 10),
                         (char)('0' + o->status / 10 % 10),
                         (char)('0' + o->status % 10), '\0'};
    const char *labels[METRICS_LABELS_MAX] = {
        o->listener, o->route ? o->route->name : "none", code};
    metrics_add(listener->metrics, APP_HTTP_REQUESTS, labels, 1);
    metrics_observe(listener->metrics, APP_HTTP_DURATION, labels,
                    o->nanoseconds);
}
