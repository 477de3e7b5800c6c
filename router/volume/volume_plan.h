/* volume_plan - what is to be done on a remote, and in which order, so that it
 * has what the home has.  Pure.
 *
 * A pod has two folders on a remote, one on its disk and one in its memory; a
 * name is "disk/…" or "memory/…", and goes on as below the kubelet's folder of
 * the pod: "memory/volumes/kubernetes.io~secret/token/..data".
 *
 * Whoever looks on the remote at any step, or finds what a step of it that
 * failed has left, sees one whole update or the one before: first what is new,
 * then the link "..data", which is what readers go by, then names of files that
 * are new, and last what is of no use any more goes. */
#ifndef BIGA_ROUTER_VOLUME_VOLUME_PLAN_H
#define BIGA_ROUTER_VOLUME_VOLUME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "router/volume/volume_tree.h"

enum volume_verb {
    VOLUME_MAKE,    /* a folder, or another mode of it */
    VOLUME_WRITE,   /* a file, by another that takes its name */
    VOLUME_INPLACE, /* a file that keeps its inode; made when it is missing */
    VOLUME_LEAD,    /* a link, by another that takes its name */
    VOLUME_DROP,    /* whatever has the name, with all that is in it */
    VOLUME_TMPFS,   /* a folder in memory of its own, of `size` bytes at most */
    VOLUME_PART,    /* a mount of a folder that pods fill, `of` */
};

/* One step; texts and contents are borrowed from the trees but for `name`. */
struct volume_step {
    enum volume_verb verb;
    const char *name;
    const struct volume_item *item; /* NULL of a DROP */
    uint64_t limit;                 /* of a TMPFS; 0: none */
    const char *of;                 /* of a PART: "disk/…" or "memory/…" */
};
struct volume_plan {
    struct volume_step *steps;
    size_t n, cap;
    struct arena arena;
};
void volume_plan_fini(struct volume_plan *p);

/* Add what makes the remote's `at` equal to `want`, a folder.  `have` is all
 * that the remote has of the pod; NULL: nothing.  `want` is to live as long as
 * the plan. */
void volume_plan_tree(struct volume_plan *p, const char *at,
                      const struct volume_tree *want,
                      const struct volume_tree *have);
/* The same of a single file, whose inode stays. */
void volume_plan_file(struct volume_plan *p, const char *at,
                      const struct volume_item *want,
                      const struct volume_tree *have);
/* What a container fills itself, a folder or a file: made when it is missing,
 * and never touched again.  `limit`: a folder in memory of that size. */
void volume_plan_own(struct volume_plan *p, const char *at,
                     const struct volume_item *want, uint64_t limit,
                     const struct volume_tree *have);
/* A folder below one that containers fill: whether it is there nobody knows
 * here, so this is a step each time. */
void volume_plan_part(struct volume_plan *p, const char *at,
                      const struct volume_item *want, const char *of);
enum { VOLUME_OUTPUTS_MAX = 16 }; /* of former containers of one name */
/* The same of a file that one container writes.  When there are so many of
 * former ones beside it, those go, or there were ever more of them; the last of
 * them may still be in use, by a container that a former process made. */
void volume_plan_output(struct volume_plan *p, const char *at,
                        const struct volume_item *want,
                        const struct volume_tree *have);

#endif
