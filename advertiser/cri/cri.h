/* cri - the calls of a container runtime (CRI v1) that Biga needs, typed; of
 * one endpoint, over grpc.  What comes back is checked here: ids are
 * [a-f0-9]{1,128} (CRI_ID_MAX), names, labels and texts are capped and
 * printable, counts have caps; what breaks that is -EPROTO and names it.
 * The wire form is advertiser/cri/cri.proto, a subset of upstream's with its
 * field numbers. */
#ifndef BIGA_ADVERTISER_CRI_CRI_H
#define BIGA_ADVERTISER_CRI_CRI_H

#include "advertiser/cri/cri_container.h"
#include "advertiser/cri/cri_endpoint.h"
#include "advertiser/cri/cri_image.h"
#include "advertiser/cri/cri_sandbox.h"
#include "advertiser/cri/cri_stream.h"
#include "advertiser/cri/cri_usage.h"
#include "advertiser/cri/cri_watch.h"

#endif
