/* biga-cri: settings, the router, and a signal that ends it. */
#include <stdio.h>

#include "lib/base/mem.h"
#include "lib/io/footprint.h"
#include "lib/io/log.h"
#include "router/settings.h"

static int complain(const struct error *err, int code)
{
    fprintf(stderr, "%s: %s\n", router_program.name, err->text);
    return code;
}

int main(int argc, char **argv)
{
    struct router_settings set = {0};
    struct error err = {0};
    int first = 1;
    footprint_limit();
    int r = conf_read(&router_program, argc, argv, &set, &first, &err);
    if (r < 0)
        return complain(&err, ROUTER_USAGE);
    if (r > 0)
        return ROUTER_OK;
    if (first < argc)
        r = error_set(&err, EINVAL, "%.200s: no such argument; see --help",
                      argv[first]);
    else
        r = router_settings_check(&set, &err);
    int code = r < 0 ? complain(&err, ROUTER_USAGE) : ROUTER_OK;
    conf_fini(&router_program, &set);
    return code;
}
