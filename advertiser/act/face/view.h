/* view - what the actuator knows, as JSON: for the socket, and for the
 * extender's status.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_FACE_VIEW_H
#define BIGA_ADVERTISER_ACT_FACE_VIEW_H

#include "advertiser/act/core/actuator.h"
#include "lib/base/str.h"

/* {"namespace":"…","name":"…","uid":"…","place":"…", …} */
void view_pod(const struct act_pod_view *pod, struct str *out);
/* {"name":"card-0000-17-00","health":"ready", …} */
void view_place(const struct act_place_view *place, struct str *out);
void view_object(const struct act_object *object, struct str *out);

/* The same as the extender takes them. */
void view_pod_status(const struct act_pod_view *pod, struct str *out);
void view_place_status(const struct act_place_view *place, struct str *out);

const char *view_container_state(enum cri_container_state state);

#endif
