#include "advertiser/achieved/achieved.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/achieved/carrier.h"
#include "advertiser/achieved/kubelet_pods.h"
#include "lib/base/hash.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"

enum { UUIDS_MS = 30000 }; /* between two looks at what a driver calls GPUs */

struct achieved {
    struct achieved_config config;
    char *pod_logs;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
    struct topo *topo;
    /* the thread's alone: */
    struct kubelet_pods *kubelet; /* NULL: none */
    struct sender *sender;
    struct carrier *carrier;
    struct publish_request request;
    struct http_answer answer;
    bool looked;               /* once at least */
    struct facts before, told; /* of the last look; as in the last report */
    struct device_uuids uuids;
    int64_t uuids_due;
    size_t left_out;   /* as logged last */
    struct error last; /* of control groups, logged once */
};

/* --- a look --------------------------------------------------------------- */

static bool look_at_groups(struct achieved *a, struct cgroups *ret_groups)
{
    struct error err = {0};
    int r = cgroups_look(a->config.sysroot, ret_groups, &err);
    if (r < 0 && a->last.code != -r)
        log_event(LOG_WARN, "cgroups-not-read", "node", a->config.node, "error",
                  err.text, "hint",
                  "which CPUs containers may use is not told, but where the "
                  "kubelet gave them some",
                  NULL);
    a->last = r < 0 ? err : (struct error){0};
    return r == 0;
}

/* False when nobody knows which pods there are. */
static bool gather(struct achieved *a, const struct host_seen *seen,
                   struct facts *facts)
{
    const struct given_pods *given = a->kubelet ? kubelet_pods_ask(a->kubelet)
                                                : NULL;
    if (given)
        given_facts_add(given, seen, facts);
    bool more = a->config.more &&
                a->config.more(a->config.ctx, seen, facts) == 0;
    return given || more;
}

static void note_left_out(struct achieved *a, size_t n)
{
    char text[24];
    if (n > 0 && a->left_out == 0) {
        (void)snprintf(text, sizeof text, "%zu", n);
        log_event(LOG_WARN, "achieved-left-out", "node", a->config.node, "pods",
                  text, "text", "a report has no room for more", NULL);
    }
    a->left_out = n;
}

static bool lives(void *groups, const struct pod_facts *pod)
{
    return groups && *pod->uid && cgroups_has_pod(groups, pod->uid);
}

static void report(struct achieved *a, const struct host_seen *seen,
                   struct facts *facts)
{
    cleanup_str struct str out = STR_INIT(FACTS_REPORT_MAX);
    facts_sort(facts);
    facts_keep(facts, &a->told, lives, (void *)(uintptr_t)seen->groups);
    struct facts told = facts_settled(facts, &a->before, &a->told);
    facts_fini(&a->before);
    facts_fini(&a->told);
    a->before = *facts;
    a->told = told;
    *facts = (struct facts){0};
    if (!a->looked) { /* what an advertiser before us has told still stands */
        a->looked = true;
        return;
    }
    note_left_out(a, facts_write(&a->told, seen->places.topo, &out));
    carrier_tell(a->carrier, str_text(&out), out.size, clock_ms());
}

static void look(struct achieved *a, const struct topo *topo)
{
    struct cgroups groups = {0};
    struct pod_uids uids = {0};
    struct facts facts = {0};
    if (clock_ms() >= a->uuids_due) {
        device_uuids_look(a->config.sysroot, &a->uuids);
        a->uuids_due = clock_ms() + UUIDS_MS;
    }
    bool has_groups = look_at_groups(a, &groups);
    pod_uids_look(a->pod_logs, &uids);
    const struct host_seen seen = {
        .places = {topo, a->config.sysroot, &a->uuids},
        .groups = has_groups ? &groups : NULL,
        .uids = &uids,
    };
    if (gather(a, &seen, &facts))
        report(a, &seen, &facts);
    facts_fini(&facts);
    pod_uids_fini(&uids);
    cgroups_fini(&groups);
}

/* --- telling -------------------------------------------------------------- */

static void send_due(struct achieved *a)
{
    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    while (carrier_next(a->carrier, clock_ms(), &a->request)) {
        struct error err = {0};
        struct publish_answer said = {0};
        if (sender_send(a->sender, &a->request, &a->answer, &err) == 0) {
            said.status = a->answer.status;
            said.body = str_text(&a->answer.body);
            said.body_size = a->answer.body.size;
            if (said.status >= 300) {
                str_reset(&text);
                http_answer_error(&a->answer, &text);
                said.error = str_text(&text);
            }
        } else {
            said.error = err.text;
        }
        carrier_answer(a->carrier, clock_ms(), &said);
    }
}

/* Until the next look is due; the topology then, NULL at the end. */
static struct topo *wait_look(struct achieved *a, int64_t look_due)
{
    hold_lock(&a->lock);
    for (;;) {
        int64_t due = carrier_due(a->carrier);
        if (a->stopping)
            return NULL;
        if (clock_ms() >= look_due || clock_ms() >= due)
            return topo_ref(a->topo);
        (void)clock_wait(&a->wake, &a->lock, due < look_due ? due : look_due);
    }
}

static void *run(void *achieved)
{
    struct achieved *a = achieved;
    int64_t due = clock_ms();
    struct topo *topo;
    thread_name("achieved", NULL);
    while ((topo = wait_look(a, due))) {
        if (clock_ms() >= due) {
            look(a, topo);
            due = clock_ms() + a->config.look_ms;
        }
        topo_unref(topo);
        send_due(a);
    }
    if (a->config.withdraw) {
        carrier_withdraw(a->carrier, clock_ms());
        send_due(a);
    }
    return NULL;
}

/* --- from start to end ---------------------------------------------------- */

static void destroy(struct achieved *a)
{
    kubelet_pods_destroy(a->kubelet);
    sender_destroy(a->sender);
    carrier_destroy(a->carrier);
    str_fini(&a->request.body);
    str_fini(&a->answer.body);
    facts_fini(&a->before);
    facts_fini(&a->told);
    topo_unref(a->topo);
    (void)pthread_cond_destroy(&a->wake);
    (void)pthread_mutex_destroy(&a->lock);
    free(a->pod_logs);
    free(a);
}

static int start(struct achieved *a, struct error *err)
{
    const struct achieved_config *c = &a->config;
    int r = sender_create(c->sending, &a->sender, err);
    if (r == 0 && c->kubelet)
        r = kubelet_pods_create(c->kubelet, c->node, &a->kubelet, err);
    if (r < 0)
        return r;
    int failed = pthread_create(&a->thread, NULL, run, a);
    return failed ? error_errno(err, failed, "thread") : 0;
}

int achieved_start(const struct achieved_config *config, struct topo *topo,
                   struct achieved **ret_achieved, struct error *err)
{
    struct achieved *a = xcalloc(1, sizeof *a);
    const struct carrier_config carrier = {
        .node = config->node,
        .namespace = config->namespace,
        .again_ms = config->again_ms,
        .backoff_min_ms = config->backoff_min_ms,
        .backoff_max_ms = config->backoff_max_ms,
    };
    a->config = *config;
    a->pod_logs = xasprintf("%s/var/log/pods", config->sysroot);
    a->topo = topo_ref(topo);
    a->carrier = carrier_create(&carrier,
                                hash_bytes(config->node, strlen(config->node)) ^
                                    (uint64_t)clock_ms());
    str_init(&a->request.body, CARRIER_BODY_MAX);
    str_init(&a->answer.body, CARRIER_BODY_MAX);
    (void)pthread_mutex_init(&a->lock, NULL);
    clock_wait_init(&a->wake);
    int r = start(a, err);
    if (r < 0)
        destroy(a);
    else
        *ret_achieved = a;
    return r;
}

void achieved_look(struct achieved *a, struct topo *topo)
{
    hold_lock(&a->lock);
    topo_unref(a->topo);
    a->topo = topo_ref(topo);
}

void achieved_stop(struct achieved *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    clock_wake_all(&a->wake);
    pthread_mutex_unlock(&a->lock);
    if (a->kubelet)
        kubelet_pods_cancel(a->kubelet);
    (void)pthread_join(a->thread, NULL); /* it was created */
    destroy(a);
}
