#include "extender/gate/gate_claims.h"

#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jwrite.h"
#include "model/claim/claim_status.h"

enum { NAME_CUT = 200 }; /* of the pod's and the claim's name together */

void gate_claim_name(const struct demand *pod, const struct claim_book_pin *pin,
                     char ret_name[DEMAND_NAME_MAX + 1])
{
    uint64_t hash = hash_bytes(pod->uid, strlen(pod->uid));
    hash = hash_mix(hash, hash_bytes(pin->name, strlen(pin->name)));
    hash = hash_mix(hash, hash_bytes(pin->spec.data, pin->spec.size));
    int n = snprintf(ret_name, NAME_CUT, "%s-%s", pod->name, pin->name);
    size_t used = n < NAME_CUT ? (size_t)n : NAME_CUT - 1;
    while (ret_name[used - 1] == '.' || ret_name[used - 1] == '-')
        used--; /* where it was cut */
    (void)snprintf(ret_name + used, DEMAND_NAME_MAX + 1 - used, "-%08llx",
                   (unsigned long long)(hash & 0xffffffff));
}

static void write_owner(const struct demand *pod, struct str *out)
{
    jwrite_array(out, "ownerReferences");
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "v1");
    jwrite_text(out, "kind", "Pod");
    jwrite_text(out, "name", pod->name);
    jwrite_text(out, "uid", pod->uid);
    jwrite_bool(out, "controller", true);
    jwrite_bool(out, "blockOwnerDeletion", false);
    jwrite_end_object(out);
    jwrite_end_array(out);
}

/* The members of a JSON object that there may be ("" none), into the object
 * that is open. */
static void write_members(const struct str *object, struct str *out)
{
    if (object->size <= strlen("{}"))
        return;
    if (out->data[out->size - 1] != '{')
        str_add_c(out, ',');
    str_add_n(out, object->data + 1, object->size - 2);
}

void gate_claim_write(const struct demand *pod,
                      const struct claim_book_pin *pin, const char *name,
                      struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "apiVersion", "resource.k8s.io/v1");
    jwrite_text(out, "kind", "ResourceClaim");
    jwrite_object(out, "metadata");
    jwrite_text(out, "name", name);
    jwrite_text(out, "namespace", pod->namespace);
    write_owner(pod, out);
    jwrite_object(out, "labels");
    write_members(&pin->labels, out);
    jwrite_end_object(out);
    jwrite_object(out, "annotations");
    write_members(&pin->annotations, out);
    jwrite_text(out, GATE_CLAIM_NAME, pin->name);
    jwrite_text(out, CLAIM_PINNED_KEY, pod->uid);
    jwrite_end_object(out);
    jwrite_end_object(out);
    jwrite_key(out, "spec");
    str_add_n(out, pin->spec.data, pin->spec.size);
    jwrite_end_object(out);
}

void gate_claim_write_status(const struct demand *pod, const char *node,
                             const struct gate_pinned *pinned, size_t n,
                             struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_object(out, "metadata");
    jwrite_text(out, "uid", pod->uid);
    jwrite_end_object(out);
    jwrite_object(out, "status");
    jwrite_text(out, "nominatedNodeName", node);
    jwrite_array(out, "resourceClaimStatuses");
    for (size_t i = 0; i < n; i++) {
        jwrite_object(out, NULL);
        jwrite_text(out, "name", pinned[i].pod_claim);
        jwrite_text(out, "resourceClaimName", pinned[i].claim);
        jwrite_end_object(out);
    }
    jwrite_end_array(out);
    jwrite_end_object(out);
    jwrite_end_object(out);
}
