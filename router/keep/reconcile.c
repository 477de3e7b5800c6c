#include "router/keep/reconcile.h"

#include <string.h>

/* --- what the annotation says ---------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return *folder && strncmp(path, folder, size) == 0 && path[size] == '/';
}

/* Sealed with a secret that is lost: nothing but what identifies it, and logs
 * where the kubelet has them. */
static struct kept *believe_less(const struct reconcile *r,
                                 const struct kept *said)
{
    struct kept less = {.kind = said->kind,
                        .state = said->state,
                        .remote = said->remote,
                        .namespace = said->namespace,
                        .name = said->name,
                        .uid = said->uid,
                        .attempt = said->attempt,
                        .hash = said->hash,
                        .made_s = said->made_s,
                        .handler = said->handler,
                        .allocation = said->allocation,
                        .host_network = said->host_network,
                        .container = said->container,
                        .image = said->image};
    memcpy(less.sandbox_id, said->sandbox_id, sizeof less.sandbox_id);
    if (is_below(said->log_path, r->pod_logs))
        less.log_path = said->log_path;
    if (is_below(said->log_directory, r->pod_logs))
        less.log_directory = said->log_directory;
    return kept_copy(&less);
}

/* NULL: it is not to be believed. */
static struct kept *said_of(const struct reconcile *r,
                            const struct seen_item *item, bool *ret_sealed)
{
    cleanup_with(kept) struct kept *said = NULL;
    bool sealed = false;
    if (kept_unseal(item->kept, r->secret, &said, &sealed, NULL) < 0)
        return NULL;
    if ((!sealed && !r->trust) || strcmp(said->remote, r->remote) != 0 ||
        strcmp(said->uid, item->uid) != 0 ||
        (said->kind == KEPT_SANDBOX) != item->sandbox ||
        strcmp(said->sandbox_id, item->sandbox_id) != 0)
        return NULL;
    *ret_sealed = sealed;
    return sealed ? steal(&said) : believe_less(r, said);
}

/* --- verdicts ------------------------------------------------------------- */

static bool is_here(const struct reconcile *r,
                    const struct reconcile_have *have)
{
    return have && strcmp(have->kept->remote, r->remote) == 0;
}

/* A container is of a sandbox of the same pod, which is there. */
static bool has_sandbox(const struct reconcile *r, const struct kept *said)
{
    if (said->kind == KEPT_SANDBOX)
        return true;
    const struct reconcile_have *s = r->by_id(r->ctx, said->sandbox_id);
    return is_here(r, s) && s->kept->kind == KEPT_SANDBOX &&
           strcmp(s->kept->uid, said->uid) == 0;
}

/* Another record has its key. */
static enum reconcile_verdict judge_twin(const struct seen *seen,
                                         const struct reconcile_have *have,
                                         const struct kept *said)
{
    if (have->busy)
        return RECONCILE_WAIT;
    if (have->kept->state == KEPT_ANNOUNCED)
        return have->kept->hash == said->hash ? RECONCILE_ADOPT
                                              : RECONCILE_STRAY;
    /* it may take the place of one that is gone, when that is forgotten */
    if (have->fresh || !seen_find(seen, have->kept->id))
        return RECONCILE_WAIT;
    return RECONCILE_STRAY;
}

enum reconcile_verdict reconcile_item(const struct reconcile *r,
                                      const struct seen *seen,
                                      const struct seen_item *item,
                                      struct kept **ret_kept)
{
    char key[KEPT_KEY_SIZE];
    const struct reconcile_have *have = r->by_id(r->ctx, item->id);
    if (have)
        return is_here(r, have) &&
                       (have->kept->kind == KEPT_SANDBOX) == item->sandbox
                   ? RECONCILE_KNOWN
                   : RECONCILE_STRAY;
    if (r->forgotten(r->ctx, item->id))
        return RECONCILE_WAIT;
    bool sealed = false;
    cleanup_with(kept) struct kept *said = said_of(r, item, &sealed);
    if (!said)
        return RECONCILE_STRAY;
    kept_key(said, key);
    have = r->by_key(r->ctx, said->kind, key);
    if (have && !is_here(r, have))
        return RECONCILE_STRAY;
    enum reconcile_verdict verdict = have ? judge_twin(seen, have, said)
                                          : RECONCILE_REBUILD;
    if (verdict != RECONCILE_ADOPT && verdict != RECONCILE_REBUILD)
        return verdict;
    if (!has_sandbox(r, said))
        return RECONCILE_STRAY;
    /* what was sealed went with the call, whatever was announced since; but it
     * may lack the mounts */
    bool whole = said->kind == KEPT_SANDBOX || said->mounts.size;
    *ret_kept = kept_with_id(have && !(sealed && whole) ? have->kept : said,
                             item->id);
    return verdict;
}

bool reconcile_is_gone(const struct seen *seen,
                       const struct reconcile_have *have)
{
    if (have->busy || have->fresh || seen->partly)
        return false;
    if (have->kept->state == KEPT_ANNOUNCED)
        return have->late;
    return !seen_find(seen, have->kept->id);
}
