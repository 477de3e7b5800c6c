#include "extender/fit/pod_needs.h"

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text ? text : "");
    str_add_c(out, ',');
}

static void add_number(struct str *out, uint64_t number)
{
    str_add_u64(out, number);
    str_add_c(out, ',');
}

static void write_takes(const struct pod_takes *t, struct str *out)
{
    add_number(out, t->n_amounts);
    for (size_t i = 0; i < t->n_amounts; i++) {
        add_text(out, t->amounts[i].resource);
        add_number(out, (uint64_t)t->amounts[i].amount);
    }
    add_number(out, t->n_ports);
    for (size_t i = 0; i < t->n_ports; i++) {
        add_text(out, t->ports[i].ip);
        add_number(out, t->ports[i].port);
        add_number(out, (unsigned char)t->ports[i].protocol);
    }
}

void pod_needs_write(const struct pod_needs *n, struct str *out)
{
    write_takes(&n->takes, out);
    add_number(out, n->n_selector);
    for (size_t i = 0; i < n->n_selector; i++) {
        add_text(out, n->selector[i].key);
        add_text(out, n->selector[i].values[0]);
    }
    add_number(out, n->has_affinity);
    add_number(out, n->n_terms);
    for (size_t i = 0; i < n->n_terms; i++) {
        add_text(out, n->terms[i].json_labels);
        add_text(out, n->terms[i].json_fields);
    }
    add_number(out, n->n_tolerations);
    for (size_t i = 0; i < n->n_tolerations; i++) {
        const struct needs_toleration *t = &n->tolerations[i];
        add_text(out, t->key);
        add_text(out, t->value);
        add_text(out, t->effect);
        add_number(out, t->op);
    }
    add_number(out, n->unjudged);
}

void pod_needs_write_unjudged(const struct pod_needs *n, struct str *out)
{
    static const struct {
        enum needs_unjudged what;
        const char *text;
    } all[] = {
        {NEEDS_SPREAD, "topology spread constraints"},
        {NEEDS_PODS, "required affinity or anti-affinity to pods"},
        {NEEDS_VOLUMES, "claims of volumes"},
    };
    const char *between = "";
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!(n->unjudged & all[i].what))
            continue;
        str_add(out, between);
        str_add(out, all[i].text);
        between = ", ";
    }
}
