#include "advertiser/act/card/card.h"

#include <string.h>

bool card_is_host(const struct act_place *place)
{
    return strcmp(place->name, ACT_HOST) == 0;
}

const struct act_device_set *card_set(const struct act_place *place,
                                      const char *name)
{
    for (size_t i = 0; i < place->n_sets; i++)
        if (strcmp(place->sets[i].name, name) == 0)
            return &place->sets[i];
    return NULL;
}

void card_sets_hugepages(const struct act_place *place,
                         struct hugepages *ret_all)
{
    struct hugepages all = {.n = 0};
    for (size_t i = 0; i < place->n_sets; i++)
        for (size_t k = 0; k < place->sets[i].hugepages.n; k++)
            (void)hugepages_add(&all, place->sets[i].hugepages.list[k].page,
                                place->sets[i].hugepages.list[k].bytes);
    *ret_all = all;
}

void card_host(const struct act_place *place, char ret_host[ACT_NAME_MAX + 1])
{
    const char *at = place->endpoint;
    at = strncmp(at, "tcp://", 6) == 0 ? at + 6 : "";
    const char *colon = strrchr(at, ':');
    size_t size = colon ? (size_t)(colon - at) : strlen(at);
    if (size >= 2 && at[0] == '[' && at[size - 1] == ']') {
        at++;
        size -= 2;
    }
    size = size <= ACT_NAME_MAX ? size : 0;
    memcpy(ret_host, at, size);
    ret_host[size] = '\0';
}

struct grpc_config card_grpc(const struct act_place *place)
{
    return (struct grpc_config){
        .endpoint = place->endpoint,
        .ca = place->ca[0] ? place->ca : NULL,
        .cert = place->cert[0] ? place->cert : NULL,
        .key = place->key[0] ? place->key : NULL,
        .plaintext = place->plaintext,
        .counts = place->counts,
    };
}
