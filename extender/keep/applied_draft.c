#include "extender/keep/applied_draft.h"

#include <string.h>

#include "extender/pods/applied_private.h"
#include "lib/base/strmap.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

/* One change; the newest one of a key is what the draft holds under that
 * key. */
struct entry {
    char *key;
    bool is_config, secret;
    char *namespace, *name;
    struct applied_pod *pod;       /* NULL: removed */
    struct applied_config *config; /* the same */
    bool ends;                     /* its new status replaces that of the set */
};

struct applied_draft {
    struct applied *pods;
    struct pod_set *set; /* as it was when the draft began */
    struct entry **log;
    size_t n, cap;
    struct strmap newest;
    long n_pods, n_configs; /* after the commit */
};

struct applied_draft *applied_draft_begin(struct applied *p)
{
    struct applied_draft *d = xcalloc(1, sizeof *d);
    d->pods = p;
    d->set = applied_get(p);
    d->n_pods = (long)d->set->n_pods;
    d->n_configs = (long)d->set->n_configs;
    return d;
}

void applied_draft_drop(struct applied_draft *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++) {
        struct entry *e = d->log[i];
        applied_pod_unref(e->pod);
        applied_config_unref(e->config);
        free(e->key);
        free(e->namespace);
        free(e->name);
        free(e);
    }
    free(d->log);
    strmap_fini(&d->newest);
    pod_set_unref(d->set);
    free(d);
}

/* --- what is so in the draft ---------------------------------------------- */

static char *key_of(bool is_config, bool secret, const char *namespace,
                    const char *name)
{
    const char *kind = !is_config ? "pod" : secret ? "secret" : "configmap";
    return xasprintf("%s/%s/%s", kind, namespace, name);
}

static const struct applied_pod *
find_pod(const struct applied_draft *d, const char *namespace, const char *name)
{
    cleanup_free char *key = key_of(false, false, namespace, name);
    const struct entry *e = strmap_get(&d->newest, key);
    return e ? e->pod : pod_set_find(d->set, namespace, name);
}

static const struct applied_config *find_config(const struct applied_draft *d,
                                                bool secret,
                                                const char *namespace,
                                                const char *name)
{
    cleanup_free char *key = key_of(true, secret, namespace, name);
    const struct entry *e = strmap_get(&d->newest, key);
    return e ? e->config : pod_set_config(d->set, secret, namespace, name);
}

static struct entry *note(struct applied_draft *d, bool is_config, bool secret,
                          const char *namespace, const char *name)
{
    struct entry *e = xcalloc(1, sizeof *e);
    e->key = key_of(is_config, secret, namespace, name);
    e->is_config = is_config;
    e->secret = secret;
    e->namespace = xstrdup(namespace);
    e->name = xstrdup(name);
    d->log = xgrow(d->log, d->n, &d->cap, sizeof(*d->log));
    d->log[d->n++] = e;
    (void)strmap_remove(&d->newest, e->key); /* the key is the older entry's
                                              * memory */
    (void)strmap_put(&d->newest, e->key, e);
    return e;
}

/* --- checks --------------------------------------------------------------- */

/* A service that is applied again under its name is replaced, not refused. */
static bool is_rolled(const struct applied_pod *old,
                      const struct applied_pod *p)
{
    return old->demand.role == ROLE_SERVICE && p->demand.role == ROLE_SERVICE &&
           (!old->deleting || old->next);
}

static int check_apply(const struct applied_draft *d,
                       const struct applied_pod *p, long *n_pods,
                       struct error *err)
{
    const struct applied_pod *old = find_pod(d, p->namespace, p->name);
    if (!old) {
        if (++*n_pods > APPLIED_MAX)
            return error_set(err, EFBIG, "pod %s/%s would be more than %d pods",
                             p->namespace, p->name, APPLIED_MAX);
        return 0;
    }
    if (is_rolled(old, p))
        return 0;
    if (old->deleting)
        return error_set(err, EEXIST,
                         "pod %s/%s: one of that name is ending: wait until it "
                         "is gone (biga ps %s/%s), then apply again",
                         p->namespace, p->name, p->namespace, p->name);
    if (!applied_pod_same(old, p))
        return error_set(err, EEXIST,
                         "pod %s/%s: is there with another spec, and what runs "
                         "is not changed: delete it first (biga delete %s/%s)",
                         p->namespace, p->name, p->namespace, p->name);
    return 0;
}

/* The first key, in order, that one of them lacks or has with another value;
 * NULL when both hold the same. */
static const char *differing_key(const struct applied_config *a,
                                 const struct applied_config *b)
{
    for (size_t i = 0; i < a->n_entries || i < b->n_entries; i++) {
        const struct config_entry *x = i < a->n_entries ? &a->entries[i] : NULL;
        const struct config_entry *y = i < b->n_entries ? &b->entries[i] : NULL;
        int order = !x ? 1 : !y ? -1 : strcmp(x->key, y->key);
        if (order != 0)
            return order < 0 ? x->key : y->key;
        if (x->size != y->size ||
            (x->size > 0 && memcmp(x->data, y->data, x->size) != 0))
            return x->key;
    }
    return NULL;
}

/* As the API server has it: ValidateConfigMapUpdate() and
 * ValidateSecretUpdate() in Kubernetes' pkg/apis/core/validation. */
static int check_immutable(const struct applied_config *old,
                           const struct applied_config *c, struct error *err)
{
    const char *kind = c->secret ? "Secret" : "ConfigMap";
    const char *key = differing_key(old, c);
    if (!old->immutable)
        return 0;
    if (!c->immutable)
        return error_set(err, EEXIST,
                         "%s %s/%s: immutable: is true where it is, and cannot "
                         "be unset: delete it first, or apply another name",
                         kind, c->namespace, c->name);
    if (key)
        return error_set(err, EEXIST,
                         "%s %s/%s: data: key \"%.64s\" differs, but it is "
                         "immutable: delete it first, or apply another name",
                         kind, c->namespace, c->name, key);
    return 0;
}

static int check_config(const struct applied_draft *d,
                        const struct applied_config *c, long *n_configs,
                        struct error *err)
{
    const struct applied_config *old = find_config(d, c->secret, c->namespace,
                                                   c->name);
    if (old)
        return check_immutable(old, c, err);
    if (++*n_configs > APPLIED_MAX)
        return error_set(err, EFBIG,
                         "%s/%s would be more than %d ConfigMaps and Secrets",
                         c->namespace, c->name, APPLIED_MAX);
    return 0;
}

static int check_pod(const struct applied_draft *d, const struct pod_change *c,
                     struct error *err)
{
    const struct applied_pod *p = find_pod(d, c->namespace, c->name);
    if (!p)
        return error_set(err, ENOENT, "pod %.63s/%.253s: was not applied",
                         c->namespace, c->name);
    if (c->uid && strcmp(c->uid, p->uid) != 0)
        return error_set(err, ENOENT, "pod %s/%s: has uid %s now, not %.63s",
                         p->namespace, p->name, p->uid, c->uid);
    return 0;
}

int applied_draft_check(const struct applied_draft *d,
                        const struct pod_change *changes, size_t n,
                        size_t *ret_failed, struct error *err)
{
    long n_pods = d->n_pods, n_configs = d->n_configs;
    int e = 0;
    if (n > APPLIED_CHANGES_MAX) {
        *ret_failed = APPLIED_CHANGES_MAX;
        return error_set(err, EFBIG, "%zu changes at once, the limit is %d", n,
                         APPLIED_CHANGES_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const struct pod_change *c = &changes[i];
        switch (c->kind) {
        case APPLIED_APPLY:
            e = check_apply(d, c->pod, &n_pods, err);
            break;
        case APPLIED_DELETE:
        case APPLIED_END:
        case APPLIED_FORGET:
            e = check_pod(d, c, err);
            break;
        case CONFIG_APPLY:
            e = check_config(d, c->config, &n_configs, err);
            break;
        case CONFIG_DELETE:
            if (!find_config(d, c->secret, c->namespace, c->name))
                e = error_set(err, ENOENT, "%s %.63s/%.253s: was not applied",
                              c->secret ? "secret" : "configmap", c->namespace,
                              c->name);
            break;
        }
        if (e < 0) {
            *ret_failed = i;
            return e;
        }
    }
    return 0;
}

/* --- making them ---------------------------------------------------------- */

static int store_pod(struct store *store, const struct applied_pod *p,
                     struct error *err)
{
    cleanup_free char *next =
        p->next ? xasprintf("%s%s", p->next->uid, p->next->json) : NULL;
    const struct store_pod row = {
        .next = next,
        .namespace = p->namespace,
        .name = p->name,
        .uid = p->uid,
        .json = p->json,
        .size = p->size,
        .number = p->number,
        .deleting = p->deleting,
        .grace_s = p->grace_s,
        .ended = p->end ? (uint32_t)p->ended : 0,
        .reason = p->end ? p->end->reason : "",
        .message = p->end ? p->end->message : "",
    };
    return store_put_pod(store, &row, err);
}

/* The pod is so from now on; `ends`: its status, too. */
static int keep_pod(struct applied_draft *d, struct store *store,
                    struct applied_pod *p, bool ends, struct error *err)
{
    int e = store_pod(store, p, err);
    if (e < 0)
        return e;
    struct entry *entry = note(d, false, false, p->namespace, p->name);
    entry->pod = applied_pod_ref(p);
    entry->ends = ends;
    return 0;
}

/* What comes next of a service; nothing when that is what is there. */
static int make_next(struct applied_draft *d, struct store *store,
                     struct pod_change *c, struct error *err)
{
    const struct applied_pod *old = find_pod(d, c->pod->namespace,
                                             c->pod->name);
    bool back = !old->deleting && applied_pod_same(old, c->pod);
    const struct applied_pod *last = old->next ? old->next : old;
    memcpy(c->result_uid, last->uid, APPLIED_UID_SIZE);
    c->result = APPLIED_UNCHANGED;
    if (applied_pod_same(last, c->pod))
        return 0;
    c->result = APPLIED_REPLACED;
    memcpy(c->result_uid, back ? old->uid : c->pod->uid, APPLIED_UID_SIZE);
    cleanup_with(applied_pod) struct applied_pod *p = applied_pod_copy(old);
    applied_pod_unref(p->next);
    p->next = back ? NULL : applied_pod_ref(c->pod);
    return keep_pod(d, store, p, false, err);
}

static int make_apply(struct applied_draft *d, struct store *store,
                      struct pod_change *c, struct error *err)
{
    struct applied_pod *p = c->pod;
    const struct applied_pod *old = find_pod(d, p->namespace, p->name);
    if (old && is_rolled(old, p))
        return make_next(d, store, c, err);
    c->result = old ? APPLIED_UNCHANGED : APPLIED_CREATED;
    memcpy(c->result_uid, old ? old->uid : p->uid, APPLIED_UID_SIZE);
    if (old)
        return 0;
    p->number = store_take_version(store);
    p->watched = true;
    int e = keep_pod(d, store, p, false, err);
    d->n_pods += e == 0;
    return e;
}

static int make_delete(struct applied_draft *d, struct store *store,
                       struct pod_change *c, struct error *err)
{
    const struct applied_pod *old = find_pod(d, c->namespace, c->name);
    uint32_t grace = c->grace_s < 0 ? old->grace_s : (uint32_t)c->grace_s;
    memcpy(c->result_uid, old->uid, APPLIED_UID_SIZE);
    bool drops = old->next && !c->roll;
    c->result = old->deleting && grace == old->grace_s && !drops
                    ? APPLIED_UNCHANGED
                    : APPLIED_DELETED;
    if (c->result == APPLIED_UNCHANGED)
        return 0;
    cleanup_with(applied_pod) struct applied_pod *p = applied_pod_copy(old);
    p->deleting = true;
    p->grace_s = grace;
    if (drops)
        applied_pod_unref(steal(&p->next));
    return keep_pod(d, store, p, false, err);
}

static int make_end(struct applied_draft *d, struct store *store,
                    struct pod_change *c, struct error *err)
{
    const struct applied_pod *old = find_pod(d, c->namespace, c->name);
    c->result = APPLIED_UNCHANGED;
    if (!old || old->end)
        return 0;
    c->result = APPLIED_ENDED;
    memcpy(c->result_uid, old->uid, APPLIED_UID_SIZE);
    cleanup_with(applied_pod) struct applied_pod *p = applied_pod_copy(old);
    p->ended = c->ended;
    p->end = pod_status_ref(c->status);
    pod_status_unref(p->status);
    p->status = pod_status_ref(c->status);
    p->ended_s = clock_wall_s();
    return keep_pod(d, store, p, true, err);
}

/* The old service has ended: its replacement takes the name. */
static int make_succeed(struct applied_draft *d, struct store *store,
                        struct pod_change *c, const struct applied_pod *old,
                        struct error *err)
{
    cleanup_with(applied_pod) struct applied_pod *p =
        applied_pod_copy(old->next);
    c->result = APPLIED_REPLACED;
    memcpy(c->result_uid, p->uid, APPLIED_UID_SIZE);
    p->number = store_take_version(store);
    p->watched = true;
    return keep_pod(d, store, p, false, err);
}

static int make_forget(struct applied_draft *d, struct store *store,
                       struct pod_change *c, struct error *err)
{
    const struct applied_pod *old = find_pod(d, c->namespace, c->name);
    c->result = APPLIED_UNCHANGED;
    if (!old) /* forgotten by this very operation */
        return 0;
    if (old->next)
        return make_succeed(d, store, c, old, err);
    c->result = APPLIED_DELETED;
    memcpy(c->result_uid, old->uid, APPLIED_UID_SIZE);
    int e = store_delete_pod(store, c->namespace, c->name, err);
    if (e == 0) {
        (void)note(d, false, false, c->namespace, c->name);
        d->n_pods--;
    }
    return e;
}

static int make_config(struct applied_draft *d, struct store *store,
                       struct pod_change *c, struct error *err)
{
    struct applied_config *n = c->config;
    const struct applied_config *old = find_config(d, n->secret, n->namespace,
                                                   n->name);
    c->result = old ? APPLIED_REPLACED : APPLIED_CREATED;
    if (old && old->size == n->size &&
        memcmp(old->json, n->json, n->size) == 0) {
        c->result = APPLIED_UNCHANGED;
        return 0;
    }
    const struct store_config row = {n->secret, n->namespace, n->name, n->json,
                                     n->size};
    int e = store_put_config(store, &row, err);
    if (e == 0) {
        note(d, true, n->secret, n->namespace, n->name)->config =
            applied_config_ref(n);
        d->n_configs += old == NULL;
    }
    return e;
}

static int make_config_delete(struct applied_draft *d, struct store *store,
                              struct pod_change *c, struct error *err)
{
    c->result = APPLIED_UNCHANGED;
    if (!find_config(d, c->secret, c->namespace, c->name))
        return 0;
    c->result = APPLIED_DELETED;
    int e = store_delete_config(store, c->secret, c->namespace, c->name, err);
    if (e == 0) {
        (void)note(d, true, c->secret, c->namespace, c->name);
        d->n_configs--;
    }
    return e;
}

int applied_draft_make(struct applied_draft *d, struct store *store,
                       struct pod_change *c, struct error *err)
{
    switch (c->kind) {
    case APPLIED_APPLY:
        return make_apply(d, store, c, err);
    case APPLIED_DELETE:
        return make_delete(d, store, c, err);
    case APPLIED_END:
        return make_end(d, store, c, err);
    case APPLIED_FORGET:
        return make_forget(d, store, c, err);
    case CONFIG_APPLY:
        return make_config(d, store, c, err);
    default:
        return make_config_delete(d, store, c, err);
    }
}

/* --- the end -------------------------------------------------------------- */

/* The pod's status may have changed while the draft was made: keep the
 * newer, and since when it runs. */
static void commit_pod(const struct applied *p, struct pod_set *set,
                       const struct entry *e)
{
    const struct applied_pod *now = pod_set_find(set, e->namespace, e->name);
    if (!e->pod) {
        if (now && p->gone)
            p->gone(p->gone_ctx, now);
        pod_set_remove(set, e->namespace, e->name);
        return;
    }
    bool same = now && strcmp(now->uid, e->pod->uid) == 0;
    if (same && !e->ends) {
        struct pod_status *status = pod_status_ref(now->status);
        pod_status_unref(e->pod->status);
        e->pod->status = status;
    }
    if (same) {
        e->pod->started_s = now->started_s;
        e->pod->watched = now->watched;
    }
    e->pod->version = set->version;
    pod_set_put(set, e->pod);
}

static void commit_config(struct pod_set *set, const struct entry *e)
{
    if (!e->config) {
        pod_set_remove_config(set, e->secret, e->namespace, e->name);
        return;
    }
    e->config->version = set->version;
    pod_set_put_config(set, e->config);
}

void applied_draft_commit(struct applied_draft *d)
{
    struct applied *p = d->pods;
    bool news = d->n > 0;
    pod_set_unref(steal(&d->set));
    if (news) {
        hold_lock(&p->lock);
        struct pod_set *set = applied_writable(p);
        for (size_t i = 0; i < d->n; i++)
            if (d->log[i]->is_config)
                commit_config(set, d->log[i]);
            else
                commit_pod(p, set, d->log[i]);
    }
    applied_draft_drop(d);
    if (news)
        applied_tell(p);
}

/* --- the start ------------------------------------------------------------ */

/* A pod that a newer release has stored and this one cannot read is kept,
 * because it may run.  NULL when not even its names can be used. */
static struct applied_pod *load_one(const struct applied *p,
                                    const struct applied_pod_names *names,
                                    const char *json, size_t size)
{
    struct applied_pod *pod = NULL;
    struct error err = {0};
    if (applied_pod_create(json, size, names->uid, &p->demand, &pod, &err) == 0)
        return pod;
    pod = applied_pod_create_foreign(names, json, size, &p->demand, err.text);
    log_event(LOG_WARN, pod ? "pod-not-understood" : "pod-not-loaded",
              "namespace", names->namespace, "pod", names->name, "error",
              err.text, NULL);
    return pod;
}

static void load_next(const struct applied *p, const struct store_pod *row,
                      struct applied_pod *pod)
{
    char uid[APPLIED_UID_SIZE] = "";
    const struct applied_pod_names names = {row->namespace, row->name, uid};
    size_t size = strlen(row->next), at = APPLIED_UID_SIZE - 1;
    if (size < APPLIED_UID_SIZE)
        return;
    memcpy(uid, row->next, at);
    pod->next = load_one(p, &names, row->next + at, size - at);
}

static int load_pod(void *ctx, const struct store_pod *row)
{
    struct applied *p = ctx;
    const struct applied_pod_names names = {row->namespace, row->name,
                                            row->uid};
    cleanup_with(applied_pod) struct applied_pod *pod =
        load_one(p, &names, row->json, row->size);
    if (!pod)
        return 0;
    pod->number = row->number;
    pod->deleting = row->deleting;
    pod->grace_s = row->grace_s;
    if (row->ended && row->ended < POD_STATES) {
        pod->ended = (enum pod_state)row->ended;
        pod->status->state = pod->ended;
        (void)snprintf(pod->status->reason, sizeof pod->status->reason, "%s",
                       row->reason);
        (void)snprintf(pod->status->message, sizeof pod->status->message, "%s",
                       row->message);
        pod->end = pod_status_ref(pod->status);
    }
    load_next(p, row, pod);
    pod->version = p->set->version;
    pod_set_put(p->set, pod);
    return 0;
}

static int load_config(void *ctx, const struct store_config *row)
{
    struct applied *p = ctx;
    struct error err = {0};
    cleanup_with(applied_config) struct applied_config *c = NULL;
    if (applied_config_create(row->json, row->size, &c, &err) < 0) {
        log_event(LOG_WARN, "config-not-loaded", "namespace", row->namespace,
                  "name", row->name, "error", err.text, NULL);
        return 0;
    }
    c->version = p->set->version;
    pod_set_put_config(p->set, c);
    return 0;
}

int pods_load(struct applied *p, struct store *store, struct error *err)
{
    int e = store_each_config(store, load_config, p, err);
    return e == 0 ? store_each_pod(store, load_pod, p, err) : e;
}
