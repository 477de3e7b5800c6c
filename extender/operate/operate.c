#include "extender/operate/operate.h"

#include "lib/base/mem.h"

const struct httpd_route operate_routes[] = {
    {HTTPD_POST, "/v1/cards/:/:/drain", on_drain, DRAIN_BODY_MAX, "drain"},
    {HTTPD_DELETE, "/v1/cards/:/:/drain", on_undrain, 0, "undrain"},
    {HTTPD_POST, "/v1/nodes/:/drain", on_drain, DRAIN_BODY_MAX, "drain"},
    {HTTPD_DELETE, "/v1/nodes/:/drain", on_undrain, 0, "undrain"},
    {HTTPD_GET, "/v1/usage", on_usage, 0, "usage"},
};
const size_t n_operate_routes = ARRAY_LEN(operate_routes);
