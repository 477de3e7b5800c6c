/* fakeactuator - actuator.h without a card: what was wanted is remembered, and
 * tests say how it fares.  To be included by one file of a program, which then
 * has these functions instead of the real ones. */
#ifndef BIGA_TESTS_FAKEACTUATOR_H
#define BIGA_TESTS_FAKEACTUATOR_H

#include <pthread.h>
#include <string.h>

#include "advertiser/act/actuator.h"
#include "model/io/clock.h"

enum { FAKE_PODS_MAX = 512 };

struct fake_pod {
    struct act_pod_view view;
    char *spec, *files, *env; /* as wanted; env is "KEY=value " of each */
    int sriov_vfs;
    bool is_host;
    int64_t grace_s;
    unsigned n_wants;
};

struct actuator {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t version;
    struct fake_pod pods[FAKE_PODS_MAX];
    size_t n;
    struct act_place_view places[ACT_PLACES_MAX];
    size_t n_places;
    void (*changed)(void *ctx);
    void *ctx;

    int want_result;               /* for all; 0: as it is */
    char frozen[ACT_NAME_MAX + 1]; /* calls to this place wait … */
    bool thaw;                     /* … until this */
    unsigned n_waiting;
    struct str log; /* what a container wrote */
};

static struct actuator fake = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .log = {.max = 1 << 20},
};

static void fake_place(const char *name, enum act_health health)
{
    struct act_place_view *p = &fake.places[fake.n_places++];
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    (void)snprintf(p->runtime, sizeof p->runtime, "containerd 1.6.20");
    (void)snprintf(p->endpoint, sizeof p->endpoint, "tcp://192.0.2.1:7443");
    p->health = health;
}

static void fake_init(void)
{
    clock_wait_init(&fake.wake);
    fake.version = 1;
    fake_place("card-0000-17-00", ACT_READY);
    (void)snprintf(fake.places[0].pci, sizeof fake.places[0].pci,
                   "0000:17:00.0");
    fake_place("card-0000-5e-00", ACT_READY);
    fake_place("host", ACT_READY);
}

static void fake_changed_locked(struct fake_pod *p)
{
    fake.version++;
    if (p)
        p->view.version = fake.version;
    pthread_cond_broadcast(&fake.wake);
}

static void fake_tell(void)
{
    if (fake.changed)
        fake.changed(fake.ctx);
}

static struct fake_pod *fake_uid_locked(const char *uid)
{
    for (size_t i = 0; i < fake.n; i++)
        if (strcmp(fake.pods[i].view.uid, uid) == 0)
            return &fake.pods[i];
    return NULL;
}

static struct fake_pod *fake_name_locked(const char *namespace,
                                         const char *name)
{
    for (size_t i = 0; i < fake.n; i++)
        if (strcmp(fake.pods[i].view.namespace, namespace) == 0 &&
            strcmp(fake.pods[i].view.name, name) == 0)
            return &fake.pods[i];
    return NULL;
}

static void fake_drop_locked(struct fake_pod *p)
{
    free(p->spec);
    free(p->files);
    free(p->env);
    *p = fake.pods[--fake.n];
}

static inline void fake_fini(void)
{
    while (fake.n)
        fake_drop_locked(&fake.pods[0]);
    str_fini(&fake.log);
}

/* The pod gets that far. */
static inline void fake_set(const char *uid, enum act_state state,
                            const char *reason)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_pod *p = fake_uid_locked(uid);
    if (p) {
        p->view.state = state;
        p->view.ready = state == ACT_RUNNING;
        (void)snprintf(p->view.reason, sizeof p->view.reason, "%s", reason);
        p->view.n_containers = 1;
        (void)snprintf(p->view.containers[0].name, 64, "main");
        p->view.containers[0].state = state == ACT_RUNNING ? CRI_RUNNING
                                                           : CRI_EXITED;
        fake_changed_locked(p);
    }
    pthread_mutex_unlock(&fake.lock);
    fake_tell();
}

/* Does the pod exist, is it to end? */
static inline bool fake_has(const char *uid, bool *ret_stopping)
{
    pthread_mutex_lock(&fake.lock);
    const struct fake_pod *p = fake_uid_locked(uid);
    bool there = p != NULL;
    if (ret_stopping)
        *ret_stopping = p && p->view.stopping;
    pthread_mutex_unlock(&fake.lock);
    return there;
}

static inline void fake_thaw(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.thaw = true;
    pthread_cond_broadcast(&fake.wake);
    pthread_mutex_unlock(&fake.lock);
}

/* --- actuator.h ----------------------------------------------------------- */

const char *act_health_name(enum act_health health)
{
    static const char *const names[] = {"ready", "suspect", "lost", "drained"};
    return names[health];
}

const char *act_state_name(enum act_state state)
{
    static const char *const names[] = {"wanted",   "preparing", "pulling",
                                        "creating", "running",   "stopping",
                                        "gone",     "failed"};
    return names[state];
}

int actuator_create(const struct actuator_config *config,
                    struct actuator **ret_actuator, struct error *err)
{
    (void)err;
    fake_init();
    fake.changed = config->changed;
    fake.ctx = config->ctx;
    *ret_actuator = &fake;
    return 0;
}

void actuator_destroy(struct actuator *a)
{
    (void)a;
    fake_fini();
}

int actuator_set_places(struct actuator *a, const struct act_place *places,
                        size_t n, struct error *err)
{
    (void)a;
    (void)err;
    pthread_mutex_lock(&fake.lock);
    fake.n_places = 0;
    for (size_t i = 0; i < n; i++)
        fake_place(places[i].name, ACT_READY);
    fake_changed_locked(NULL);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

static bool fake_is_place(const char *name)
{
    for (size_t i = 0; i < fake.n_places; i++)
        if (strcmp(fake.places[i].name, name) == 0)
            return true;
    return false;
}

static void fake_copy(struct fake_pod *p, const struct act_pod *pod)
{
    struct str env = STR_INIT(65536);
    struct act_pod_view *v = &p->view;
    (void)snprintf(v->namespace, sizeof v->namespace, "%s", pod->namespace);
    (void)snprintf(v->name, sizeof v->name, "%s", pod->name);
    (void)snprintf(v->uid, sizeof v->uid, "%s", pod->uid);
    (void)snprintf(v->place, sizeof v->place, "%s", pod->place);
    (void)snprintf(v->pair_key, sizeof v->pair_key, "%s", pod->pair_key);
    (void)snprintf(v->owner, sizeof v->owner, "%s", pod->owner);
    v->held = pod->held;
    p->spec = xstrndup(pod->spec, pod->spec_size);
    p->files = pod->files ? xstrndup(pod->files, pod->files_size) : NULL;
    for (size_t i = 0; i < pod->env.n; i++)
        str_addf(&env, "%s=%s ", pod->env.list[i].key, pod->env.list[i].value);
    p->env = str_steal(&env);
    p->sriov_vfs = pod->sriov_vfs;
    p->is_host = pod->is_host;
}

int actuator_want(struct actuator *a, const struct act_pod *pod,
                  struct error *err)
{
    int r = 0;
    (void)a;
    pthread_mutex_lock(&fake.lock);
    struct fake_pod *p = fake_uid_locked(pod->uid);
    if (p)
        p->n_wants++;
    else if (fake.want_result)
        r = error_set(err, -fake.want_result, "it does not want to");
    else if (!fake_is_place(pod->place))
        r = error_set(err, ENOENT, "there is no place %s", pod->place);
    else if (fake_name_locked(pod->namespace, pod->name))
        r = error_set(err, EEXIST, "another %s/%s is not gone yet",
                      pod->namespace, pod->name);
    else if (fake.n == FAKE_PODS_MAX)
        r = error_set(err, ENOSPC, "too many");
    if (!p && r == 0) {
        p = &fake.pods[fake.n++];
        memset(p, 0, sizeof *p);
        fake_copy(p, pod);
        p->n_wants = 1;
        fake_changed_locked(p);
    }
    pthread_mutex_unlock(&fake.lock);
    fake_tell();
    return r;
}

int actuator_begin(struct actuator *a, const char *uid, struct error *err)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    struct fake_pod *p = fake_uid_locked(uid);
    int r = p ? 0 : error_set(err, ENOENT, "no pod %s", uid);
    if (p) {
        p->view.held = false;
        fake_changed_locked(p);
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}

int actuator_unwant(struct actuator *a, const char *uid, int64_t grace_s,
                    struct error *err)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    struct fake_pod *p = fake_uid_locked(uid);
    int r = p ? 0 : error_set(err, ENOENT, "no pod %s", uid);
    if (p && !p->view.stopping) {
        p->view.stopping = true;
        p->view.state = ACT_STOPPING;
        p->grace_s = grace_s;
        fake_changed_locked(p);
    }
    pthread_mutex_unlock(&fake.lock);
    fake_tell();
    return r;
}

int actuator_keep(struct actuator *a, const char *owner,
                  const char *const *uids, size_t n, struct error *err)
{
    (void)a;
    (void)err;
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < fake.n; i++) {
        struct fake_pod *p = &fake.pods[i];
        bool kept = strcmp(p->view.owner, owner) != 0;
        for (size_t j = 0; j < n && !kept; j++)
            kept = strcmp(uids[j], p->view.uid) == 0;
        if (!kept && !p->view.stopping) {
            p->view.stopping = true;
            p->view.state = ACT_STOPPING;
            fake_changed_locked(p);
        }
    }
    pthread_mutex_unlock(&fake.lock);
    fake_tell();
    return 0;
}

int actuator_forget(struct actuator *a, const char *uid, struct error *err)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    struct fake_pod *p = fake_uid_locked(uid);
    int r = p ? 0 : error_set(err, ENOENT, "no pod %s", uid);
    if (p) {
        fake_drop_locked(p);
        fake_changed_locked(NULL);
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}

size_t actuator_list(struct actuator *a, struct act_pod_view **ret_pods)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    size_t n = fake.n;
    struct act_pod_view *list = xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = fake.pods[i].view;
    pthread_mutex_unlock(&fake.lock);
    *ret_pods = list;
    return n;
}

int actuator_find(struct actuator *a, const char *namespace, const char *name,
                  struct act_pod_view *ret_pod)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    const struct fake_pod *p = fake_name_locked(namespace, name);
    if (p)
        *ret_pod = p->view;
    pthread_mutex_unlock(&fake.lock);
    return p ? 0 : -ENOENT;
}

size_t actuator_places(struct actuator *a,
                       struct act_place_view ret_places[ACT_PLACES_MAX])
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    size_t n = fake.n_places;
    memcpy(ret_places, fake.places, n * sizeof *ret_places);
    pthread_mutex_unlock(&fake.lock);
    return n;
}

uint64_t actuator_version(struct actuator *a)
{
    (void)a;
    pthread_mutex_lock(&fake.lock);
    uint64_t version = fake.version;
    pthread_mutex_unlock(&fake.lock);
    return version;
}

uint64_t actuator_wait(struct actuator *a, uint64_t version, int64_t ms)
{
    int64_t due = clock_ms() + ms;
    (void)a;
    pthread_mutex_lock(&fake.lock);
    while (fake.version <= version && clock_wait(&fake.wake, &fake.lock, due))
        ;
    uint64_t now = fake.version;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

int actuator_drain(struct actuator *a, const char *place, bool drained,
                   struct error *err)
{
    int r = error_set(err, ENOENT, "there is no place %s", place);
    (void)a;
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < fake.n_places; i++)
        if (strcmp(fake.places[i].name, place) == 0) {
            fake.places[i].drained = drained;
            fake.places[i].health = drained ? ACT_DRAINED : ACT_READY;
            fake_changed_locked(NULL);
            r = 0;
        }
    pthread_mutex_unlock(&fake.lock);
    fake_tell();
    return r;
}

/* A call to a frozen place takes its time. */
static int fake_call(const char *place, struct error *err)
{
    bool frozen;
    pthread_mutex_lock(&fake.lock);
    frozen = strcmp(fake.frozen, place) == 0;
    fake.n_waiting += frozen;
    while (frozen && !fake.thaw)
        (void)clock_wait(&fake.wake, &fake.lock, clock_ms() + 100);
    fake.n_waiting -= frozen;
    pthread_mutex_unlock(&fake.lock);
    return frozen ? error_set(err, ETIMEDOUT, "%s does not answer", place) : 0;
}

int actuator_exec(struct actuator *a, const char *namespace, const char *name,
                  const char *container, const char *const *argv, size_t n_argv,
                  uint32_t timeout_s, struct cri_exec *ret_exec,
                  struct error *err)
{
    struct act_pod_view pod;
    if (actuator_find(a, namespace, name, &pod) < 0)
        return error_set(err, ENOENT, "no pod %s/%s", namespace, name);
    int r = fake_call(pod.place, err);
    if (r < 0)
        return r;
    ret_exec->exit_code = 7;
    str_addf(&ret_exec->out, "%s:%u", container, timeout_s);
    for (size_t i = 0; i < n_argv; i++)
        str_addf(&ret_exec->out, " %s", argv[i]);
    str_add_n(&ret_exec->err, "\xff\0!", 3);
    return 0;
}

int actuator_logs(struct actuator *a, const char *namespace, const char *name,
                  const char *container, uint64_t offset, size_t max,
                  struct str *ret_text, uint64_t *ret_next, struct error *err)
{
    struct act_pod_view pod;
    (void)container;
    if (actuator_find(a, namespace, name, &pod) < 0)
        return error_set(err, ENOENT, "no pod %s/%s", namespace, name);
    int r = fake_call(pod.place, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&fake.lock);
    size_t at = offset < fake.log.size ? (size_t)offset : fake.log.size;
    size_t n = fake.log.size - at < max ? fake.log.size - at : max;
    if (n)
        str_add_n(ret_text, fake.log.data + at, n);
    *ret_next = at + n;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int actuator_objects(struct actuator *a, const char *place,
                     struct act_object **ret_objects, size_t *ret_n,
                     struct error *err)
{
    (void)a;
    int r = fake_call(place, err);
    if (r < 0)
        return r;
    struct act_object *list = xcalloc(2, sizeof *list);
    list[0].sandbox = list[0].ours = true;
    (void)snprintf(list[0].id, sizeof list[0].id, "abc123");
    (void)snprintf(list[0].pod, sizeof list[0].pod, "stray");
    (void)snprintf(list[0].state, sizeof list[0].state, "ready");
    (void)snprintf(list[1].id, sizeof list[1].id, "def456");
    (void)snprintf(list[1].container, sizeof list[1].container, "main");
    (void)snprintf(list[1].state, sizeof list[1].state, "exited");
    *ret_objects = list;
    *ret_n = 2;
    return 0;
}

#endif
