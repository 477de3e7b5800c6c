/* access - who may call what: the listeners' admission.
 *
 *   scheduler  with TLS: certificates whose CN or DNS name is listed
 *              (default system:kube-scheduler)
 *   publish    with TLS: a node's certificate; the slice's node must be it
 *   read       bearer tokens, checked against a file or by the API server
 *              (TokenReview, then SubjectAccessReview for the path as a
 *              non-resource URL and the method as verb), verdicts remembered
 *              for 10 s (refusals 5 s); a page /ui/X is of the path /v1/X,
 *              which it shows, with ?at= of /v1/history/KIND/X (lists and
 *              the fleet: of /v1/topology; what waited: of /v1/events), and
 *              the events beside it are of /v1/events (sight_has_events());
 *              browsers send the token as a cookie
 *              (cookie.h); /healthz, /readyz, /openapi.yaml,
 *              login and style of pages need none.  Routes that are named
 *              pod-log, pod-exec, pod-attach and pod-portforward need a right
 *              of their own in the namespace that their path begins with: in
 *              the file (tokens.h), or as Kubernetes has it, get pods/log or
 *              create pods/exec …
 *
 * A token never reaches a log, an error or a metric. */
#ifndef BIGA_EXTENDER_ADMIT_ACCESS_H
#define BIGA_EXTENDER_ADMIT_ACCESS_H

#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "lib/http/httpd.h"
#include "lib/kube/config.h"

/* Who kube-scheduler is unless it is said otherwise. */
#define ACCESS_SCHEDULER "system:kube-scheduler"

struct access;
struct metrics;
struct access_config {
    const char *scheduler_names;    /* comma-separated */
    const char *token_file;         /* of tokens_parse(), read again when it
                                     * changes; or NULL */
    const struct kube_config *kube; /* ask the API server; or NULL.  Outlives
                                     * the access. */
    struct metrics *metrics;        /* or NULL */
};
/* Starts a thread when the API server is to be asked. */
int access_create(const struct access_config *config,
                  struct access **ret_access, struct error *err);
void access_destroy(struct access *a); /* NULL allowed */
DEFINE_CLEANUP(access, struct access *, access_destroy)
/* For a reload_item: the token file. */
void access_poll(void *ctx);

/* For httpd_config.admit; ctx of the listener begins with a struct listener,
 * whose `access` these use (NULL: everybody). */
enum httpd_admission access_scheduler(struct httpd_request *rq, void *ctx);
enum httpd_admission access_publish(struct httpd_request *rq, void *ctx);
enum httpd_admission access_read(struct httpd_request *rq, void *ctx);

/* The one node that the client may publish for; false: for any (no TLS). */
bool access_node(const struct httpd_request *rq,
                 char ret_node[TLS_NAME_MAX + 1]);
/* Whose token the request of the read listener has, be it in a cookie, as a
 * number that tells little; 0: none, as where none is asked for.  `secure`: as
 * in cookie.h. */
uint64_t access_client(const struct httpd_request *rq, bool secure);
/* The same for those who follow (followers.h): where no token is asked for, or
 * there is none, it is the address. */
struct listener;
uint64_t access_follower(const struct httpd_request *rq,
                         const struct listener *listener);
/* Calls that wait for the API server fail from now on, so that the listeners
 * can stop. */
void access_quiesce(struct access *a); /* NULL allowed */

#endif
