#include "advertiser/dra/dra_claims.h"

#include <errno.h>
#include <string.h>

#include "advertiser/hostside/device_nodes.h"
#include "lib/base/strmap.h"
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/kube/client.h"

/* A claim that was not found. */
struct missing {
    char uid[DRA_UID_MAX + 1];
    int64_t since_ms;
};

struct dra_claims {
    struct dra_claims_config config;
    struct dra_files *files;
    struct strmap missing;       /* struct missing by UID, owned */
    char swept[DRA_UID_MAX + 1]; /* last, in this round; "" */
};

int dra_claims_open(const struct dra_claims_config *config,
                    struct dra_claims **ret_claims, struct error *err)
{
    cleanup_with(dra_claims) struct dra_claims *c = xcalloc(1, sizeof *c);
    c->config = *config;
    int e = dra_files_open(config->dir, config->cdi_dir, &c->files, err);
    if (e == 0)
        *ret_claims = steal(&c);
    return e;
}

void dra_claims_close(struct dra_claims *c)
{
    if (!c)
        return;
    strmap_fini_with(&c->missing, free);
    dra_files_close(c->files);
    free(c);
}

/* --- preparing ------------------------------------------------------------ */

static int check_ref(const struct dra_ref *ref, struct error *err)
{
    if (ref->too_long || !dra_uid_is_good(ref->uid))
        return error_set(err, EINVAL,
                         "uid: is \"%.64s\", must be 1 to %d letters, digits "
                         "and '-'",
                         ref->uid, DRA_UID_MAX);
    if (!dra_name_is_good(ref->namespace) || !dra_name_is_good(ref->name))
        return error_set(err, EINVAL,
                         "namespace and name: are \"%.64s\" and \"%.64s\", "
                         "must be names",
                         ref->namespace, ref->name);
    return 0;
}

static int fetch(struct dra_claims *c, const struct dra_ref *ref,
                 struct dra_record **ret_record, struct error *err)
{
    cleanup_str struct str json = STR_INIT(KUBE_ANSWER_MAX);
    cleanup_with(dra_record) struct dra_record *r = NULL;
    int e = c->config.look_up(c->config.ctx, ref->namespace, ref->name, &json,
                              err);
    if (e == 0)
        e = dra_record_of_claim(str_text(&json), json.size, &r, err);
    if (e < 0)
        return e;
    if (strcmp(r->uid, ref->uid) != 0)
        return error_set(err, ENOENT,
                         "it was deleted and made anew (its uid is %s, the "
                         "kubelet asks for %s): delete the pod that uses it",
                         r->uid, ref->uid);
    *ret_record = steal(&r);
    return 0;
}

/* Is it of this node's cards, and given by claims? */
static int check_device(const struct dra_claims *c, const struct dra_device *d,
                        const struct cdi_host *host, struct error *err)
{
    if (strcmp(d->pool, c->config.node) != 0)
        return error_set(err, EINVAL,
                         "request %s: its device %s is of pool %s, and this "
                         "node is %s: delete the pod that uses it",
                         d->request, d->device, d->pool, c->config.node);
    const struct device *card = topo_find(host->topo, d->device);
    if (!card)
        return error_set(err, ENODEV,
                         "request %s: %s is not in this node now; see whether "
                         "biga-advertiser finds the card, and why not",
                         d->request, d->device);
    if (card->kind != DEVICE_CARD)
        return error_set(err, EINVAL,
                         "request %s: %s is a %s, which another driver gives; "
                         "of " DRA_DRIVER " only cards can be claimed, by the "
                         "DeviceClass " DRA_DRIVER,
                         d->request, d->device, device_kind_name(card->kind));
    if (!card->by_claims && !d->admin)
        return error_set(err, EPERM,
                         "request %s: %s is not given by claims: Biga's "
                         "allocations may have it. Delete the pod; remove the "
                         "toleration of the claim, or start biga-advertiser "
                         "with --claims",
                         d->request, d->device);
    return 0;
}

static int check(const struct dra_claims *c, const struct dra_record *r,
                 const struct cdi_host *host, struct error *err)
{
    if (!r->allocated)
        return error_set(err, EAGAIN,
                         "it is not allocated; kube-scheduler does that");
    if (r->n_devices == 0)
        return error_set(err, EINVAL,
                         "no device of " DRA_DRIVER " is allocated to it");
    for (size_t i = 0; i < r->n_devices; i++) {
        int e = check_device(c, &r->devices[i], host, err);
        if (e < 0)
            return e;
    }
    return 0;
}

/* --- shares ----------------------------------------------------------------- */

/* A claim that takes all of a card's cores leaves nothing to others. */
static bool is_part(const struct dra_device *d, const struct device *card)
{
    char *end;
    unsigned long cores = strtoul(d->cores, &end, 10);
    return d->share[0] && !d->admin &&
           (end == d->cores || *end || cores != card->cores);
}

/* Those of a card that a claim has. */
static void list_functions(const struct dra_record *r, const char *device,
                           struct str *out)
{
    for (size_t i = 0; i < r->n_devices; i++)
        if (r->devices[i].function[0] &&
            strcmp(r->devices[i].device, device) == 0)
            str_addf(out, "%s%s", out->size ? "," : "", r->devices[i].function);
}

static void list_taken(const struct dra_claims *c, const char *but,
                       const char *device, struct str *out)
{
    const struct dra_record *r;
    for (const char *at = ""; (r = dra_files_next(c->files, at)); at = r->uid)
        if (strcmp(r->uid, but) != 0)
            list_functions(r, device, out);
}

/* Each card of which it has a part: a virtual function that no other claim has,
 * the one of before where there is one, the same for all of its requests. */
static void share_out(const struct dra_claims *c, struct dra_record *r,
                      const struct cdi_host *host)
{
    enum { LIST_MAX = DRA_RECORDS_MAX * DRA_DEVICES_MAX * PCI_ADDR_TEXT_MAX };
    const struct dra_record *known = dra_files_find(c->files, r->uid);
    for (size_t i = 0; i < r->n_devices; i++) {
        struct dra_device *d = &r->devices[i];
        const struct device *card = topo_find(host->topo, d->device);
        cleanup_str struct str taken = STR_INIT(LIST_MAX);
        cleanup_str struct str keep = STR_INIT(LIST_MAX);
        d->part = is_part(d, card);
        if (!d->part)
            continue;
        list_taken(c, r->uid, d->device, &taken);
        list_functions(r, d->device, &keep);
        if (known && keep.size == 0)
            list_functions(known, d->device, &keep);
        (void)device_nodes_free_vf(host->sysroot, card, str_text(&keep),
                                   str_text(&taken), d->function);
    }
}

static int prepare(struct dra_claims *c, struct dra_record *wanted,
                   const struct cdi_host *host, struct error *err)
{
    cleanup_with(dra_record) struct dra_record *r = wanted;
    cleanup_str struct str text = STR_INIT(CDI_MAX);
    char uid[DRA_UID_MAX + 1];
    bool written = false;
    memcpy(uid, r->uid, sizeof uid);
    share_out(c, r, host);
    const struct dra_record *known = dra_files_find(c->files, uid);
    bool same = known && dra_record_equal(known, r);
    int e = cdi_write(r, host, &text, err);
    if (e == 0 && !same)
        e = dra_files_put(c->files, steal(&r), err);
    if (e == 0)
        e = dra_files_put_cdi(c->files, uid, &text, &written, err);
    if (e == 0 && (written || !same))
        log_event(LOG_INFO, "claim-prepared", "uid", uid, "again",
                  known ? "true" : "false", NULL);
    return e;
}

int dra_claims_prepare(struct dra_claims *c, const struct dra_ref *ref,
                       const struct cdi_host *host,
                       const struct dra_record **ret_record, struct error *err)
{
    cleanup_with(dra_record) struct dra_record *r = NULL;
    int e = check_ref(ref, err);
    if (e == 0)
        e = fetch(c, ref, &r, err);
    if (e == 0)
        e = check(c, r, host, err);
    if (e == 0)
        e = prepare(c, steal(&r), host, err);
    if (e < 0)
        return error_wrap(err, "ResourceClaim %.63s/%.253s", ref->namespace,
                          ref->name);
    *ret_record = dra_files_find(c->files, ref->uid);
    return 0;
}

/* --- unpreparing ---------------------------------------------------------- */

static int unprepare(struct dra_claims *c, const char *uid, const char *why,
                     struct error *err)
{
    bool known = dra_files_find(c->files, uid);
    int e = dra_files_remove(c->files, uid, err);
    if (e == 0)
        free(strmap_remove(&c->missing, uid));
    if (e == 0 && known)
        log_event(LOG_INFO, "claim-unprepared", "uid", uid, "why", why, NULL);
    return e;
}

int dra_claims_unprepare(struct dra_claims *c, const struct dra_ref *ref,
                         struct error *err)
{
    if (ref->too_long || !dra_uid_is_good(ref->uid))
        return 0; /* nothing can have been prepared for that */
    int e = unprepare(c, ref->uid, "asked", err);
    return e < 0 ? error_wrap(err, "ResourceClaim %.63s/%.253s", ref->namespace,
                              ref->name)
                 : 0;
}

/* --- looking after -------------------------------------------------------- */

static void restore(struct dra_claims *c, const struct dra_record *r,
                    const struct cdi_host *host)
{
    cleanup_str struct str text = STR_INIT(CDI_MAX);
    struct error err = {0};
    bool written = false;
    int e = cdi_write(r, host, &text, &err);
    if (e == -ENODEV)
        return;
    if (e == 0)
        e = dra_files_put_cdi(c->files, r->uid, &text, &written, &err);
    if (e < 0)
        log_event(LOG_ERROR, "claim-not-restored", "uid", r->uid, "error",
                  err.text, NULL);
    else if (written)
        log_event(LOG_INFO, "claim-restored", "uid", r->uid, NULL);
}

void dra_claims_restore(struct dra_claims *c, const struct cdi_host *host)
{
    const struct dra_record *r;
    for (const char *at = ""; (r = dra_files_next(c->files, at)); at = r->uid)
        restore(c, r, host);
}

/* Is its claim gone?  Whatever keeps us from knowing is no. */
static int is_gone(struct dra_claims *c, const struct dra_record *r)
{
    struct dra_ref ref = {0};
    struct error err = {0};
    cleanup_with(dra_record) struct dra_record *now = NULL;
    memcpy(ref.uid, r->uid, sizeof ref.uid);
    memcpy(ref.namespace, r->namespace, sizeof ref.namespace);
    memcpy(ref.name, r->name, sizeof ref.name);
    return fetch(c, &ref, &now, &err);
}

static int64_t missing_since(struct dra_claims *c, const char *uid,
                             int64_t now_ms)
{
    struct missing *m = strmap_get(&c->missing, uid);
    if (!m) {
        m = xcalloc(1, sizeof *m);
        (void)snprintf(m->uid, sizeof m->uid, "%s", uid);
        m->since_ms = now_ms;
        (void)strmap_put(&c->missing, m->uid, m); /* there was none */
    }
    return m->since_ms;
}

bool dra_claims_sweep(struct dra_claims *c, int64_t now_ms)
{
    struct error err = {0};
    char uid[DRA_UID_MAX + 1];
    const struct dra_record *r = dra_files_next(c->files, c->swept);
    if (!r) {
        c->swept[0] = '\0';
        return false;
    }
    memcpy(uid, r->uid, sizeof uid);
    memcpy(c->swept, uid, sizeof uid);
    int e = is_gone(c, r);
    if (e == 0) {
        free(strmap_remove(&c->missing, uid));
    } else if (e == -ENOENT &&
               now_ms - missing_since(c, uid, now_ms) >= c->config.grace_ms) {
        (void)failpoint("claim-before-sweep");
        if (unprepare(c, uid, "gone", &err) < 0)
            log_event(LOG_ERROR, "claim-not-unprepared", "uid", uid, "error",
                      err.text, NULL);
    }
    if (!kube_error_passes(e))
        return true;
    c->swept[0] = '\0'; /* others would get no answer either */
    return false;
}
