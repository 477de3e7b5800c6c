/* Any bytes as a profile of collectives or as the constants of the model: no
 * crash; what is accepted costs a time that is a number. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/replay/cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct costs_model simple = {
    .bytes_per_s = {1e9, 1e9, 1e9, 1e9, 1e9, 5e8},
    .alpha_s = {1e-6, 2e-6, 3e-6, 4e-6},
    .factor = {1, 1, 1, 0.5},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct profile p;
    static const struct cost_place places[3] = {
        {0, FABRIC_NONE, 0}, {0, FABRIC_NONE, 1}, {1, FABRIC_NONE, 5}};
    struct costs_model m = simple;
    struct error err = {0};
    const char *text = (const char *)data;
    if (costs_read("costs", text, size, &m, &err) < 0 && !err.text[0])
        abort();
    err.text[0] = '\0';
    if (profile_read("profile", text, size, &p, &err) < 0) {
        if (err.text[0] == '\0')
            abort();
        profile_default(&p);
    }
    const struct cost_net alone = {0};
    double s = cost_job(&m, &p, &alone, places, 3);
    if (!isfinite(s) || s < 0)
        abort();
    return 0;
}
