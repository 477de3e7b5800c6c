#include "router/log/log_caller.h"

#include <string.h>

#include "advertiser/cri/cri.h"

enum { NAME_SIZE = LOG_REMOTE_NAME_MAX + 1 };

/* A connection; used by the one thread that has that lane. */
struct lane {
    char remote[NAME_SIZE];
    unsigned lane, generation;
    struct cri *cri;
};

struct log_caller {
    struct log_caller_source source;
    pthread_mutex_t lock; /* of the list alone */
    struct lane *lanes[LOG_REMOTES_MAX * LOG_LANES];
    size_t n;
};

struct log_caller *log_caller_create(const struct log_caller_source *source)
{
    struct log_caller *c = xcalloc(1, sizeof *c);
    c->source = *source;
    (void)pthread_mutex_init(&c->lock, NULL); /* cannot fail */
    return c;
}

void log_caller_destroy(struct log_caller *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        cri_destroy(c->lanes[i]->cri);
        free(c->lanes[i]);
    }
    (void)pthread_mutex_destroy(&c->lock); /* nobody has it */
    free(c);
}

static struct lane *lane_find(struct log_caller *c, const char *remote,
                              unsigned lane)
{
    hold_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++)
        if (c->lanes[i]->lane == lane &&
            strcmp(c->lanes[i]->remote, remote) == 0)
            return c->lanes[i];
    if (c->n == ARRAY_LEN(c->lanes))
        return NULL;
    struct lane *l = c->lanes[c->n++] = xcalloc(1, sizeof *l);
    (void)snprintf(l->remote, sizeof l->remote, "%s", remote);
    l->lane = lane;
    return l;
}

int log_caller_exec(void *ctx, const char *remote, unsigned lane,
                    const char *const *argv, size_t n_argv, unsigned ms,
                    struct cri_exec *ret_exec, struct error *err)
{
    struct log_caller *c = ctx;
    struct grpc_config config = {0};
    char helper[CRI_ID_MAX + 1] = "";
    unsigned generation;
    struct lane *l = lane_find(c, remote, lane);
    if (!l)
        return error_set(err, ENOSPC, "remote %s: more than %d", remote,
                         LOG_REMOTES_MAX);
    int rc = c->source.find(c->source.ctx, remote, &config, &generation, helper,
                            err);
    if (!rc && l->cri && l->generation != generation) {
        cri_destroy(l->cri);
        l->cri = NULL;
    }
    if (!rc && !l->cri)
        rc = cri_create(&config, &l->cri, err);
    if (rc)
        return rc;
    l->generation = generation;
    return cri_exec_sync(l->cri, helper, argv, n_argv, ms / 1000 + 1, ms,
                         ret_exec, err);
}

void log_caller_rest(struct log_caller *c, const char *remote, unsigned lane)
{
    struct lane *l = lane_find(c, remote, lane);
    if (!l)
        return;
    cri_destroy(l->cri);
    l->cri = NULL;
}
