/* verb - the commands of `biga`, each a function; cli/verbs.c has the table
 * with their names. */
#ifndef BIGA_CLI_VERB_VERB_H
#define BIGA_CLI_VERB_VERB_H

#include "cli/base/cli.h"
#include "cli/base/listing.h"

/* Of an allocation or a pair: a cell with the relation that was achieved, as
 * its node tells; and a line when it was lost. */
void achieved_add(struct table *t, const cJSON *of);
void achieved_line(struct cli *c, const char *name, const cJSON *of);
/* Leaf by leaf, the nodes and which ranks are on them. */
void leaves_draw(const cJSON *pairs, struct str *out);

/* The lists, with what their columns mean. */
extern const struct listing nodes_listing;       /* nodes.c */
extern const struct listing cards_listing;       /* cards.c */
extern const struct listing allocations_listing; /* allocations.c */
extern const struct listing pods_listing;        /* ps.c */
extern const struct listing jobs_listing;        /* jobs.c */
extern const struct listing pairs_listing;       /* jobs.c */
extern const struct listing host_pods_listing;   /* host_pods.c */
extern const struct listing places_listing;      /* host_pods.c */

extern const struct listing events_listing; /* events.c */
extern const struct listing past_pods_listing,
    past_cards_listing; /* history.c */
extern const struct listing top_nodes_listing, top_cards_listing,
    top_pods_listing; /* top.c */
/* What `biga top WORD` lists; NULL: nothing. */
const struct listing *top_listing(const char *word);

/* End all pods of a job; an exit code.  apply.c */
int delete_job(struct cli *c, const char *namespace, const char *job);

/* The functions of the table, by file. */
verb_f verb_nodes, verb_node;                             /* nodes.c */
verb_f verb_cards;                                        /* cards.c */
verb_f verb_topo, verb_matrix;                            /* topo.c */
verb_f verb_fabric;                                       /* fabric.c */
verb_f verb_allocations;                                  /* allocations.c */
verb_f verb_jobs, verb_job;                               /* jobs.c */
verb_f verb_top;                                          /* top.c */
verb_f verb_policy;                                       /* policy.c */
verb_f verb_cluster;                                      /* cluster.c */
verb_f verb_why, verb_simulate;                           /* why.c */
verb_f verb_drain, verb_undrain;                          /* drain.c */
verb_f verb_apply, verb_delete, verb_release, verb_trust; /* apply.c */
verb_f verb_ps;                                           /* ps.c */
verb_f verb_events;                                       /* events.c */
verb_f verb_history;                                      /* history.c */
verb_f verb_run;                                          /* run.c */
verb_f verb_wait;                                         /* wait.c */
verb_f verb_replay;                                       /* replay.c */
verb_f verb_card, verb_pods;                              /* host_pods.c */
verb_f verb_logs, verb_exec, verb_attach;                 /* logs.c */

#endif
