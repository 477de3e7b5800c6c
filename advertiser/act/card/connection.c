#include "advertiser/act/card/connection.h"

int connection_open(struct connection *c, struct error *err)
{
    struct grpc_config config = card_grpc(&c->place);
    return c->cri ? 0 : cri_create(&config, &c->cri, err);
}

void connection_close(struct connection *c)
{
    cri_destroy(c->cri);
    c->cri = NULL;
}
