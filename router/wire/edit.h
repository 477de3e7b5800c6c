/* edit - a message copied field by field, with some of them changed.  Pure. */
#ifndef BIGA_ROUTER_WIRE_EDIT_H
#define BIGA_ROUTER_WIRE_EDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "advertiser/cri/cri_endpoint.h"
#include "lib/base/error.h"
#include "lib/base/proto.h"
#include "lib/base/str.h"

/* Look at a field: EDIT_COPY, EDIT_DROP (or something else was written for it),
 * or -errno. */
enum { EDIT_DROP = 0, EDIT_COPY = 1 };
typedef int edit_f(void *ctx, const struct proto_field *field, struct str *out,
                   struct error *err);

/* Append what `edit` makes of all fields. */
int edit_fields(struct proto_bytes message, edit_f *edit, void *ctx,
                struct str *out, struct error *err);
/* The same as a message within; `finish`, which may be NULL, adds to it. */
int edit_within(const struct proto_field *field, edit_f *edit,
                void (*finish)(void *ctx, struct str *out), void *ctx,
                struct str *out, struct error *err);

/* 0, or what a text that ended at its cap says. */
int edit_end(const struct str *out, struct error *err);

/* Is the key of this entry of a map one of these? */
bool edit_is_key_of(const struct proto_field *entry, struct cri_pairs pairs);
bool edit_is_key(const struct proto_field *entry, const char *key);
void edit_add_pairs(struct str *out, uint32_t number, struct cri_pairs pairs);

/* Of a message that was checked: "" or 0 is what is absent. */
struct proto_bytes edit_bytes(struct proto_bytes message, uint32_t number);
uint64_t edit_number(struct proto_bytes message, uint32_t number);

#endif
