#include "card/card.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/io/tree.h"

int card_remove(const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || !card_name_ok(path + 1))
        return error_set(err, EINVAL,
                         "%s: is no absolute path of two names or more", path);
    cleanup_free char *above = xstrndup(path, (size_t)(slash - path));
    cleanup_fd int dir = card_open_dir(above, false, err);
    if (dir == -ENOENT)
        return 0;
    return dir < 0 ? dir : tree_remove(dir, slash + 1, path, err);
}
