/* lyingrig - biga-cri between a kubelet, a home and two cards, of which the
 * first lies when it is told to; of one thread.  Fails the test when something
 * cannot be set up, or others notice it. */
#ifndef BIGA_TESTS_LIB_ROUTER_LYINGRIG_H
#define BIGA_TESTS_LIB_ROUTER_LYINGRIG_H

#include "router/serve/serve.h"
#include "tests/lib/grpc/rpcclient.h"
#include "tests/lib/router/runtimeserver.h"

enum {
    LYINGRIG_CARDS = 2,
    LYINGRIG_ID = 65,
    LYINGRIG_ROOM = 32 << 20,
    LYINGRIG_MS = 60000, /* for any call: a card that is only slow stays */
};

/* What the first card says in place of its answer to one method. */
struct lyingrig_lie {
    const char *method;
    int code;
    struct str reply;
};
struct lyingrig {
    char *dir, *listen, *home_path, *state;
    struct runtimeserver *home, *cards[LYINGRIG_CARDS];
    struct act_place places[LYINGRIG_CARDS];
    struct serve *serve;
    struct rpc_client *kubelet;
    struct lyingrig_lie lie;
    struct str reply;        /* the last that the kubelet had */
    char text[RPC_TEXT_MAX]; /* of an error */
    char host[LYINGRIG_ID], other[LYINGRIG_ID]; /* pods of the home and of the
                                                 * second card */
    char pod[LYINGRIG_ID], container[LYINGRIG_ID]; /* of the first */
};
void lyingrig_open(struct lyingrig *r);
void lyingrig_close(struct lyingrig *r);

/* A call of the kubelet: its code; of an id alone. */
int lyingrig_call(struct lyingrig *r, const char *method,
                  const struct str *request);
int lyingrig_call_id(struct lyingrig *r, const char *method, const char *id);
/* A pod on that card, NULL: on the home; a container of the first card's. */
int lyingrig_run(struct lyingrig *r, const char *name, const char *card,
                 char ret_id[LYINGRIG_ID]);
int lyingrig_create(struct lyingrig *r, const char *name,
                    char ret_id[LYINGRIG_ID]);

/* From now on the answer to that is r->lie.reply; or an id, or any bytes in its
 * place. */
void lyingrig_lie(struct lyingrig *r, const char *method, int code);
void lyingrig_lie_id(struct lyingrig *r, const char *method, const char *id,
                     size_t size);
void lyingrig_be_honest(struct lyingrig *r);
/* Until the router has heard that since. */
void lyingrig_wait_asked(struct lyingrig *r, const char *method);

/* Is it in the last reply?  How many items has that list? */
bool lyingrig_says(const struct lyingrig *r, const char *text);
size_t lyingrig_count(struct lyingrig *r, const char *method);
/* The home and the second card go on as if nothing were.  Is the pod of the
 * first listed, too? */
bool lyingrig_check_others(struct lyingrig *r);

#endif
