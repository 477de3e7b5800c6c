/* What a pod needs on its card before its sandbox: the card's configuration,
 * directories and files; and their end. */
#include "advertiser/act/core/deliver.h"

#include <errno.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/card/pod_files.h"
#include "advertiser/act/core/config.h"
#include "advertiser/act/core/helper_pod.h"
#include "advertiser/act/core/pod_table.h"
#include "lib/base/mem.h"

/* --- files by the helper ------------------------------------------------ */

/* A helper that is still starting, as after a reboot of the card, is waited
 * for. */
static void not_delivered(struct actuator *a, const struct pod_entry *e,
                          struct machine_result *r, struct error *err)
{
    act_lock(a);
    r->permanent = !a->helper_image || helper_is_given_up(a, e);
    act_unlock(a);
    r->waits = !r->permanent;
    r->reason = r->waits ? "WaitsForHelper" : "HelperMissing";
    if (r->waits) {
        r->e = error_set(err, ENOENT,
                         "Biga's helper (%s) does not run on %s yet",
                         a->helper_image, e->intent->place);
        return;
    }
    r->e = a->helper_image
               ? error_set(err, ENOENT,
                           "its volumes cannot be made on %s, where Biga's "
                           "helper (image %s) does not run: import the image "
                           "there, delete the pod and apply it again",
                           e->intent->place, a->helper_image)
               : error_set(err, ENOENT,
                           "its volumes cannot be made on %s: give the "
                           "advertiser the image of Biga's helper",
                           e->intent->place);
}

/* `id` has to live as long as what is returned. */
static struct pod_access access_of(struct actuator *a,
                                   const struct connection *c,
                                   const struct pod_entry *e,
                                   char id[CRI_ID_MAX + 1])
{
    id[0] = '\0';
    if (!card_is_host(&c->place)) {
        act_lock(a);
        helper_id(a, c->place.name, id);
        act_unlock(a);
    }
    return (struct pod_access){.place = &c->place,
                               .dirs = &a->dirs,
                               .uid = e->intent->uid,
                               .cri = c->cri,
                               .helper = id};
}

void deliver_files(struct place *at, const struct connection *c,
                   struct pod_entry *e, struct machine_result *r,
                   struct error *err)
{
    char id[CRI_ID_MAX + 1];
    const struct pod_access pod = access_of(at->a, c, e, id);
    bool host = card_is_host(&c->place);
    if (!host && pod_entry_has_volumes(e) && !id[0]) {
        not_delivered(at->a, e, r, err);
        return;
    }
    r->e = pod_files_make(&pod, e->spec, err);
    if (r->e < 0)
        r->reason = "FilesFailed";
}

/* --- their end ---------------------------------------------------------- */

static void remove_files(const struct pod_access *pod,
                         const struct podspec *spec, struct machine_result *r,
                         struct error *err)
{
    bool refused;
    r->e = pod_files_remove(pod, spec, &refused, err);
    if (r->e < 0 && refused)
        r->reason = "FilesLeft";
}

void deliver_end(struct place *at, const struct connection *c,
                 struct pod_entry *e, struct machine_result *r,
                 struct error *err)
{
    struct actuator *a = at->a;
    char id[CRI_ID_MAX + 1];
    bool host = card_is_host(&c->place);
    if (!host && (!a->helper_image ||
                  (e->intent->attempt == 0 && !pod_entry_has_volumes(e))))
        return; /* nothing was begun, or nobody could write anything */
    const struct pod_access pod = access_of(a, c, e, id);
    if (host || id[0]) {
        remove_files(&pod, e->spec, r, err);
        return;
    }
    act_lock(a);
    bool given_up = helper_is_given_up(a, e);
    bool begun = e->intent->attempt > 0 || e->m.prepared;
    act_unlock(a);
    if (!begun) /* it waited for the helper in vain */
        return;
    cleanup_free char *dir = config_pod_dir(a, e);
    r->e = error_set(err, ENOENT,
                     "%s cannot be removed, as Biga's helper (image %s) does "
                     "not run there",
                     dir, a->helper_image);
    r->reason = "FilesLeft";
    r->permanent = given_up;
}
