/* What is shown of the cluster. */
#include <string.h>

#include "extender/app/app_metrics.h"
#include "extender/cluster/cluster_private.h"
#include "lib/base/jwrite.h"
#include "lib/base/table.h"
#include "lib/base/text.h"
#include "lib/io/clock.h"

/* Seconds since something was heard; -1: never. */
static int64_t age_s(const struct reflector_state *s)
{
    int64_t age = clock_ms() - s->heard_ms;
    return s->heard_ms == 0 ? -1 : age > 0 ? age / 1000 : 0;
}

bool cluster_is_ready(struct cluster *c, struct str *why)
{
    char leader[254];
    struct reflector_state state;
    struct error trouble;
    const char *comma = "";
    if (!cluster_is_synced(c)) {
        str_add(why, "not listed yet: ");
        for (size_t i = 0; i < reflector_n_kinds(c->reflector); i++) {
            reflector_state(c->reflector, i, &state);
            if (state.synced)
                continue;
            str_addf(why, "%s%s", comma, state.name);
            if (state.error[0])
                str_addf(why, " (%s)", state.error);
            comma = ", ";
        }
        return false;
    }
    if (cluster_leads(c, leader))
        return true;
    if (strcmp(leader, c->identity) == 0)
        str_add(why, "about to lead");
    else if (leader[0])
        str_addf(why, "%s leads", leader);
    else
        str_add(why, "nobody leads");
    if (elect_trouble(c->elect, &trouble))
        str_addf(why, "; %s", trouble.text);
    return false;
}

static void write_collections(struct cluster *c, struct str *out)
{
    struct reflector_state s;
    str_add(out, ",\"collections\":[");
    for (size_t i = 0; i < reflector_n_kinds(c->reflector); i++) {
        reflector_state(c->reflector, i, &s);
        str_addf(out,
                 "%s{\"name\":\"%s\",\"synced\":%s,\"watching\":%s,"
                 "\"lists\":%llu,\"watches\":%llu,\"events\":%llu,"
                 "\"failures\":%llu,\"heardSecondsAgo\":%lld",
                 i ? ",\n" : "\n", s.name, s.synced ? "true" : "false",
                 s.watching ? "true" : "false", (unsigned long long)s.lists,
                 (unsigned long long)s.watches, (unsigned long long)s.events,
                 (unsigned long long)s.failures, (long long)age_s(&s));
        jwrite_known_text(out, "error", s.error);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
}

void cluster_write(struct cluster *c, struct str *out)
{
    char leader[254];
    cleanup_str struct str why = STR_INIT(4096);
    bool leads = cluster_leads(c, leader);
    bool ready = cluster_is_ready(c, &why);
    jwrite_object(out, NULL);
    jwrite_text(out, "replica", c->identity);
    jwrite_text(out, "leader", leader);
    jwrite_bool(out, "leads", leads);
    jwrite_bool(out, "synced", cluster_is_synced(c));
    jwrite_bool(out, "ready", ready);
    if (!ready)
        jwrite_text(out, "reason", str_text(&why));
    write_collections(c, out);
    jwrite_uint(out, "bindsInFlight", binder_n_busy(c->binder));
    jwrite_uint(out, "operationsWaiting", feed_n_waiting(c->feed));
    gate_controller_write(c->gate, out);
    str_add_c(out, ',');
    cluster_pods_write(c->pods, out);
    str_add(out, "}\n");
}

void cluster_write_text(struct cluster *c, struct str *out)
{
    static const char *const heads[] = {"COLLECTION", "STATE", "HEARD",
                                        "EVENTS",     "LISTS", "WATCHES",
                                        "FAILURES",   "ERROR", NULL};
    char leader[254];
    struct table t;
    struct reflector_state s;
    cleanup_str struct str why = STR_INIT(4096);
    bool ready = cluster_is_ready(c, &why);
    (void)cluster_leads(c, leader); /* who does is shown */
    str_add(out, "replica  ");
    text_clean(c->identity, out);
    str_add(out, "\nleader   ");
    text_clean(leader[0] ? leader : "-", out);
    str_add(out, "\nstate    ");
    text_clean(ready ? "ready" : str_text(&why), out);
    str_addf(out,
             "\nbinds    %zu in flight\npods     %zu bound without an "
             "allocation\n\n",
             binder_n_busy(c->binder), cluster_pods_n_unaccounted(c->pods));
    table_init(&t, heads);
    for (size_t i = 0; i < reflector_n_kinds(c->reflector); i++) {
        reflector_state(c->reflector, i, &s);
        table_add(&t, s.name);
        table_add(&t, !s.synced    ? "not listed"
                      : s.watching ? "watching"
                                   : "waiting");
        table_add_known(&t, age_s(&s));
        table_addf(&t, "%llu", (unsigned long long)s.events);
        table_addf(&t, "%llu", (unsigned long long)s.lists);
        table_addf(&t, "%llu", (unsigned long long)s.watches);
        table_addf(&t, "%llu", (unsigned long long)s.failures);
        table_add(&t, s.error);
    }
    table_write_text(&t, out);
    table_fini(&t);
}

void cluster_gauge(struct cluster *c)
{
    struct metrics *m = c->config.metrics;
    char leader[254];
    struct reflector_state s;
    for (size_t i = 0; i < reflector_n_kinds(c->reflector); i++) {
        reflector_state(c->reflector, i, &s);
        metrics_set(m, APP_KUBE_LISTS, &s.name, (int64_t)s.lists);
        metrics_set(m, APP_KUBE_WATCHES, &s.name, (int64_t)s.watches);
        metrics_set(m, APP_KUBE_EVENTS, &s.name, (int64_t)s.events);
        metrics_set(m, APP_KUBE_FAILURES, &s.name, (int64_t)s.failures);
        metrics_set(m, APP_KUBE_AGE, &s.name, age_s(&s));
    }
    metrics_set(m, APP_LEADER, NULL, cluster_leads(c, leader));
    metrics_set(m, APP_BINDS_IN_FLIGHT, NULL,
                (int64_t)binder_n_busy(c->binder));
    uint64_t evicted;
    metrics_set(m, APP_LOST_PODS, NULL,
                (int64_t)card_loss_controller_counts(c->card_losses, &evicted));
    metrics_set(m, APP_EVICTED, NULL, (int64_t)evicted);
    metrics_set(m, APP_UNACCOUNTED, NULL,
                (int64_t)cluster_pods_n_unaccounted(c->pods));
}
