/* demand_private - what demand*.c share. */
#ifndef BIGA_MODEL_POD_DEMAND_PRIVATE_H
#define BIGA_MODEL_POD_DEMAND_PRIVATE_H

#include "model/pod/demand.h"
#include "model/pod/pod.h"

/* --- one text of the pod (demand_text.c) --------------------------------- */

static inline bool demand_given(const struct pod *pod, enum pod_text which)
{
    return pod->text[which].data != NULL;
}
/* The decoded text into `dst`; false when it has no room. */
bool demand_copy_text(const struct jtext *t, char *dst, size_t dst_size);
/* The charset of object names and label values alike. */
bool demand_is_name(const char *text);
/* -EDOM with `PATH: is "VALUE", must be ALLOWED`. */
int demand_fail_text(const struct pod *pod, enum pod_text which,
                     const char *allowed, struct error *err);
/* A name of at most dst_size - 1 bytes.  0 or -EDOM. */
int demand_take_name(const struct pod *pod, enum pod_text which, char *dst,
                     size_t dst_size, struct error *err);
/* A whole number 0 … max (of POD_SIZE and POD_CARDS 1 … max), without sign or
 * leading zeros.  0 or -EDOM. */
int demand_take_number(const struct pod *pod, enum pod_text which, int32_t max,
                       int32_t *value, struct error *err);

/* --- the job (demand_job.c) ---------------------------------------------- */

/* Fills job, pair, size and grouped of `d`, whose name and role are known.  0
 * or -EDOM. */
int demand_take_job(const struct pod *pod, struct demand *d, struct error *err);

/* --- shapes (demand_shapes.c) -------------------------------------------- */

enum { SHAPES_TEXT_MAX = 1024 };

/* Reads annotation biga.dev/shapes, "0: cards=1; 1-4: cards=2 gpus=2", into
 * n_shapes and shapes of `d`, whose size is known.  `text` is overwritten.
 * 0, or -EDOM with a text that says which entry is wrong, and how. */
int shapes_parse(char *text, struct demand *d, struct error *err);

/* What `shapes` says of the pair `rank`; NULL: nothing. */
const struct pair_shape *shapes_find(const struct demand *d, int32_t rank);

#endif
