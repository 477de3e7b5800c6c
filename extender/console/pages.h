/* pages - the pages of the console, each for a request: what it shows is what
 * the snapshot has.  ctx is the struct app. */
#ifndef BIGA_EXTENDER_CONSOLE_PAGES_H
#define BIGA_EXTENDER_CONSOLE_PAGES_H

#include "extender/console/console_reply.h"
#include "lib/http/httpd.h"

void page_fleet(struct httpd_request *rq, void *ctx);   /* / */
void page_search(struct httpd_request *rq, void *ctx);  /* /ui/search?q= */
void page_nodes(struct httpd_request *rq, void *ctx);   /* /ui/nodes */
void page_leaf(struct httpd_request *rq, void *ctx);    /* /ui/leaves/NAME */
void page_node(struct httpd_request *rq, void *ctx);    /* /ui/nodes/NAME */
void page_card(struct httpd_request *rq, void *ctx);    /* /ui/cards/NODE/ID */
void page_jobs(struct httpd_request *rq, void *ctx);    /* /ui/jobs */
void page_job(struct httpd_request *rq, void *ctx);     /* /ui/jobs/NS/NAME */
void page_pending(struct httpd_request *rq, void *ctx); /* /ui/pending */
void page_pod(struct httpd_request *rq, void *ctx);     /* /ui/pods/NS/NAME */
void page_events(struct httpd_request *rq, void *ctx);  /* /ui/events */

/* --- what they share ------------------------------------------------------ */

/* A table of allocations, of one node or one card: who has what. */
void pods_table_write(const struct console_reply *r,
                      const struct allocation *const *list, size_t n,
                      struct str *out);
/* The cells that both have of one place, and their heads. */
#define PLACE_HEADS                                                     \
    "<th scope=\"col\">Cards</th><th scope=\"col\">GPUs</th>"           \
    "<th scope=\"col\" class=\"n\">NUMA</th><th scope=\"col\">Promised" \
    "</th><th scope=\"col\">Achieved</th>"
void place_cells_write(const struct console_reply *r,
                       const struct allocation *a, struct str *out);

#endif
