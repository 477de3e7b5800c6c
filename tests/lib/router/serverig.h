/* serverig - the router (serve) between a kubelet's side and the servers of a
 * home and two cards.  Stops the test when something cannot be set up. */
#ifndef BIGA_TESTS_LIB_ROUTER_SERVERIG_H
#define BIGA_TESTS_LIB_ROUTER_SERVERIG_H

#include "advertiser/cri/cri.h"
#include "lib/grpc/grpc.h"
#include "router/serve/serve.h"
#include "tests/lib/card/cardserver.h"

enum { SERVERIG_CALL_MS = 60000 };

struct serverig {
    char *dir;
    struct cardserver *home, *cards[2];
    struct act_place places[2];
    char *listen, *home_path, *state, *kubelet, *url;
    struct serve *serve;
    struct grpc_config to;
    struct cri *kubelet_side;
};

void serverig_open(struct serverig *r);
void serverig_close(struct serverig *r);
/* The router ends, and begins anew on what it has written down. */
void serverig_stop(struct serverig *r);
void serverig_start(struct serverig *r);

/* One more runtime, on a socket of that path; cardserver_stop() ends it. */
struct cardserver *serverig_server(const char *path);

/* A pod as a kubelet asks for it; `card` NULL: without an allocation. */
struct serverig_asked {
    struct cri_sandbox_config config;
    struct cri_pair annotation;
    char *allocation;
};
void serverig_asked_init(struct serverig_asked *a, const char *name,
                         const char *handler, const char *card);
void serverig_asked_fini(struct serverig_asked *a);

/* RunPodSandbox; as cri_run_sandbox(). */
int serverig_run(struct serverig *r, const char *name, const char *handler,
                 const char *card, char *ret_id, struct error *err);
/* CreateContainer of "main" in a pod of the first card. */
int serverig_create(struct serverig *r, const char *name,
                    const char *sandbox_id, char *ret_id, struct error *err);
int serverig_create_again(struct serverig *r, const char *name,
                          const char *sandbox_id, uint32_t attempt,
                          char *ret_id, struct error *err);
/* Pod "a" on the first card, and its container. */
void serverig_make(struct serverig *r, char *ret_pod, char *ret_id);

#endif
