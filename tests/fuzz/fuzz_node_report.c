/* What a node says of its pods: what is taken keeps to its caps, and what is
 * refused says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/pods/node_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

static void check_used(const struct used *u)
{
    need(u->cpu_milli >= 0 && u->cpu_milli <= USED_MAX);
    need(u->memory_mib >= 0 && u->memory_mib <= USED_MAX);
    need(strlen(u->at) <= USED_AT_MAX);
}

static void check_pod(const struct node_report_pod *p)
{
    const struct pod_status *s = p->status;
    check_used(&p->used);
    need(p->uid[0] && s && s->state > POD_STATE_PENDING &&
         s->state < POD_STATES);
    need(strlen(s->reason) <= APPLIED_REASON_MAX &&
         strlen(s->message) <= APPLIED_MESSAGE_MAX &&
         s->n_containers <= APPLIED_CONTAINERS_MAX);
    for (size_t i = 0; i < s->n_containers; i++)
        need(s->containers[i].name[0] && s->containers[i].state[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(node_report) struct node_report *s = NULL;
    struct error err = {0};
    int r = node_report_parse((const char *)data, size, &s, &err);
    need(r == 0 ? s != NULL : r == -EINVAL && !s && err.text[0]);
    for (size_t i = 0; s && i < s->n_pods; i++) {
        check_pod(&s->pods[i]);
        need(i == 0 || strcmp(s->pods[i - 1].uid, s->pods[i].uid) < 0);
    }
    need(!s || s->n_places <= NODE_REPORT_PLACES_MAX);
    for (size_t i = 0; s && i < s->n_places; i++)
        need(s->places[i].name[0] && s->places[i].health < PLACE_HEALTHS);
    for (size_t i = 0; s && i < s->n_places; i++)
        check_used(&s->used[i]);
    return 0;
}
