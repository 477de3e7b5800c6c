#include "advertiser/places.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "model/topo/topo_builder.h"

#define COPY(array, text) (void)snprintf(array, sizeof(array), "%s", text)

static void sets_fill(struct act_place *p, const struct cardfile_card *card)
{
    static_assert((int)CARDFILE_GLOBS_MAX <= (int)ACT_GLOBS_MAX &&
                      (int)CARDFILE_NODE_MAX <= (int)ACT_GLOB_MAX,
                  "a set of the card file has room in a place");
    for (size_t i = 0; i < card->n_sets; i++) {
        const struct cardfile_set *from = &card->sets[i];
        struct act_device_set *to = &p->sets[p->n_sets++];
        COPY(to->name, from->name);
        to->share = from->share;
        to->hugepages = from->hugepages;
        to->ipc_lock = from->ipc_lock;
        for (size_t j = 0; j < from->n_globs; j++)
            COPY(to->globs[to->n_globs++], from->globs[j]);
    }
}

static void place_fill(struct act_place *p, const struct device *d,
                       const struct identity *own,
                       const struct cardfile_card *card)
{
    memset(p, 0, sizeof *p);
    COPY(p->name, d->id);
    pci_addr_format(&d->pci, p->pci);
    COPY(p->model, *card->model ? card->model : d->model);
    COPY(p->serial, own->serial);
    COPY(p->arch, *card->arch ? card->arch : d->arch);
    COPY(p->endpoint, *card->endpoint ? card->endpoint : own->endpoint);
    COPY(p->ca, card->tls_ca);
    COPY(p->cert, card->tls_cert);
    COPY(p->key, card->tls_key);
    p->plaintext = card->plaintext;
    sets_fill(p, card);
}

/* Cards whose runtime is known, or the others. */
static size_t add_cards(const struct topo *topo, const struct cardfile *cards,
                        bool known, struct act_place *to, size_t max)
{
    size_t first, n = 0, n_cards = topo_count(topo, DEVICE_CARD, &first);
    for (size_t i = 0; i < n_cards && n < max; i++) {
        const struct device *d = topo_device(topo, first + i);
        const struct identity own = topo_identity(topo, d);
        const struct cardfile_key key = {.pci = d->pci,
                                         .vendor_id = d->vendor_id,
                                         .device_id = d->device_id,
                                         .serial = own.serial};
        struct cardfile_card card;
        cardfile_find(cards, &key, &card);
        if ((*card.endpoint || *own.endpoint) == known)
            place_fill(&to[n++], d, &own, &card);
    }
    return n;
}

size_t places_of(const struct topo *topo, const struct cardfile *cards,
                 const char *host_runtime,
                 struct act_place ret_places[ACT_PLACES_MAX])
{
    size_t max = ACT_PLACES_MAX - 1;
    size_t n = add_cards(topo, cards, true, ret_places, max);
    n += add_cards(topo, cards, false, &ret_places[n], max - n);
    struct act_place *host = &ret_places[n++];
    memset(host, 0, sizeof *host);
    COPY(host->name, ACT_HOST);
    COPY(host->endpoint, host_runtime);
    (void)places_touch(ret_places, n);
    return n;
}

/* A file that is not there is another one than any that is. */
static int64_t changed_ns(const char *path)
{
    struct stat st;
    if (!*path || stat(path, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

bool places_touch(struct act_place *places, size_t n)
{
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        struct act_place *p = &places[i];
        const char *const files[] = {p->ca, p->cert, p->key};
        int64_t newest = 0;
        for (size_t j = 0; j < ARRAY_LEN(files); j++) {
            int64_t at = changed_ns(files[j]);
            newest = at > newest ? at : newest;
        }
        changed |= newest != p->files_ns;
        p->files_ns = newest;
    }
    return changed;
}

/* --- how they fare -------------------------------------------------------- */

static const struct act_place_status *
find_view(const struct act_place_status *views, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(views[i].name, name) == 0)
            return &views[i];
    return NULL;
}

struct marking {
    enum topo_runs runs;
    const struct act_place_status *views;
    size_t n;
};

static void mark(void *ctx, struct device *d, struct identity *own)
{
    const struct marking *m = ctx;
    const struct act_place_status *v = d->kind == DEVICE_CARD
                                           ? find_view(m->views, m->n, d->id)
                                           : NULL;
    if (!v)
        return;
    enum act_health health = v->health == ACT_SUSPECT ? ACT_READY : v->health;
    d->unhealthy |= health == ACT_LOST || health == ACT_DRAINED;
    d->health = act_health_name(health);
    d->runs_pods = v->endpoint[0];
    if (m->runs == TOPO_RUNS_PODS && v->endpoint[0]) {
        d->devices = v->devices.text;
        d->rights = v->rights;
    }
    if (!*own->endpoint && strlen(v->endpoint) <= TOPO_TEXT_MAX)
        own->endpoint = v->endpoint;
}

int places_mark(const struct topo *topo, enum topo_runs runs,
                const struct act_place_status *views, size_t n,
                struct topo **ret_topo, struct error *err)
{
    struct marking m = {runs, views, n};
    return topo_change(topo, mark, &m, runs, ret_topo, err);
}

static void give_to_claims(void *ctx, struct device *d, struct identity *own)
{
    (void)ctx;
    (void)own;
    d->by_claims = d->kind == DEVICE_CARD;
}

struct topo *places_by_claims(const struct topo *topo)
{
    struct topo *marked = NULL;
    struct error err;
    int r = topo_change(topo, give_to_claims, NULL, topo_runs(topo), &marked,
                        &err);
    assert(r == 0); /* it was one, and a bit changes no limit */
    (void)r;
    return marked;
}
