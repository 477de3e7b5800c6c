#include "cli/pod/far.h"

#include <unistd.h>

#include "cli/base/settings.h"

bool far_is_here(const struct cli *c)
{
    return cli_is_given(c, "socket") ||
           (!cli_is_given(c, "server") && access(c->set.socket, R_OK) == 0);
}

void far_path(const char *pod, const char *verb, struct str *path)
{
    str_add(path, "/v1/pods/");
    cli_add_name(path, pod);
    str_addf(path, "/%s", verb);
}

void far_container_path(const struct cli *c, const char *pod, const char *verb,
                        struct str *path)
{
    far_path(pod, verb, path);
    str_add(path, "?container=");
    cli_add_encoded(path, c->set.container);
}
