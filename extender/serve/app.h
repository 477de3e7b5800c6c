/* app - what every route handler is given: the parts of the running
 * extender.  It is each listener's ctx. */
#ifndef BIGA_EXTENDER_SERVE_APP_H
#define BIGA_EXTENDER_SERVE_APP_H

#include <stdatomic.h>
#include <stdint.h>

#include "extender/achieved/achieved_book.h"
#include "extender/achieved/used_book.h"
#include "extender/admit/listener.h"
#include "extender/app/app_metrics.h"
#include "extender/history/history.h"
#include "extender/keep/writer.h"
#include "extender/pods/pod_source.h"
#include "lib/http/httpd.h"
#include "model/pod/demand.h"

struct app {
    struct listener listener; /* first */
    struct writer *writer;
    struct demand_config demand;
    int64_t max_candidates;          /* nodes in a filter's answer; 0: all */
    struct pending_demands *demands; /* pods that were asked about */
    struct plans *plans;             /* that were made; NULL: none is kept */
    struct scratch_pool *scratch;    /* working memory of scheduler requests */
    struct policy_file *policy;      /* NULL: none is configured */
    struct fabric_files *fabric;     /* the same */
    struct pod_source source;        /* of pods */
    struct achieved_book *achieved;  /* what nodes say that pods have */
    struct used_book *used;      /* what they use of it; NULL: nobody says */
    struct relay *relay;         /* of streams; NULL: in a cluster */
    struct history *history;     /* NULL: none is kept */
    struct changes *changes;     /* told to clients; NULL: to none */
    struct followers *followers; /* of changes and events; NULL: no cap */
    struct scoped *scoped;     /* what some see of snapshots; NULL: not kept */
    struct fleet_tally *tally; /* of the fleet; NULL: none is kept */
    struct tls *tls;           /* NULL: plain HTTP */
    uint64_t instance;         /* another one after each start; in ETags */
    atomic_bool ready;         /* the first snapshot is up; /readyz */
};

#endif
