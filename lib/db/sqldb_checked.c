/* A database as it was left, or a new one in place of a damaged one. */
#include <errno.h>

#include "lib/base/mem.h"
#include "lib/db/dbfile.h"
#include "lib/db/sqldb.h"
#include "lib/io/log.h"

struct opening {
    struct sqldb *d;
    const struct sqldb_file *file;
    const char *dir;
    void *owner;
    uint64_t marked; /* commits that were acknowledged */
};

/* -EBADMSG leaves both files as they were. */
static int open_as_left(const struct opening *o, struct error *err)
{
    const struct sqldb_file *f = o->file;
    cleanup_free char *path = xasprintf("%s/%s", o->dir, f->name);
    /* SQLite would delete the log of an empty one, and begin anew */
    if (o->marked && dbfile_is_empty(o->dir, f->name))
        return error_set(err, EBADMSG, "%s", f->empty);
    int e = dbfile_create(o->dir, f->name, err);
    if (e == 0)
        e = f->open(o->owner, path, false, err);
    if (e == 0 && f->n_commits(o->owner) < o->marked)
        e = f->too_old(o->owner, o->marked, err);
    if (e == 0)
        sqldb_trust(o->d);
    return e;
}

static int renew(const struct opening *o, const struct error *why,
                 struct error *err)
{
    const struct sqldb_file *f = o->file;
    cleanup_free char *name = xasprintf("%s" DBFILE_FRESH, f->name);
    cleanup_free char *path = xasprintf("%s/%s", o->dir, name);
    cleanup_free char *aside = NULL;
    uint64_t n_commits = f->n_commits(o->owner);
    if (n_commits < o->marked)
        n_commits = o->marked;
    int e = dbfile_create(o->dir, name, err);
    if (e == 0)
        e = f->open(o->owner, path, true, err);
    if (e == 0)
        e = f->save(o->owner, o->dir, n_commits, err);
    if (e < 0)
        return e;
    sqldb_trust(o->d);
    f->close(o->owner);
    e = dbfile_replace(o->dir, f->name, &aside, err);
    if (e == 0)
        log_event(LOG_ERROR, f->damaged_event, "error", why->text, "moved-to",
                  aside, NULL);
    return e;
}

int sqldb_open_checked(struct sqldb *d, const struct sqldb_file *file,
                       const char *dir, void *owner, struct dbmark **mark,
                       struct error *err)
{
    struct error why = {0};
    struct opening o = {.d = d, .file = file, .dir = dir, .owner = owner};
    int e = dbfile_tidy(dir, file->name, err);
    if (e == 0)
        e = dbmark_open(dir, file->name, mark, err);
    if (e < 0)
        return e;
    o.marked = dbmark_get(*mark);
    e = open_as_left(&o, &why);
    if (e != -EBADMSG) {
        if (e < 0 && err)
            *err = why;
        return e;
    }
    file->close(owner);
    e = renew(&o, &why, err);
    if (e < 0)
        return e;
    o.marked = dbmark_get(*mark); /* of what was saved */
    return open_as_left(&o, err);
}
