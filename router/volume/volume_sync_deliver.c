/* What has changed goes to the remote; by whoever took the pod. */
#include <errno.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/volume/volume_sync_private.h"

/* Units that are delivered together, and what they are at home. */
struct load {
    struct sync_unit **units;
    struct volume_tree *trees;
    int *codes; /* of reading them */
    size_t n;
};

void sync_place_init(struct sync_remote *r, const char *uid, unsigned lane,
                     struct sync_place *ret_place)
{
    const struct volume_sync_config *c = &r->sync->config;
    ret_place->disk = xasprintf("%s/pods/%s", c->disk, uid);
    ret_place->memory = xasprintf("%s/%s", c->memory_helper, uid);
    ret_place->place = (struct volume_place){.exec = c->exec,
                                             .ctx = c->ctx,
                                             .remote = r->name,
                                             .lane = lane,
                                             .disk = ret_place->disk,
                                             .memory = ret_place->memory};
}

void sync_place_fini(struct sync_place *p)
{
    free(p->disk);
    free(p->memory);
}

/* --- at home ------------------------------------------------------------------- */

static int read_unit(const struct sync_unit *u, struct volume_tree *ret_tree,
                     struct error *err)
{
    const struct volume_home *h = &u->home;
    struct volume_item own = {
        .name = "",
        .type = h->form == VOLUME_AS_OUTPUT ? VOLUME_FILE : VOLUME_FOLDER,
        .mode = h->mode,
        .uid = h->uid,
        .gid = h->gid,
        .data = ""};
    switch (h->form) {
    case VOLUME_AS_TREE:
        return volume_tree_read(h->path, ret_tree, err);
    case VOLUME_AS_FILE:
        return volume_tree_read_file(h->path, ret_tree, err);
    default:
        *ret_tree = (struct volume_tree){0};
        return volume_tree_add(ret_tree, &own, err);
    }
}

static void load_plan(const struct load *l, const struct volume_tree *have,
                      struct volume_plan *plan)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct volume_tree *want = &l->trees[i];
        const struct sync_unit *u = l->units[i];
        if (l->codes[i])
            continue;
        switch (u->home.form) {
        case VOLUME_AS_TREE:
            volume_plan_tree(plan, u->at, want, have);
            break;
        case VOLUME_AS_FILE:
            volume_plan_file(plan, u->at, &want->items[0], have);
            break;
        case VOLUME_AS_OUTPUT:
            volume_plan_output(plan, u->at, &want->items[0], have);
            break;
        case VOLUME_AS_PART:
            volume_plan_part(plan, u->at, &want->items[0], u->home.of);
            break;
        default:
            volume_plan_own(plan, u->at, &want->items[0], u->home.limit, have);
        }
    }
}

/* --- to the remote --------------------------------------------------------------- */

static int send_load(const struct load *l, const struct volume_place *place,
                     struct error *err)
{
    struct volume_tree have = {0};
    struct volume_plan plan = {0};
    int rc = volume_send_look(place, &have, err);
    if (!rc) {
        load_plan(l, &have, &plan);
        rc = volume_send_plan(place, &plan, err);
    }
    volume_plan_fini(&plan);
    volume_tree_fini(&have);
    return rc;
}

/* With the lock: what is dirty is taken. */
static void load_take(struct load *l, struct sync_pod *pod)
{
    l->units = xcalloc(pod->n_units + 1, sizeof *l->units);
    l->trees = xcalloc(pod->n_units + 1, sizeof *l->trees);
    l->codes = xcalloc(pod->n_units + 1, sizeof *l->codes);
    for (size_t i = 0; i < pod->n_units; i++)
        if (pod->units[i]->dirty) {
            pod->units[i]->dirty = false;
            l->units[l->n++] = pod->units[i];
        }
}

/* With the lock: what was not delivered is dirty again; what the kubelet has in
 * a form that nobody can deliver waits for its next change. */
static void load_give(struct load *l, struct sync_pod *pod, int sent,
                      struct volume_sync_counts *counts)
{
    for (size_t i = 0; i < l->n; i++) {
        struct sync_unit *u = l->units[i];
        if (sent || l->codes[i] == -EAGAIN)
            u->dirty = true;
        if (sent || l->codes[i])
            counts->n_failed++;
        else
            counts->n_delivered++;
        u->asked = false;
        if (!l->codes[i])
            volume_tree_fini(&l->trees[i]);
        /* each container of a pod has one, and they may be many */
        if (u->home.form == VOLUME_AS_OUTPUT && !u->dirty)
            sync_pod_remove(pod, u);
    }
    free(l->units);
    free(l->trees);
    free(l->codes);
}

/* How many could be read; the first that could not, and matters, is told. */
static size_t load_read(struct load *l, const struct sync_remote *r,
                        const char *uid, int *ret_rc, struct error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct error why = {0};
        int rc = l->codes[i] = read_unit(l->units[i], &l->trees[i], &why);
        n += rc == 0;
        if (rc && !*ret_rc && (l->units[i]->asked || rc == -EAGAIN)) {
            *ret_rc = rc;
            *err = why;
        }
        if (rc && rc != -EAGAIN && !l->units[i]->failed)
            log_event(LOG_WARN, "volume-not-read", "remote", r->name, "pod",
                      uid, "error", why.text, NULL);
        l->units[i]->failed = rc && rc != -EAGAIN;
    }
    return n;
}

int sync_deliver(struct sync_remote *r, struct sync_pod *pod, struct error *err)
{
    struct load l = {0};
    struct sync_place place;
    struct error why = {0};
    int rc = 0, sent = 0;
    (void)pthread_mutex_lock(&r->sync->lock);
    load_take(&l, pod);
    unsigned lane = sync_lane_take(r);
    (void)pthread_mutex_unlock(&r->sync->lock);
    sync_place_init(r, pod->uid, lane, &place);
    if (load_read(&l, r, pod->uid, &rc, &why) > 0)
        sent = send_load(&l, &place.place, err);
    sync_place_fini(&place);
    (void)pthread_mutex_lock(&r->sync->lock);
    sync_lane_give(r, lane);
    load_give(&l, pod, sent, &r->sync->counts);
    (void)pthread_mutex_unlock(&r->sync->lock);
    if (sent)
        return sent;
    if (rc)
        *err = why;
    return rc;
}
