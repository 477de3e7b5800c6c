#include "extender/admit/sight.h"

#include <stdlib.h>

#include "lib/base/mem.h"

struct sight {
    struct scope *scope;
    bool no_events;
};

static void sight_drop(void *kept)
{
    struct sight *s = kept;
    scope_unref(s->scope);
    free(s);
}

static struct sight *sight_made(struct httpd_request *rq)
{
    if (!httpd_kept(rq))
        httpd_keep(rq, xcalloc(1, sizeof(struct sight)), sight_drop);
    return httpd_kept(rq);
}

void sight_set_scope(struct httpd_request *rq, struct scope *scope)
{
    struct sight *s = sight_made(rq);
    scope_unref(s->scope);
    s->scope = scope_ref(scope);
}

void sight_hide_events(struct httpd_request *rq)
{
    sight_made(rq)->no_events = true;
}

bool sight_has_events(const struct httpd_request *rq)
{
    const struct sight *s = httpd_kept(rq);
    return !s || !s->no_events;
}

struct scope *sight_scope(const struct httpd_request *rq)
{
    const struct sight *s = httpd_kept(rq);
    return s ? s->scope : NULL;
}
