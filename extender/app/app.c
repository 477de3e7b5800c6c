#include "extender/app/app.h"

void app_observe(void *ctx, const struct httpd_observation *o)
{
    struct app *app = ctx;
    if (o->refusal) {
        const char *refusal[METRICS_LABELS_MAX] = {o->listener, o->refusal};
        metrics_add(app->metrics, APP_REFUSALS, refusal, 1);
    }
    if (o->status == 0)
        return;
    const char code[] = {(char)('0' + o->status / 100 % 10),
                         (char)('0' + o->status / 10 % 10),
                         (char)('0' + o->status % 10), '\0'};
    const char *labels[METRICS_LABELS_MAX] = {
        o->listener, o->route ? o->route->name : "none", code};
    metrics_add(app->metrics, APP_HTTP_REQUESTS, labels, 1);
    metrics_observe(app->metrics, APP_HTTP_DURATION, labels, o->nanoseconds);
}
