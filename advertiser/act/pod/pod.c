#include "advertiser/act/pod/pod.h"

#include "lib/base/mem.h"

static const char *const state_names[] = {
    [ACT_WANTED] = "wanted",   [ACT_PREPARING] = "preparing",
    [ACT_PULLING] = "pulling", [ACT_CREATING] = "creating",
    [ACT_RUNNING] = "running", [ACT_STOPPING] = "stopping",
    [ACT_GONE] = "gone",       [ACT_FAILED] = "failed",
};

const char *act_state_name(enum act_state state)
{
    return (size_t)state < ARRAY_LEN(state_names) ? state_names[state]
                                                  : "unknown";
}
