/* The words of volume.h as the command line has them. */
#include <string.h>
#include <unistd.h>

#include "card/card_private.h"
#include "card/volume.h"

static int fail(int rc, const struct error *err)
{
    (void)fprintf(stderr, "biga-card: %s\n", err->text);
    return rc == -ENOENT ? 3 : 1;
}

static int do_last(const char *path, const char *most)
{
    struct error err;
    size_t size;
    long max = card_number(most, 10, CARD_PAD_MAX);
    if (max <= 0)
        return -1;
    int rc = card_last(path, (size_t)max, STDOUT_FILENO, &size, &err);
    if (rc)
        return fail(rc, &err);
    return fprintf(stderr, "bytes=%zu\nnext=0\n", size) < 0;
}

/* Secrets first, and one that stays does not keep the others. */
static int do_forget(const char *const *paths)
{
    struct error err;
    int status = 0;
    for (int i = 0; i < 2; i++) {
        int rc = card_unmount(paths[i], &err);
        if (!rc)
            rc = card_remove(paths[i], &err);
        if (rc) {
            (void)fail(rc, &err);
            status = 1;
        }
    }
    return status;
}

int card_volume_main(int argc, const char *const *argv)
{
    struct error err;
    int rc;
    if (argc >= 4 && strcmp(argv[0], "volume") == 0)
        rc = card_volume(argc - 1, argv + 1, &err);
    else if (argc == 3 && strcmp(argv[0], "tree") == 0)
        rc = card_tree(argv[1], argv[2], STDOUT_FILENO, &err);
    else if (argc >= 2 && strcmp(argv[0], "pods") == 0)
        rc = card_pods(argc - 1, argv + 1, STDOUT_FILENO, &err);
    else if (argc == 3 && strcmp(argv[0], "last") == 0)
        return do_last(argv[1], argv[2]);
    else if (argc == 3 && strcmp(argv[0], "forget") == 0)
        return do_forget(argv + 1);
    else
        return -1;
    if (rc)
        (void)fail(rc, &err);
    return rc ? 1 : 0;
}
