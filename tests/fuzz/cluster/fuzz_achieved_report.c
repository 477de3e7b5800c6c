/* What a node says that its pods have: what is taken keeps to its caps and is
 * in order, and what is refused says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "extender/achieved/achieved_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

static void check_devices(const struct achieved_devices *d)
{
    need(d->n <= ACHIEVED_DEVICES_MAX && (d->told || d->n == 0));
    for (size_t i = 1; i < d->n; i++)
        need(pci_addr_compare(&d->at[i - 1], &d->at[i]) < 0);
}

static void check_numas(const struct achieved_numas *d)
{
    need(d->n <= ACHIEVED_NUMAS_MAX && (d->told || d->n == 0));
    for (size_t i = 1; i < d->n; i++)
        need(d->at[i - 1] < d->at[i]);
}

static void check_pod(const struct achieved_report *r,
                      const struct achieved_facts *f)
{
    struct demand pod = {0};
    need(f->namespace[0] && f->name[0] && (f->cpus || f->n_cpus == 0));
    check_devices(&f->cards);
    check_devices(&f->gpus);
    check_devices(&f->nics);
    check_numas(&f->numa);
    check_numas(&f->memory_numa);
    memcpy(pod.namespace, f->namespace, sizeof f->namespace);
    memcpy(pod.name, f->name, sizeof f->name);
    memcpy(pod.uid, f->uid, sizeof f->uid);
    need(achieved_report_find(r, &pod) == f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(achieved_report) struct achieved_report *r = NULL;
    struct error err = {0};
    int e = achieved_report_parse((const char *)data, size, &r, &err);
    need(e == 0 ? r != NULL : e == -EINVAL && !r && err.text[0]);
    need(!r || (r->node[0] && r->n_pods <= ACHIEVED_PODS_MAX));
    for (size_t i = 0; r && i < r->n_pods; i++)
        check_pod(r, &r->pods[i]);
    return 0;
}
