/* hostroot - a folder that stands for / of a host, with what /sys and /dev have
 * of its devices:
 *
 *     card 0000:17:00   .0 mlx5_0 uverbs0, and its virtual functions
 *                       .2 mlx5_2 uverbs2, .3 mlx5_3 uverbs3, .4 by VFIO (41)
 *     card 0000:18:00   .0 mlx5_5 uverbs5, .1 by VFIO (42)
 *     nic  0000:3d:00.0 mlx5_8 uverbs8, with a virtual function .1 uverbs9
 *     gpu  0000:1b:00.0 renderD128, of amdgpu;  0000:1c:00.0 nvidia1 */
#ifndef BIGA_TESTS_LIB_CARD_HOSTROOT_H
#define BIGA_TESTS_LIB_CARD_HOSTROOT_H

#include <stdbool.h>

#include "model/topo/topo.h"

/* The caller removes it with tmpdir_remove().  Device nodes are made by root
 * alone: `*ret_nodes` says whether there are any. */
char *hostroot_create(bool *ret_nodes);
void hostroot_file(const char *root, const char *path, const char *text);
void hostroot_link(const char *root, const char *path, const char *target);
/* As the last look at that host found it: before there were virtual
 * functions. */
struct topo *hostroot_topo(void);

#endif
