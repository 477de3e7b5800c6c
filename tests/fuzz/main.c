/* Runs a fuzz target on the files of folders, so that a corpus is a test
 * without a fuzzer:  fuzz_x tests/fuzz/corpus/x  Options, which a fuzzer would
 * heed, are passed over. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "tests/lib/testdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

DEFINE_CLEANUP(dir, DIR *, closedir)

static int run_folder(const char *folder)
{
    cleanup_with(dir) DIR *dir = opendir(folder);
    int n = 0;
    if (!dir) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return -1;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        size_t size;
        if (e->d_name[0] == '.')
            continue;
        cleanup_free char *path = xasprintf("%s/%s", folder, e->d_name);
        cleanup_free char *data = testdata_read(path, &size);
        /* a copy of just that size, so that a sanitizer sees its end */
        cleanup_free uint8_t *exact = xmemdup(data, size);
        fprintf(stderr, "%s\n", path);
        if (LLVMFuzzerTestOneInput(exact, size) != 0)
            return -1;
        n++;
    }
    fprintf(stderr, "%s: %d files\n", folder, n);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-' && run_folder(argv[i]) <= 0)
            return 1;
    return 0;
}
