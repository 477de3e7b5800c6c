#include "model/pod/demand_ident.h"

#include <criterion/criterion.h>

Test(demand_ident, names_a_pod)
{
    const struct demand d = {.namespace = "team-a",
                             .name = "train-0-\"x\"",
                             .uid = "u1",
                             .role = ROLE_XPU,
                             .job = "train",
                             .pair = 3};
    const struct demand_ident pod = demand_ident_of(&d);
    cleanup_str struct str out = STR_INIT(1000);
    demand_ident_write(&pod, &out);
    cr_expect_str_eq(str_text(&out),
                     "\"namespace\":\"team-a\",\"name\":\"train-0-\\\"x\\\"\","
                     "\"uid\":\"u1\",\"role\":\"xpu\",\"job\":\"train\","
                     "\"pair\":3");
}
