#include "extender/serve/visible.h"

#include "extender/admit/sight.h"
#include "extender/app/scoped.h"
#include "extender/serve/app.h"

struct snapshot *visible_snapshot(const struct app *app,
                                  const struct httpd_request *rq)
{
    return scoped_get(app->scoped, writer_snapshot(app->writer),
                      sight_scope(rq));
}
