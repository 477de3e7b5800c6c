/* Any bytes as a Pod: no crash; a refusal says why and leaves the result
 * alone; what is read keeps to its caps, and the pin that is written of it is
 * JSON which fits that node or none, and is itself pinned in the same way. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/fit/node_match.h"
#include "extender/fit/pod_needs.h"
#include "lib/base/jscan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static bool fits(const struct pod_needs *n, const char *node)
{
    const struct node_label label = {"kubernetes.io/hostname", node};
    struct node_match m = {node, &label, 1, false};
    return node_match_labels(&m, n);
}

static void check_caps(const struct pod_needs *n)
{
    require(n->takes.n_amounts <= POD_TAKES_RESOURCES_MAX && !n->takes.more);
    for (size_t i = 0; i < n->takes.n_amounts; i++)
        require(n->takes.amounts[i].amount > 0);
    require(n->takes.n_ports <= POD_TAKES_PORTS_MAX);
    require(n->n_terms <= POD_NEEDS_TERMS_MAX);
    require(n->n_tolerations <= POD_NEEDS_TOLERATIONS_MAX);
    require(n->has_affinity || n->n_terms == 0);
}

/* The same pod but for its affinity to nodes. */
static void check_pin(const struct pod_needs *n)
{
    cleanup_str struct str pin = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str pod = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str again = STR_INIT(STR_MAX_DEFAULT);
    cleanup_with(pod_needs) struct pod_needs *pinned = NULL;
    pod_needs_write_affinity(n, "n1", &pin);
    str_add(&pod, "{\"spec\":{\"affinity\":");
    str_add_n(&pod, str_text(&pin), pin.size);
    str_add(&pod, "}}");
    int rc = pod_needs_read(str_text(&pod), pod.size, &pinned, NULL);
    if (rc < 0) /* one more requirement than may be */
        return;
    require(!fits(pinned, "n2"));
    require(n->n_selector || !fits(n, "n1") || fits(pinned, "n1"));
    pod_needs_write_affinity(pinned, "n1", &again);
    require(again.size == pin.size &&
            memcmp(str_text(&again), str_text(&pin), pin.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pod_needs *n = NULL, *same = NULL;
    struct error err = {0};
    int rc = pod_needs_read((const char *)data, size, &n, &err);
    if (rc < 0) {
        require(rc == -EINVAL && err.text[0] && !n);
        return 0;
    }
    check_caps(n);
    check_pin(n);
    require(pod_needs_read((const char *)data, size, &same, NULL) == 0);
    require(pod_needs_equal(n, same) && n->hash == same->hash);
    pod_needs_unref(same);
    pod_needs_unref(n);
    return 0;
}
