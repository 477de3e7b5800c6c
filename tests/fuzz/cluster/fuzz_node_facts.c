/* Any bytes as a Node: no crash; a refusal says why; what is read keeps to its
 * caps, its labels are in order, and a registry that it is put into judges. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/fit/fit_nodes.h"
#include "extender/fit/node_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_facts(const struct node_facts *f)
{
    require(f->name[0] && f->n_labels <= NODE_FACTS_LABELS_MAX &&
            f->n_taints <= NODE_FACTS_TAINTS_MAX &&
            f->n_amounts <= NODE_FACTS_RESOURCES_MAX);
    for (size_t i = 1; i < f->n_labels; i++)
        require(strcmp(f->labels[i - 1].key, f->labels[i].key) <= 0);
    for (size_t i = 0; i < f->n_amounts; i++)
        require(f->amounts[i].amount >= 0);
}

static void check_registry(const char *name, const char *json, size_t size)
{
    static const char pod[] =
        "{\"spec\":{\"nodeSelector\":{\"a\":\"b\"},\"containers\":[{"
        "\"resources\":{\"requests\":{\"cpu\":\"1\",\"a/b\":\"2\"}}}]}}";
    cleanup_with(pod_needs) struct pod_needs *needs = NULL;
    struct fit_verdict v;
    struct fit_nodes *r = fit_nodes_create();
    require(pod_needs_read(pod, sizeof pod - 1, &needs, NULL) == 0);
    require(fit_nodes_put(r, json, size, NULL) == 0);
    require(fit_nodes_put(r, json, size, NULL) == 0);
    enum fit_reason reason = fit_nodes_judge(r, needs, name, &v);
    require(reason != FIT_NO_NODE && (reason == FIT_OK) == !v.text[0]);
    require((fit_nodes_room(r, needs, name) > 0) == (reason == FIT_OK));
    fit_nodes_gone(r, name);
    require(fit_nodes_judge(r, needs, name, NULL) == FIT_NO_NODE);
    fit_nodes_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    struct node_facts f;
    struct error err = {0};
    int rc = node_facts_read(json, size, &f, &err);
    if (rc < 0) {
        require(rc == -EINVAL && err.text[0]);
        return 0;
    }
    check_facts(&f);
    check_registry(f.name, json, size);
    node_facts_fini(&f);
    return 0;
}
