/* The secret of this node, which seals what it writes on remotes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/db/dbfile.h"
#include "lib/io/file.h"
#include "lib/io/log.h"
#include "router/keep/keepdb_private.h"

#define FILE_NAME "keep.secret"

static int make(const char *dir, const char *path, struct kept_secret *secret,
                struct error *err)
{
    cleanup_free char *fresh = xasprintf("%s.new", path);
    if (getrandom(secret->bytes, sizeof secret->bytes, 0) !=
        (ssize_t)sizeof secret->bytes)
        return error_errno(err, errno, "%s: no random bytes", path);
    if (!dir)
        return 0;
    int e = file_write(fresh, 0600, (const char *)secret->bytes,
                       sizeof secret->bytes, true, err);
    if (e == 0 && rename(fresh, path) < 0)
        e = error_errno(err, errno, "%s: cannot be renamed", fresh);
    return e == 0 ? dbfile_sync(dir, err) : e;
}

int keepdb_load_secret(const char *dir, struct kept_secret *ret_secret,
                       bool *ret_is_new, struct error *err)
{
    cleanup_free char *path = xasprintf("%s/" FILE_NAME, dir ? dir : "");
    cleanup_free char *bytes = NULL;
    struct error why = {0};
    size_t size = 0;
    int e = dir ? file_read(path, KEPT_SECRET_SIZE, &bytes, &size, &why)
                : -ENOENT;
    if (e == 0 && size == KEPT_SECRET_SIZE) {
        memcpy(ret_secret->bytes, bytes, size);
        *ret_is_new = false;
        return 0;
    }
    if (e < 0 && e != -ENOENT && e != -EFBIG && e != -E2BIG) {
        if (err)
            *err = why;
        return e;
    }
    if (dir && e != -ENOENT)
        log_event(LOG_ERROR, "keep-secret-damaged", "file", path, NULL);
    *ret_is_new = true;
    return make(dir, path, ret_secret, err);
}
