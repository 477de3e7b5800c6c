#include "router/serve/grant.h"

#include <string.h>

#include "lib/base/jrow.h"
#include "lib/base/mem.h"

struct card {
    char id[TOPO_ID_MAX + 1], pci[PCI_ADDR_TEXT_MAX];
};

struct reading {
    struct grant grant;
    char namespace[64], name[254], uid[64], role[8], node[254];
    int64_t cores, memory_mib;
};

static const struct jrow card_rows[] = {
    JROW("id", JROW_STRICT, jrow_fit, struct card, id),
    JROW("pci", JROW_STRICT, jrow_fit, struct card, pci),
    JROW_END,
};

static void read_card(struct jscan *s, void *to)
{
    struct reading *r = to;
    struct card card = {0};
    if (!jrow_read(s, JROW_STRICT, card_rows, &card))
        return;
    if (r->grant.n_cards++ > 0)
        return;
    memcpy(r->grant.card, card.id, sizeof card.id);
    memcpy(r->grant.pci, card.pci, sizeof card.pci);
}

static const struct jrow pod_rows[] = {
    JROW("namespace", JROW_STRICT, jrow_fit, struct reading, namespace),
    JROW("name", JROW_STRICT, jrow_fit, struct reading, name),
    JROW("uid", JROW_STRICT, jrow_fit, struct reading, uid),
    JROW("role", JROW_STRICT, jrow_fit, struct reading, role),
    JROW_END,
};

static const struct jrow need_rows[] = {
    JROW("cores", JROW_STRICT, jrow_int64, struct reading, cores),
    JROW("memoryMiB", JROW_STRICT, jrow_int64, struct reading, memory_mib),
    JROW("arch", JROW_STRICT, jrow_fit, struct reading, grant.arch),
    JROW_END,
};

static const struct jrow rows[] = {
    JROW_OBJECT("pod", JROW_STRICT, pod_rows),
    JROW("node", JROW_STRICT, jrow_fit, struct reading, node),
    JROW_EACH("cards", JROW_STRICT, read_card),
    JROW_OBJECT("need", JROW_STRICT, need_rows),
    JROW_END,
};

static bool differs(const char *is, const char *must)
{
    return *must && strcmp(is, must) != 0;
}

/* A uid that it does not say is that of the pod: it was written at its bind. */
static int check_pod(const struct reading *r, const struct grant_pod *pod,
                     struct error *err)
{
    const struct {
        const char *path, *is, *must;
    } texts[] = {
        {"pod.namespace", r->namespace, pod->namespace},
        {"pod.name", r->name, pod->name},
        {"pod.uid", *r->uid ? r->uid : pod->uid, pod->uid},
        {"node", r->node, pod->node},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (differs(texts[i].is, texts[i].must))
            return error_set(err, EINVAL,
                             "%s: is \"%.64s\", and the pod's is \"%.64s\": "
                             "it was written for another pod",
                             texts[i].path, texts[i].is, texts[i].must);
    return 0;
}

static bool is_remote(const char *role)
{
    return strcmp(role, "xpu") == 0 || strcmp(role, "service") == 0;
}

static int check_values(const struct reading *r, struct error *err)
{
    if (!is_remote(r->role) && strcmp(r->role, "host") != 0)
        return error_set(err, EINVAL,
                         "pod.role: is \"%s\", must be host, xpu or service",
                         r->role);
    if (r->cores < 0 || r->cores > UINT32_MAX)
        return error_set(err, EINVAL, "need.cores: must be 0 to %u",
                         UINT32_MAX);
    if (r->memory_mib < 0 || r->memory_mib > UINT32_MAX)
        return error_set(err, EINVAL, "need.memoryMiB: must be 0 to %u",
                         UINT32_MAX);
    return 0;
}

int grant_read(const char *json, size_t size, const struct grant_pod *pod,
               struct grant *ret_grant, struct error *err)
{
    struct reading r = {0};
    struct jscan s;
    int e = size > GRANT_SIZE_MAX
                ? error_set(err, EINVAL, "has %zu bytes, the limit is %d", size,
                            GRANT_SIZE_MAX)
                : 0;
    jscan_init_kube(&s, json, size);
    if (e == 0)
        e = jrow_parse(&s, JROW_STRICT, rows, &r, err);
    if (e == 0)
        e = check_values(&r, err);
    if (e == 0)
        e = check_pod(&r, pod, err);
    if (e < 0)
        return error_wrap(err, "biga.dev/allocation");
    r.grant.remote = is_remote(r.role);
    r.grant.cores = (uint32_t)r.cores;
    r.grant.memory_mib = (uint32_t)r.memory_mib;
    *ret_grant = r.grant;
    return 0;
}
