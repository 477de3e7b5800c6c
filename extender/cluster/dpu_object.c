#include "extender/cluster/dpu_object.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/jrow.h"

enum { PHASE_MAX = 64, STATUS_MAX = 16, REASON_TEXT_MAX = 256, SHOWN_MAX = 80 };

/* The bytes of what matters, not yet checked; data NULL: it is not there. */
struct dpu_raw {
    struct jtext namespace, name;
    struct jtext dpu_node, node, pci, serial, dpu_side;
    struct jtext phase, conditions, operational;
};

#define RAW(key, field) \
    JROW(key, JROW_NULLABLE, jrow_raw, struct dpu_raw, field)

static const struct jrow metadata_rows[] = {
    RAW("namespace", namespace),
    RAW("name", name),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    RAW("dpuNodeName", dpu_node), RAW("nodeName", node),
    RAW("pciAddress", pci),       RAW("serialNumber", serial),
    RAW("isDpuSide", dpu_side),   JROW_END,
};
static const struct jrow status_rows[] = {
    RAW("phase", phase),
    RAW("conditions", conditions),
    RAW("operationalConditions", operational),
    JROW_END,
};
static const struct jrow rows[] = {
    JROW_OBJECT("metadata", JROW_NULLABLE, metadata_rows),
    JROW_OBJECT("spec", JROW_NULLABLE, spec_rows),
    JROW_OBJECT("status", JROW_NULLABLE, status_rows),
    JROW_END,
};

struct condition {
    struct jtext type, status, reason;
};

static const struct jrow condition_rows[] = {
    JROW("type", JROW_NULLABLE, jrow_raw, struct condition, type),
    JROW("status", JROW_NULLABLE, jrow_raw, struct condition, status),
    JROW("reason", JROW_NULLABLE, jrow_raw, struct condition, reason),
    JROW_END,
};

/* --- values --------------------------------------------------------------- */

static bool is_there(const struct jtext *raw)
{
    return raw->data && !jtext_is(raw, "null");
}

static int refuse(const char *field, const struct jtext *raw, const char *must,
                  struct error *err)
{
    if (!is_there(raw))
        return error_set(err, EINVAL, "%s: is missing, must be %s", field,
                         must);
    int size = raw->size < SHOWN_MAX ? (int)raw->size : SHOWN_MAX;
    return error_set(err, EINVAL, "%s: is %.*s, must be %s", field, size,
                     raw->data, must);
}

/* A string of less than `size` bytes; "" when it is not there. */
static int take_text(const char *field, const struct jtext *raw, char *ret_text,
                     size_t size, struct error *err)
{
    struct jscan s;
    struct jtext text;
    char must[64];
    ret_text[0] = '\0';
    if (!is_there(raw))
        return 0;
    jscan_init_kube(&s, raw->data, raw->size);
    if (jscan_peek(&s) == JKIND_STRING && jscan_string(&s, &text) &&
        text.size < size) {
        (void)jtext_decode(&text, ret_text);
        return 0;
    }
    (void)snprintf(must, sizeof must, "a text of at most %zu bytes", size - 1);
    return refuse(field, raw, must, err);
}

/* "0000-03-00", as DPF writes it, or as PCI addresses are written elsewhere. */
static int take_pci(const struct jtext *raw, struct card_bar *bar,
                    struct error *err)
{
    static const char must[] = "a PCI address, such as 0000-03-00";
    char text[PCI_ADDR_TEXT_MAX + 2];
    if (!is_there(raw))
        return 0;
    /* 2: room for the function of one that has none */
    if (take_text("spec.pciAddress", raw, text, PCI_ADDR_TEXT_MAX, NULL) < 0)
        return refuse("spec.pciAddress", raw, must, err);
    if (!text[0])
        return 0;
    for (char *c = text; *c; c++)
        if (*c == '-')
            *c = ':';
    if (!strchr(text, '.'))
        memcpy(text + strlen(text), ".0", sizeof ".0");
    if (pci_addr_parse(text, &bar->pci, NULL) < 0)
        return refuse("spec.pciAddress", raw, must, err);
    bar->has_pci = true;
    return 0;
}

static int take_node(enum dpu_kind kind, const struct dpu_raw *raw,
                     struct dpu_object *dpu, struct error *err)
{
    const bool newer = kind == DPU_OF_DPF && is_there(&raw->dpu_node);
    const char *field = newer ? "spec.dpuNodeName" : "spec.nodeName";
    const struct jtext *value = newer ? &raw->dpu_node : &raw->node;
    int r = take_text(field, value, dpu->node, sizeof dpu->node, err);
    if (r == 0 && !dpu->node[0])
        r = refuse(kind == DPU_OF_DPF ? "spec.dpuNodeName" : field, value,
                   "the name of a node", err);
    return r;
}

/* A DPU's own side is no card of the node that it is there. */
static int take_side(const struct dpu_raw *raw, struct dpu_object *dpu,
                     struct error *err)
{
    if (!is_there(&raw->dpu_side) || jtext_is(&raw->dpu_side, "false"))
        return 0;
    if (!jtext_is(&raw->dpu_side, "true"))
        return refuse("spec.isDpuSide", &raw->dpu_side, "true or false", err);
    dpu->node[0] = '\0';
    return 0;
}

/* --- conditions ----------------------------------------------------------- */

/* The one of this type, in a list that may be missing; not found: its type is
 * not there. */
static int find_condition(const char *field, const struct jtext *list,
                          const char *type, struct condition *ret_condition,
                          struct error *err)
{
    struct jscan s;
    char name[STATUS_MAX * 2];
    if (!is_there(list))
        return 0;
    jscan_init_kube(&s, list->data, list->size);
    if (jscan_peek(&s) != JKIND_ARRAY)
        return refuse(field, list, "a list of conditions", err);
    (void)jscan_array(&s); /* it is one */
    while (jscan_element(&s)) {
        struct condition c = {0};
        if (!jrow_read(&s, JROW_STRICT, condition_rows, &c))
            return refuse(field, list, "a list of conditions", err);
        if (take_text(field, &c.type, name, sizeof name, NULL) == 0 &&
            strcmp(name, type) == 0)
            *ret_condition = c;
    }
    return 0;
}

/* Is the DPU kept from being ready by a condition?  Then why. */
static int judge_condition(const char *field, const struct condition *c,
                           bool only_false, struct dpu_object *dpu,
                           const char *what, struct error *err)
{
    char status[STATUS_MAX], type[STATUS_MAX * 2], reason[REASON_TEXT_MAX + 1];
    char path[96];
    (void)take_text(field, &c->type, type, sizeof type, NULL); /* it was found
                                                                * by it */
    (void)snprintf(path, sizeof path, "%s[%s].status", field, type);
    if (take_text(path, &c->status, status, sizeof status, NULL) < 0 ||
        (strcmp(status, "True") != 0 && strcmp(status, "False") != 0 &&
         strcmp(status, "Unknown") != 0))
        return refuse(path, &c->status, "True, False or Unknown", err);
    if (only_false ? strcmp(status, "False") != 0 : strcmp(status, "True") == 0)
        return 0;
    /* a longer one is left out */
    (void)take_text(path, &c->reason, reason, sizeof reason, NULL);
    dpu->ready = false;
    (void)snprintf(dpu->bar.why, sizeof dpu->bar.why,
                   "%s: condition %s is \"%s\"%s%s%s", what, type, status,
                   reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
    return 0;
}

static int judge_list(const char *field, const struct jtext *list,
                      const char *type, bool only_false, struct dpu_object *dpu,
                      const char *what, struct error *err)
{
    struct condition c = {0};
    int r = find_condition(field, list, type, &c, err);
    if (r == 0 && c.type.data)
        r = judge_condition(field, &c, only_false, dpu, what, err);
    return r;
}

/* --- both kinds ----------------------------------------------------------- */

static int judge_dpf(const struct dpu_raw *raw, struct dpu_object *dpu,
                     const char *what, struct error *err)
{
    char phase[PHASE_MAX + 1] = "";
    int r = judge_list("status.operationalConditions", &raw->operational,
                       "OperationalReady", true, dpu, what, err);
    if (r == 0)
        r = judge_list("status.conditions", &raw->conditions, "Ready", false,
                       dpu, what, err);
    if (r == 0)
        r = take_text("status.phase", &raw->phase, phase, sizeof phase, err);
    if (r < 0 || strcmp(phase, "Ready") == 0)
        return r;
    dpu->ready = false; /* which says more than its conditions */
    (void)snprintf(dpu->bar.why, sizeof dpu->bar.why, "%s: phase \"%s\"", what,
                   phase[0] ? phase : "Initializing");
    return 0;
}

static int judge_openshift(const struct dpu_raw *raw, struct dpu_object *dpu,
                           const char *what, struct error *err)
{
    dpu->ready = false;
    (void)snprintf(dpu->bar.why, sizeof dpu->bar.why,
                   "%s: it has no condition Ready yet", what);
    struct condition c = {0};
    int r = find_condition("status.conditions", &raw->conditions, "Ready", &c,
                           err);
    if (r < 0 || !c.type.data)
        return r;
    dpu->ready = true;
    dpu->bar.why[0] = '\0';
    return judge_condition("status.conditions", &c, false, dpu, what, err);
}

static int read_name(const struct dpu_raw *raw, struct dpu_object *dpu,
                     struct error *err)
{
    int r = take_text("metadata.namespace", &raw->namespace, dpu->namespace,
                      sizeof dpu->namespace, err);
    if (r == 0)
        r = take_text("metadata.name", &raw->name, dpu->name, sizeof dpu->name,
                      err);
    if (r == 0 && !dpu->name[0])
        r = refuse("metadata.name", &raw->name, "a name", err);
    return r;
}

static int read_rest(enum dpu_kind kind, const struct dpu_raw *raw,
                     struct dpu_object *dpu, struct error *err)
{
    const bool dpf = kind == DPU_OF_DPF;
    char what[DPU_NAMESPACE_MAX + DPU_NAME_MAX + 96];
    (void)snprintf(what, sizeof what, "%s %s%s%s of %s",
                   dpf ? "DPU" : "DataProcessingUnit", dpu->namespace,
                   dpu->namespace[0] ? "/" : "", dpu->name,
                   dpf ? "DPF" : "the OpenShift DPU operator");
    int r = take_node(kind, raw, dpu, err);
    if (r == 0)
        r = dpf ? take_pci(&raw->pci, &dpu->bar, err)
                : take_side(raw, dpu, err);
    if (r == 0 && dpf)
        r = take_text("spec.serialNumber", &raw->serial, dpu->bar.serial,
                      sizeof dpu->bar.serial, err);
    if (r < 0)
        return r;
    return dpf ? judge_dpf(raw, dpu, what, err)
               : judge_openshift(raw, dpu, what, err);
}

int dpu_object_read(enum dpu_kind kind, const char *json, size_t size,
                    struct dpu_object *ret_dpu, struct error *err)
{
    struct jscan s;
    struct dpu_raw raw = {0};
    struct dpu_object dpu = {.ready = true};
    jscan_init_kube(&s, json, size);
    int r = jrow_parse(&s, JROW_STRICT, rows, &raw, err);
    /* whose it is, if at all possible */
    int named = read_name(&raw, &dpu, r < 0 ? NULL : err);
    memcpy(ret_dpu->namespace, dpu.namespace, sizeof dpu.namespace);
    memcpy(ret_dpu->name, dpu.name, sizeof dpu.name);
    if (r == 0)
        r = named;
    if (r == 0)
        r = read_rest(kind, &raw, &dpu, err);
    if (r == 0)
        *ret_dpu = dpu;
    return r < 0 ? -EINVAL : 0;
}
