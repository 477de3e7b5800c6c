/* Which cards give what operators let pods have: sets of devices, and rights. */
#include <string.h>

#include "lib/base/mem.h"
#include "model/decide/decide_private.h"
#include "model/pod/rights.h"
#include "model/topo/card_rights.h"

uint16_t decide_cards_with_devices(const struct shape *shape,
                                   const struct demand *demand)
{
    unsigned cards = 0;
    if (demand->devices.text[0] == '\0')
        return UINT16_MAX;
    for (unsigned c = 0; c < shape->n_cards; c++)
        if (device_sets_have(shape->devices[c].text, demand->devices.text))
            cards |= 1u << c;
    return (uint16_t)cards;
}

/* Does one of the sets asked for let memory be locked there? */
static bool sets_lock(const struct shape *shape, unsigned c, const char *asked)
{
    const char *text = shape->devices[c].text;
    for (unsigned n = 0; *text; n++) {
        char name[DEVICE_SET_NAME_MAX + 1];
        text = device_sets_next(text, name);
        if (shape->rights[c] & CARD_RIGHTS_SET_LOCKS(n) &&
            device_sets_have(asked, name))
            return true;
    }
    return false;
}

bool decide_card_lets(const struct shape *shape, unsigned c,
                      const struct demand *demand)
{
    if (!demand->runs || !demand->rights || !(shape->told & 1u << c))
        return true;
    uint64_t lacks = demand->rights & ~shape->rights[c];
    if (lacks & CARD_RIGHTS_IPC_LOCK &&
        sets_lock(shape, c, demand->devices.text))
        lacks &= ~CARD_RIGHTS_IPC_LOCK;
    return !lacks;
}

uint16_t decide_cards_letting(const struct shape *shape,
                              const struct demand *demand)
{
    unsigned cards = 0;
    if (!demand->runs || !demand->rights)
        return UINT16_MAX;
    for (unsigned c = 0; c < shape->n_cards; c++)
        if (decide_card_lets(shape, c, demand))
            cards |= 1u << c;
    return (uint16_t)cards;
}

/* "0 of 8 cards have the devices rdma …". */
void decide_explain_devices(const struct node_state *state,
                            const struct demand *demand, struct str *out)
{
    unsigned of_arch = decide_cards_of_arch(state->shape, demand);
    unsigned n = (unsigned)__builtin_popcount(
        of_arch & decide_cards_with_devices(state->shape, demand));
    cleanup_free char *what = xasprintf(
        "%s the devices \"%s\"", n == 1 ? "has" : "have", demand->devices.text);
    decide_add_shortage(out, n, (unsigned)__builtin_popcount(of_arch), what,
                        demand->cards);
    str_add(out, "; name them under \"devices\" in the card file of its "
                 "biga-advertiser, which has to run the pods itself");
}

/* "0 of 8 cards let pods have IPC_LOCK …". */
void decide_explain_rights(const struct node_state *state,
                           const struct demand *demand, struct str *out)
{
    unsigned there = decide_cards_of_arch(state->shape, demand) &
                     decide_cards_with_devices(state->shape, demand);
    unsigned n = (unsigned)__builtin_popcount(
        there & decide_cards_letting(state->shape, demand));
    cleanup_str struct str what = STR_INIT(1024), words = STR_INIT(1024);
    rights_bits_add(demand->rights, &words);
    str_addf(&what, "%s pods have the rights %s", n == 1 ? "lets" : "let",
             str_text(&words));
    decide_add_shortage(out, n, (unsigned)__builtin_popcount(there),
                        str_text(&what), demand->cards);
    str_addf(out,
             "; the operator of the node would have to start its "
             "biga-advertiser with --allow %s",
             str_text(&words));
    if (demand->rights & CARD_RIGHTS_IPC_LOCK)
        str_add(out, ", or give IPC_LOCK by one of the pod's sets of devices");
}
