/* biga replay - the front of biga-replay: whatever follows is its affair. */
#include <string.h>

#include "cli/base/process.h"
#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"

#define PROGRAM "biga-replay"

int verb_replay(struct cli *c, int argc, char **argv)
{
    cleanup_free char *path = NULL;
    struct error err = {0};
    size_t n = argc > 0 ? (size_t)argc : 0;
    cleanup_free char **args = xcalloc(n + 2, sizeof *args);
    (void)c;
    for (size_t i = 0; i < n; i++)
        args[i + 1] = argv[i];
    args[0] = (char *)PROGRAM;
    if (process_find(PROGRAM, &path, &err) == 0)
        (void)execv(path, args);
    (void)execvp(PROGRAM, args); /* returns only when it fails */
    return cli_fail("replay: %s, nor is it on the PATH",
                    err.code ? err.text : PROGRAM " cannot be run");
}
