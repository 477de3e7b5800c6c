/* card_sight - whether the cards of a pod answer, as far as its node says.
 * Pure. */
#ifndef BIGA_EXTENDER_STATE_CARD_SIGHT_H
#define BIGA_EXTENDER_STATE_CARD_SIGHT_H

#include "extender/state/snapshot.h"

enum card_sight {
    CARD_SIGHT_NONE,  /* nobody says: it has none, or its node is not ready,
                       * which is the node controller's business */
    CARD_SIGHT_THERE, /* all answer; a drained one does */
    CARD_SIGHT_LOST,  /* one does not */
    CARD_SIGHT_GONE,  /* one is not in its node any more */
};

/* `ret_card`: the first that is lost or gone, else "". */
enum card_sight card_sight_of(const struct snapshot *s, const char *uid,
                              char ret_card[TOPO_ID_MAX + 1]);

#endif
