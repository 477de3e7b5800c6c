#include "lib/grpcd/grpcd_relay.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/grpcd/grpcd_private.h"

int grpcd_relay_create(struct grpcd *s, const char *path, const char *name,
                       struct grpcd_relay **ret_relay, struct error *err)
{
    if (!unix_path_is_good(path))
        return error_set(err, EINVAL,
                         "\"%.200s\" is no path of a socket: it must be "
                         "absolute and have at most 107 bytes",
                         path);
    struct grpcd_relay *r = xcalloc(1, sizeof *r);
    r->s = s;
    r->path = xstrdup(path);
    r->name = xstrdup(name);
    r->next = s->relays;
    s->relays = r;
    *ret_relay = r;
    return 0;
}

void grpcd_relay_free(struct grpcd_relay *r)
{
    free(r->path);
    free(r->name);
    free(r);
}

bool grpcd_relay_stands(const struct grpcd_relay *relay)
{
    return atomic_load(&relay->stands);
}

void grpcd_relay_gone(struct grpcd_link *l)
{
    if (l->relay->current != l)
        return;
    l->relay->current = NULL;
    atomic_store(&l->relay->stands, false);
}

/* What has closed since we last looked is not to be given a call, which would
 * then be lost. */
static bool has_closed(const struct grpcd_link *l)
{
    char byte;
    ssize_t n = recv(l->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static int tell(const struct grpcd_relay *r, int e, struct error *err)
{
    return error_set(err, e,
                     "%s does not answer at unix:%s: %s; does it run? The "
                     "call was not carried out",
                     r->name, r->path,
                     e == EAGAIN ? "its backlog is full" : strerror(e));
}

struct grpcd_link *grpcd_relay_link(struct grpcd_relay *r, struct error *err)
{
    if (r->current && has_closed(r->current))
        grpcd_link_end(r->current);
    if (r->current)
        return r->current;
    int fd = unix_connect(r->path);
    if (fd < 0) {
        (void)tell(r, -fd, err);
        return NULL;
    }
    r->current = grpcd_link_create(r->s, r, fd);
    atomic_store(&r->stands, true);
    return r->current;
}
