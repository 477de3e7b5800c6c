/* job_maps - writes the files that Open MPI, UCX and UCC need to run a job,
 * from where its pairs are (schema/maps.md).
 * An MPI rank is a pair of the job.  Pure: equal places give equal bytes. */
#ifndef BIGA_EXTENDER_VIEW_JOB_MAPS_H
#define BIGA_EXTENDER_VIEW_JOB_MAPS_H

#include <stddef.h>

#include "extender/state/allocation.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "model/topo/topo.h"

enum map_format {
    MAP_HOSTFILE,     /* Open MPI: the hosts */
    MAP_POD_HOSTFILE, /* Open MPI: the host pods, for `biga rsh` */
    MAP_DPU_HOSTFILE, /* Open MPI: the cards' own operating systems */
    MAP_RANKFILE,     /* Open MPI: CPUs near the cards, by os index */
    MAP_UCX,          /* UCX_NET_DEVICES of each rank */
    MAP_NCCL,         /* NCCL_IB_HCA of each rank */
    MAP_UROM,         /* DOCA_UROM_SERVICE_FILE */
    MAP_FORMATS
};
const char *map_format_name(enum map_format format); /* "hostfile" … */
/* 0, or -EINVAL with the names that are allowed. */
int map_format_parse(const char *text, enum map_format *ret_format,
                     struct error *err);

/* Where one rank is; borrowed. */
struct map_rank {
    int32_t rank;
    const struct allocation *place; /* with all cards of the pair */
    const struct topo *topo;        /* of its node; NULL: not known now */
};

/* Append the file.  `ranks` ascend.  -ENODATA names the rank, and what its card
 * or node does not tell; `out` may then hold a part of the file. */
int map_write(enum map_format format, const struct map_rank *ranks, size_t n,
              struct str *out, struct error *err);

#endif
