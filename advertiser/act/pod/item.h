/* item - a pod as the extender tells it to a node, or as a caller of the
 * socket asks for it, read from JSON into what actuator_want() takes:
 *
 *     {"uid":"…","namespace":"…","name":"…","place":"card-0000-17-00"|"host",
 *      "pairKey":"ns/job/0","host":false,"stop":false,"grace":30,
 *      "env":{"BIGA_…":"…"},"sriovVfs":-1,"hook":"","held":false,
 *      "files":[…],"spec":{Pod}}
 *
 * Nothing is copied but texts; `spec` and `files` stay where they stand in
 * the JSON, checked to be sound JSON and no more.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_POD_ITEM_H
#define BIGA_ADVERTISER_ACT_POD_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "advertiser/act/pod/pod.h"
#include "lib/base/error.h"
#include "lib/base/mem.h"
#include "model/pod/podfeed.h"

enum {
    ITEM_SIZE_MAX = 4 << 20, /* bytes of one item's JSON */
    ITEM_SPEC_MAX = PODFEED_SPEC_MAX,
    ITEM_FILES_MAX = PODFEED_FILES_MAX,
    ITEM_ENV_MAX = 64,
    ITEM_ENV_VALUE_MAX = 4096,
    ITEM_GRACE_MAX = 86400,
    ITEM_VFS_MAX = 4096,
    ITEM_HOOK_MAX = 255,
    ITEM_ANSWER_MAX = PODFEED_ANSWER_MAX, /* bytes of a whole answer */
};

struct act_item {
    struct act_pod pod; /* its owner is left to the caller */
    bool stop;
    bool keep;  /* of an answer, with stop: it is over, and still to be seen */
    bool later; /* of an answer: there was no room for its spec and files, or
                 * the extender does not understand it */
    int64_t grace_s; /* < 0: the pod's own */
    /* What is wrong with this one item of an answer, naming the member, or why
     * the extender cannot give it; then nothing else of it is known but
     * pod.uid and stop.  NULL: nothing. */
    const char *fault;
};

/* What the extender answers a node. */
struct act_answer {
    uint64_t version;
    bool resend;      /* it knows no status: all of them are to be told */
    const char *next; /* a uid: where to begin, to have those that are later;
                       * "" there are none */
    struct act_item *items;
    size_t n;
    bool has_kept;     /* it can be asked with kept=UID,… */
    const char **kept; /* of those that are still to be seen */
    size_t n_kept;
    struct arena arena; /* items and their texts */
};
void act_answer_fini(struct act_answer *a); /* of zeros: nothing */

/* Read `{"version":7,"resend":true,"items":[…]}`: everything the node is to
 * have.  `json` must outlive the answer.  Members that we do not know are
 * skipped, for the extender may be newer.  What is wrong with an item is that
 * item's fault, as long as its uid can be read; whatever else is wrong is
 * -EINVAL with the path, and nothing of the answer is to be believed then. */
int act_answer_read(const char *json, size_t size,
                    struct act_answer *ret_answer, struct error *err);

/* Read one item, of which `namespace` and `name` are known: they may be
 * missing, but not differ.  An unknown member is an error.  Texts are in
 * `arena`. */
int act_item_read(const char *json, size_t size, const char *namespace,
                  const char *name, struct arena *arena,
                  struct act_item *ret_item, struct error *err);

/* 1 to 63 letters, digits, '-', '_' and '.' (as Kubernetes' UIDs are). */
bool act_uid_valid(const char *uid);
/* A DNS label, and a DNS subdomain of at most 253 bytes. */
bool act_namespace_valid(const char *text);
bool act_name_valid(const char *text);

#endif
