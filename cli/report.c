#include "cli/report.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/pods.h"
#include "model/base/mem.h"

enum { NOTE_MAX = 128 }; /* behind a device in the picture */

/* --- reading -------------------------------------------------------------- */

static int find_host(const struct report *r, const char *name)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        if (strcmp(r->hosts[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* The device that an allocation has first in a list; -1: none. */
static int first_device(const struct host *h, const cJSON *a, const char *list)
{
    const cJSON *x = json_list(a, list);
    return x && x->child ? host_find(h, json_text(x->child, "id")) : -1;
}

static void read_host_pod(struct report *r, struct pair_result *p,
                          const cJSON *a)
{
    int host = find_host(r, json_text(a, "node"));
    if (host < 0)
        return;
    const struct host *h = &r->hosts[host];
    int card = first_device(h, a, "cards"), gpu = first_device(h, a, "gpus");
    if (card < 0 || gpu < 0)
        return;
    p->numa = (int)json_number(a, "numa");
    p->at = (struct placement){
        .placed = true,
        .host = (size_t)host,
        .card = (size_t)card,
        .gpu = (size_t)gpu,
        .relation = host_relation(h, (size_t)card, (size_t)gpu),
    };
}

static void read_xpu_pod(const struct report *r, struct pair_result *p,
                         const cJSON *a)
{
    int host = find_host(r, json_text(a, "node"));
    p->followed = p->at.placed && host == (int)p->at.host &&
                  first_device(&r->hosts[host], a, "cards") == (int)p->at.card;
}

static void read_service(struct report *r, const cJSON *a)
{
    int host = find_host(r, json_text(a, "node"));
    int card = host < 0 ? -1 : first_device(&r->hosts[host], a, "cards");
    if (card < 0)
        return;
    r->services = xgrow(r->services, r->n_services, &r->services_cap,
                        sizeof *r->services);
    r->services[r->n_services++] = (struct placement){
        .placed = true, .host = (size_t)host, .card = (size_t)card};
}

/* Host pods first: an xPU pod is judged by the host pod of its pair. */
static void read_pairs(struct report *r, const cJSON *items, bool host_pods)
{
    const cJSON *a;
    cJSON_ArrayForEach(a, items)
    {
        const cJSON *pod = cJSON_GetObjectItemCaseSensitive(a, "pod");
        double index = json_number(pod, "pair");
        const char *role = json_text(pod, "role");
        if (host_pods && strcmp(role, "service") == 0)
            read_service(r, a);
        if (strcmp(json_text(pod, "job"), DEMO_JOB) != 0 || index < 0 ||
            index >= (double)r->n_pairs)
            continue;
        struct pair_result *p = &r->pairs[(size_t)index];
        if (host_pods && strcmp(role, "host") == 0)
            read_host_pod(r, p, a);
        else if (!host_pods && strcmp(role, "xpu") == 0)
            read_xpu_pod(r, p, a);
    }
}

void report_init(struct report *r, const struct host *hosts, size_t n_hosts,
                 size_t n_pairs, const cJSON *allocations)
{
    const cJSON *items = json_list(allocations, "items");
    *r =
        (struct report){.hosts = hosts, .n_hosts = n_hosts, .n_pairs = n_pairs};
    r->pairs = xcalloc(n_pairs + 1, sizeof *r->pairs);
    r->blind = xcalloc(n_pairs + 1, sizeof *r->blind);
    r->possible = xcalloc(n_pairs + 1, sizeof *r->possible);
    read_pairs(r, items, true);
    read_pairs(r, items, false);
    firstfit(hosts, n_hosts, n_pairs, r->blind);
    r->n_possible = best_relations(hosts, n_hosts, n_pairs, r->possible);
}

void report_fini(struct report *r)
{
    free(r->pairs);
    free(r->blind);
    free(r->possible);
    free(r->services);
    *r = (struct report){0};
}

/* --- showing -------------------------------------------------------------- */

static const char *device_text(const struct report *r,
                               const struct placement *at, size_t device)
{
    const struct host_device *d = &r->hosts[at->host].devices[device];
    return *d->pci ? d->pci : d->id;
}

static void add_placement(struct table *t, const struct report *r,
                          const struct placement *at)
{
    if (!at->placed) {
        table_add(t, "-");
        for (int i = 0; i < 3; i++)
            table_add(t, "");
        return;
    }
    const char *relation = relation_name(at->relation);
    table_add(t, r->hosts[at->host].name);
    table_add(t, device_text(r, at, at->card));
    table_add(t, device_text(r, at, at->gpu));
    table_add_style(t, relation_style(relation), relation);
}

static void add_first_fit(struct table *t, const struct report *r,
                          const struct placement *at)
{
    const char *relation = relation_name(at->relation);
    cleanup_str struct str text = STR_INIT(512);
    if (!at->placed) {
        table_add(t, "| -");
        return;
    }
    str_addf(&text, "| %s %s", r->hosts[at->host].name, relation);
    table_add_style(t, relation_style(relation), str_text(&text));
}

/* As wide as a terminal, 80 columns, with the names of the demo. */
void report_pairs(const struct report *r, bool colours, struct str *out)
{
    static const struct table_column columns[] = {
        {"PAIR", true},     {"NODE", false},        {"CARD", false},
        {"GPU", false},     {"RELATION", false},    {"NUMA", true},
        {"xPU POD", false}, {"| FIRST FIT", false},
    };
    cleanup_table struct table t;
    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct pair_result *p = &r->pairs[i];
        table_addf(&t, "%zu", i);
        add_placement(&t, r, &p->at);
        if (p->at.placed && p->numa >= 0)
            table_addf(&t, "%d", p->numa);
        else
            table_add(&t, "");
        table_add_style(&t, p->followed ? STYLE_GOOD : STYLE_BAD,
                        p->followed ? "same" : "other");
        add_first_fit(&t, r, &r->blind[i]);
    }
    table_render(&t, colours, out);
}

static size_t count_within(const struct report *r, bool blind,
                           enum relation worst)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct placement *at = blind ? &r->blind[i] : &r->pairs[i].at;
        n += at->placed && at->relation <= worst;
    }
    return n;
}

static void summarize(const struct report *r, const char *who, bool blind,
                      struct str *out)
{
    size_t placed = count_within(r, blind, RELATION_SYS);
    size_t near = count_within(r, blind, RELATION_PXB);
    size_t node = count_within(r, blind, RELATION_NODE);
    str_addf(out, "%s %2zu of %zu pairs aligned (both behind one switch)", who,
             near, r->n_pairs);
    if (node > near)
        str_addf(out, ", %zu through the CPU", node - near);
    if (placed > node)
        str_addf(out, ", %zu across NUMA nodes", placed - node);
    if (placed < r->n_pairs)
        str_addf(out, ", %zu not placed", r->n_pairs - placed);
    str_add(out, ".\n");
}

void report_summary(const struct report *r, struct str *out)
{
    summarize(r, "Biga:     ", false, out);
    summarize(r, "First fit:", true, out);
    if (r->n_services)
        str_addf(out, "The service runs on %zu cards beside them.\n",
                 r->n_services);
}

static size_t busiest_host(const struct report *r)
{
    cleanup_free size_t *count = xcalloc(r->n_hosts + 1, sizeof *count);
    size_t best = 0;
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].at.placed)
            count[r->pairs[i].at.host]++;
    for (size_t i = 0; i < r->n_hosts; i++)
        if (count[i] > count[best])
            best = i;
    return best;
}

static void add_note(char (*notes)[NOTE_MAX], const char **shown, size_t device,
                     const char *text)
{
    size_t used = strlen(notes[device]);
    (void)snprintf(notes[device] + used, NOTE_MAX - used, "%s%s",
                   used ? ", " : "◀ ", text);
    shown[device] = notes[device];
}

void report_picture(const struct report *r, bool colours, struct str *out)
{
    if (!r->n_hosts)
        return;
    size_t host = busiest_host(r);
    const struct host *h = &r->hosts[host];
    cleanup_free char(*notes)[NOTE_MAX] = xcalloc(h->n + 1, NOTE_MAX);
    cleanup_free const char **shown = xcalloc(h->n + 1, sizeof *shown);
    char text[NOTE_MAX];
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct pair_result *p = &r->pairs[i];
        if (!p->at.placed || p->at.host != host)
            continue;
        (void)snprintf(text, sizeof text, "pair %zu%s", i,
                       p->followed ? " xPU" : "");
        add_note(notes, shown, p->at.card, text);
        (void)snprintf(text, sizeof text, "pair %zu host, %s", i,
                       relation_name(p->at.relation));
        add_note(notes, shown, p->at.gpu, text);
    }
    for (size_t i = 0; i < r->n_services; i++)
        if (r->services[i].host == host)
            add_note(notes, shown, r->services[i].card, "HBN");
    host_tree(h, shown, colours, out);
}

bool report_check(const struct report *r, struct str *out)
{
    size_t got[RELATION_COUNT] = {0}, could[RELATION_COUNT] = {0};
    bool good = true;
    for (size_t i = 0; i < r->n_pairs; i++) {
        if (!r->pairs[i].at.placed || !r->pairs[i].followed) {
            str_addf(out, "Pair %zu: %s.\n", i,
                     r->pairs[i].at.placed
                         ? "its xPU pod is not on its card"
                         : "its host pod was given no card and GPU");
            good = false;
        } else {
            got[r->pairs[i].at.relation]++;
        }
    }
    for (size_t i = 0; i < r->n_possible; i++)
        could[r->possible[i]]++;
    for (int k = 0; good && k < RELATION_COUNT; k++) {
        if (got[k] == could[k])
            continue;
        str_addf(out, "%zu pairs are %s; %zu could be.\n", got[k],
                 relation_name((enum relation)k), could[k]);
        good = false;
    }
    return good;
}
