/* status_json - what the actuator knows, as JSON: for the socket, and for the
 * extender's status.  Pure. */
#ifndef BIGA_ADVERTISER_ACT_API_STATUS_JSON_H
#define BIGA_ADVERTISER_ACT_API_STATUS_JSON_H

#include "advertiser/act/core/actuator.h"
#include "advertiser/act/usage/usage_book.h"
#include "lib/base/str.h"

/* {"namespace":"…","name":"…","uid":"…","place":"…", …} */
void status_json_pod(const struct act_pod_status *pod, struct str *out);
/* {"name":"card-0000-17-00","health":"ready", …} */
void status_json_place(const struct act_place_status *place, struct str *out);
void status_json_object(const struct act_object *object, struct str *out);

/* The same as the extender takes them; `used` NULL: it is not known. */
void status_json_pod_report(const struct act_pod_status *pod,
                            const struct usage_now *used, struct str *out);
void status_json_place_report(const struct act_place_status *place,
                              const struct usage_now *used, struct str *out);

const char *status_json_container_state(enum cri_container_state state);

void status_json_hardware(const struct hardware *hardware, struct str *out);

#endif
