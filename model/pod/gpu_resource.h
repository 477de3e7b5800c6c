/* gpu_resource - how many extended resources may stand for GPUs, and how long
 * their names are. */
#ifndef BIGA_MODEL_POD_GPU_RESOURCE_H
#define BIGA_MODEL_POD_GPU_RESOURCE_H

enum { GPU_RESOURCES_MAX = 8, GPU_RESOURCE_NAME_MAX = 127 };

#endif
