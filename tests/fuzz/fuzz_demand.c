/* Any bytes as a pod: no crash; a refusal says why and leaves the demand
 * alone, an answer keeps to the contract's limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/decide/decide.h"
#include "model/fabric/fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_shapes(const struct demand *d)
{
    struct demand pair;
    int32_t last = -1;
    require(d->n_shapes <= DEMAND_SHAPES_MAX);
    for (unsigned i = 0; i < d->n_shapes; i++) {
        const struct pair_shape *s = &d->shapes[i];
        require(s->first > last && s->last >= s->first && s->last < d->size);
        require(s->cards >= 1 && s->cards <= TOPO_CARDS_MAX);
        require(s->gpus <= TOPO_GPUS_MAX && s->align < RELATION_COUNT);
        require(s->has_card_need == (s->card_cores || s->card_memory_mib));
        last = s->last;
        demand_pair(d, last, &pair);
        require(pair.role == ROLE_HOST && pair.cards == s->cards);
    }
    demand_pair(d, d->pair, &pair);
    require(pair.cards == d->pair_cards && pair.gpus == d->pair_gpus &&
            pair.nics == d->pair_nics);
}

static void check_answer(const struct demand *d)
{
    char key[DEMAND_PAIR_KEY_MAX];
    require(strnlen(d->name, sizeof d->name) < sizeof d->name);
    require(strnlen(d->namespace, sizeof d->namespace) < sizeof d->namespace);
    require(strnlen(d->uid, sizeof d->uid) < sizeof d->uid);
    require(strnlen(d->job, sizeof d->job) < sizeof d->job);
    require(strnlen(d->arch, sizeof d->arch) < sizeof d->arch);
    struct device_sets same;
    require(device_sets_parse(d->devices.text, ' ', &same, NULL) == 0 &&
            strcmp(same.text, d->devices.text) == 0);
    if (d->role == ROLE_NONE)
        return;
    require(d->name[0] && d->namespace[0]);
    require(d->cards >= 1 && d->cards <= TOPO_CARDS_MAX);
    require(d->pair_cards >= d->cards && d->pair_cards <= TOPO_CARDS_MAX);
    require(d->role == ROLE_XPU || d->pair_cards == d->cards);
    require(d->role == ROLE_HOST || d->gpus == 0);
    require(d->role == ROLE_HOST || d->nics == 0);
    require(d->nics <= TOPO_NICS_MAX && d->pair_nics <= TOPO_NICS_MAX);
    require(d->align < RELATION_COUNT);
    require(d->pair >= 0 && d->pair <= DEMAND_PAIR_MAX);
    require(d->size >= 1 && d->size <= DEMAND_SIZE_MAX);
    require(d->prefer_align < RELATION_COUNT);
    require(d->within >= DEMAND_ANYWHERE && d->within < FABRIC_TIERS_MAX);
    require(d->prefer_within >= DEMAND_ANYWHERE &&
            d->prefer_within < FABRIC_TIERS_MAX);
    require(d->role != ROLE_HOST || d->gpus == d->pair_gpus);
    require(d->role != ROLE_HOST || d->nics == d->pair_nics);
    require(d->role != ROLE_SERVICE || (!d->pair_gpus && !d->pair_nics &&
                                        !d->cpu_milli && !d->memory_mib));
    if (d->role != ROLE_SERVICE)
        check_shapes(d);
    require(d->has_card_need == (d->card_cores || d->card_memory_mib));
    demand_pair_key(d, key);
    require(strlen(key) < sizeof key);
    require(demand_same_class(d, d));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct demand_config config;
    struct demand d, untouched;
    struct error err = {0};
    struct jscan s;
    demand_config_default(&config);
    memset(&d, 0x5a, sizeof d);
    untouched = d;
    jscan_init(&s, (const char *)data, size);
    int rc = demand_read(&s, &config, &d, &err);
    if (rc == 0) {
        check_answer(&d);
    } else {
        require(rc == -EINVAL || rc == -EDOM);
        require(err.code == -rc && err.text[0]);
        if (rc == -EDOM)
            require(d.role == ROLE_NONE && d.cards == 0 && d.job[0] == '\0');
        else
            require(memcmp(&d, &untouched, sizeof d) == 0);
    }
    return 0;
}
