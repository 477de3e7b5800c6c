#include "extender/leader/pair_controller.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "extender/leader/pod_condition.h"
#include "extender/pods/buddy.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "lib/io/thread_name.h"
#include "lib/kube/client.h"

enum {
    BODY_MAX = KUBE_OBJECT_MAX,
    IDLE_MS = 1000, /* while somebody else leads */
    PATH_MAX_BYTES = 2048,
    MAKE_ERROR_MAX = 256, /* bytes of an error in a text for people */
};

struct pair_controller {
    struct pair_controller_config config;
    struct kube_client *client;
    struct http_answer answer, other;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping, listed;
    struct pair_rules *pairs;
};

/* --- calls -------------------------------------------------------------- */

static int call(struct pair_controller *p, const char *method,
                const struct str *path, const struct str *body,
                struct http_answer *answer, struct error *err)
{
    struct kube_request request = {
        .method = method,
        .path = str_text(path),
        .type = KUBE_JSON,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .timeout_ms = PAIR_CONTROLLER_CALL_MS,
    };
    return kube_call(p->client, &request, answer, err);
}

static int delete_pod(struct pair_controller *p,
                      const struct pair_rules_action *a, struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(PATH_MAX_BYTES);
    kube_path_object(&path, "/api/v1", a->namespace, "pods", a->name);
    str_add(&body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                   "\"preconditions\":{\"uid\":");
    str_add_json(&body, a->uid);
    str_add(&body, "}}");
    int r = call(p, "DELETE", &path, &body, &p->answer, err);
    /* another pod has the name now: the one that was meant is gone */
    return r == -EBUSY ? -ENOENT : r;
}

/* Of the pod that the action is about. */
static int apply_condition(struct pair_controller *p,
                           const struct pair_rules_action *a,
                           struct pod_condition *c, struct error *err)
{
    c->namespace = a->namespace;
    c->name = a->name;
    c->uid = a->uid;
    c->since_s = clock_wall_s();
    return pod_condition_apply(p->client, c, PAIR_CONTROLLER_CALL_MS,
                               &p->answer, err);
}

static int mark(struct pair_controller *p, const struct pair_rules_action *a,
                struct error *err)
{
    struct pod_condition paired = {.manager = "biga-paired",
                                   .type = KUBE_POD_PAIRED,
                                   .is_true = true,
                                   .reason = "HostPod",
                                   .message = a->host_uid};
    return apply_condition(p, a, &paired, err);
}

static int get(struct pair_controller *p, const char *namespace,
               const char *kind, const char *name, struct http_answer *answer,
               struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    kube_path_object(&path, "/api/v1", namespace, kind, name);
    return call(p, "GET", &path, NULL, answer, err);
}

static int post_buddy(struct pair_controller *p,
                      const struct pair_rules_action *a,
                      const struct kube_pod *pod, struct error *err)
{
    cleanup_str struct str path = STR_INIT(PATH_MAX_BYTES);
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    const struct buddy_input in = {
        .host = str_text(&p->answer.body),
        .host_size = p->answer.body.size,
        .pod = pod,
        .template = str_text(&p->other.body),
        .template_size = p->other.body.size,
        .name = a->made,
        .in_cluster = true,
    };
    int r = buddy_compose(&in, &body, err);
    if (r < 0)
        return error_wrap(err, "PodTemplate %s", a->buddy);
    kube_path_object(&path, "/api/v1", a->namespace, "pods", NULL);
    return call(p, "POST", &path, &body, &p->answer, err);
}

/* The name is taken: 0 by the xPU pod that was made for this host pod (the
 * answer of an earlier call was lost), -EEXIST by another one. */
static int check_taken(struct pair_controller *p,
                       const struct pair_rules_action *a, struct error *err)
{
    struct kube_pod there;
    struct error ignored;
    int r = get(p, a->namespace, "pods", a->made, &p->answer, &ignored);
    if (r == 0)
        r = kube_pod_read(str_text(&p->answer.body), p->answer.body.size,
                          &p->config.demand, &there, &ignored);
    if (r == 0 && strcmp(there.owner_uid, a->uid) == 0)
        return 0;
    return error_set(err, EEXIST,
                     "pod %s/%s is there already and does not belong to host "
                     "pod %s",
                     a->namespace, a->made, a->name);
}

/* What a person can do about a buddy that cannot be made. */
static const char *make_hint(int result, bool has_template)
{
    if (result == -ENOENT && !has_template)
        return ": create that PodTemplate, or name another in biga.dev/buddy";
    switch (result) {
    case -EINVAL:
        return ": mend the PodTemplate";
    case -EACCES:
        return ": raise the quota or mend the policy that the message names; "
               "or "
               "give the extender the rights in deploy/";
    case -EEXIST:
        return ": delete that pod, or rename the host pod";
    default:
        return ": it is tried again";
    }
}

static int make_buddy(struct pair_controller *p,
                      const struct pair_rules_action *a, bool *ret_has_template,
                      struct error *err)
{
    struct kube_pod pod;
    *ret_has_template = false;
    int r = get(p, a->namespace, "pods", a->name, &p->answer, err);
    if (r == -ENOENT)
        return error_set(err, ECANCELED, "pod %s/%s is gone", a->namespace,
                         a->name);
    if (r == 0)
        r = kube_pod_read(str_text(&p->answer.body), p->answer.body.size,
                          &p->config.demand, &pod, err);
    if (r < 0)
        return r;
    if (strcmp(pod.demand.uid, a->uid) != 0 || pod.broken || pod.deleting)
        return error_set(err, ECANCELED, "pod %s/%s has changed", a->namespace,
                         a->name);
    r = get(p, a->namespace, "podtemplates", a->buddy, &p->other, err);
    *ret_has_template = r == 0;
    if (r == 0)
        r = post_buddy(p, a, &pod, err);
    return r == -EEXIST ? check_taken(p, a, err) : r;
}

/* --- one action --------------------------------------------------------- */

static void post_event(struct pair_controller *p,
                       const struct pair_rules_action *a,
                       enum events_reason reason, const char *text)
{
    const struct events_pod pod = {a->namespace, a->name, a->uid};
    events_post_named(p->config.events, &pod, reason, text);
}

static int tell(struct pair_controller *p, const struct pair_rules_action *a,
                struct error *err)
{
    struct pod_condition ready = {.manager = "biga-xpu-ready",
                                  .type = KUBE_POD_XPU_READY,
                                  .is_true = a->ready,
                                  .reason = a->reason,
                                  .message = a->text};
    int r = apply_condition(p, a, &ready, err);
    if (r == 0 && strcmp(a->reason, "XpuPodGone") == 0)
        post_event(p, a, EVENTS_XPU_POD_GONE, a->text);
    else if (r == 0 && strcmp(a->reason, "XpuPodFailed") == 0)
        post_event(p, a, EVENTS_XPU_POD_FAILED, a->text);
    return r;
}

/* Sets `a->text` to the outcome. */
static int make(struct pair_controller *p, struct pair_rules_action *a,
                struct error *err)
{
    bool has_template;
    int r = make_buddy(p, a, &has_template, err);
    if (r == 0) {
        (void)snprintf(a->text, sizeof a->text,
                       "made xPU pod %s from PodTemplate %s", a->made,
                       a->buddy);
        post_event(p, a, EVENTS_BUDDY_MADE, a->text);
    } else if (r != -ECANCELED) {
        const char *hint = make_hint(r, has_template);
        (void)snprintf(a->text, sizeof a->text,
                       "no xPU pod was made from PodTemplate %s: %.*s%s",
                       a->buddy, MAKE_ERROR_MAX, err->text, hint);
        if (!kube_error_passes(r))
            post_event(p, a, EVENTS_BUDDY_FAILED, a->text);
    }
    return r;
}

/* The xPU pod keeps its card although its host pod has ended: an Event says so,
 * not the log alone. */
static void tell_kept(struct pair_controller *p,
                      const struct pair_rules_action *a,
                      const struct error *err)
{
    char text[PAIR_RULES_TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "cannot be deleted, although %s, and is tried again: %.*s",
                   a->text, MAKE_ERROR_MAX, err->text);
    post_event(p, a, EVENTS_PAIR_NOT_ENDED, text);
}

static int carry_out(struct pair_controller *p, struct pair_rules_action *a)
{
    struct error err = {0};
    int r = 0;
    switch (a->kind) {
    case PAIR_RULES_DELETE:
        r = delete_pod(p, a, &err);
        if (r == 0)
            post_event(p, a, EVENTS_PAIR_ENDED, a->text);
        else if (r != -ENOENT)
            tell_kept(p, a, &err);
        break;
    case PAIR_RULES_MAKE:
        r = make(p, a, &err);
        break;
    case PAIR_RULES_MARK:
        r = mark(p, a, &err);
        break;
    case PAIR_RULES_TELL:
        r = tell(p, a, &err);
        break;
    }
    if (r == 0)
        log_event(LOG_INFO, "pair", "did", pair_rules_kind_name(a->kind),
                  "namespace", a->namespace, "pod", a->name, "made", a->made,
                  "text", a->text, NULL);
    else if (r != -ENOENT || a->kind == PAIR_RULES_MAKE) /* -ENOENT: the pod
                                                          * is gone */
        log_event(LOG_WARN, "pair-failed", "to", pair_rules_kind_name(a->kind),
                  "namespace", a->namespace, "pod", a->name, "error", err.text,
                  NULL);
    return r;
}

/* --- the thread --------------------------------------------------------- */

static bool may_write(const struct pair_controller *p)
{
    return !p->config.may_write ||
           p->config.may_write(p->config.ctx, PAIR_CONTROLLER_CALL_MS);
}

static void *pairing_thread(void *ctx)
{
    struct pair_controller *p = ctx;
    struct pair_rules_action a;
    pthread_mutex_lock(&p->lock);
    thread_name("pairs", NULL);
    while (!p->stopping) {
        int64_t now_ms = clock_ms();
        if (!p->listed || !may_write(p)) {
            (void)clock_wait(&p->wake, &p->lock, now_ms + IDLE_MS);
            continue;
        }
        if (!pair_rules_next(p->pairs, now_ms, &a)) {
            (void)clock_wait(&p->wake, &p->lock, pair_rules_due(p->pairs));
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        int r = carry_out(p, &a);
        pthread_mutex_lock(&p->lock);
        pair_rules_report(p->pairs, &a, r, clock_ms());
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void on_put(void *ctx, const struct kube_pod *pod)
{
    struct pair_controller *p = ctx;
    hold_lock(&p->lock);
    pair_rules_put(p->pairs, pod, clock_ms());
    pthread_cond_signal(&p->wake);
}

static void on_gone(void *ctx, const char *uid)
{
    struct pair_controller *p = ctx;
    hold_lock(&p->lock);
    pair_rules_gone(p->pairs, uid, clock_ms());
    pthread_cond_signal(&p->wake);
}

static void on_listed(void *ctx)
{
    struct pair_controller *p = ctx;
    hold_lock(&p->lock);
    p->listed = true;
    pthread_cond_signal(&p->wake);
}

struct pod_listener pair_controller_listener(struct pair_controller *p)
{
    return (struct pod_listener){on_put, on_gone, on_listed, p};
}

void pair_controller_lead(struct pair_controller *p)
{
    hold_lock(&p->lock);
    pair_rules_again(p->pairs, clock_ms());
    pthread_cond_signal(&p->wake);
}

/* --- start and stop ----------------------------------------------------- */

static void destroy(struct pair_controller *p)
{
    pair_rules_destroy(p->pairs);
    kube_client_destroy(p->client);
    str_fini(&p->answer.body);
    str_fini(&p->other.body);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

int pair_controller_start(const struct pair_controller_config *config,
                          struct pair_controller **ret_pairing,
                          struct error *err)
{
    struct pair_controller *p = xcalloc(1, sizeof *p);
    p->config = *config;
    p->answer.body.max = p->other.body.max = KUBE_ANSWER_MAX;
    p->pairs = pair_rules_create();
    (void)pthread_mutex_init(&p->lock, NULL); /* cannot fail on Linux */
    clock_wait_init(&p->wake);
    int r = kube_client_create(config->kube, PAIR_CONTROLLER_CALL_MS,
                               &p->client, err);
    if (r == 0) {
        int rc = pthread_create(&p->thread, NULL, pairing_thread, p);
        r = rc ? error_errno(err, rc, "starting the thread of pairs") : 0;
    }
    if (r < 0) {
        destroy(p);
        return r;
    }
    *ret_pairing = p;
    return 0;
}

void pair_controller_stop(struct pair_controller *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL); /* it was started, once */
    destroy(p);
}
