#include "advertiser/act/card/card.h"

#include <string.h>

bool card_is_host(const struct act_place *place)
{
    return strcmp(place->name, ACT_HOST) == 0;
}

struct grpc_config card_grpc(const struct act_place *place)
{
    return (struct grpc_config){
        .endpoint = place->endpoint,
        .ca = place->ca[0] ? place->ca : NULL,
        .cert = place->cert[0] ? place->cert : NULL,
        .key = place->key[0] ? place->key : NULL,
        .plaintext = place->plaintext,
    };
}
