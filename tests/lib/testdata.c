#include "tests/lib/testdata.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/mem.h"

const char *testdata_dir(void)
{
    static char found[PATH_MAX];
    struct stat st;
    const char *env = getenv("BIGA_DATA");
    (void)snprintf(found, sizeof found, "%s", env ? env : "../shared/data");
    return stat(found, &st) == 0 && S_ISDIR(st.st_mode) ? found : NULL;
}

char *testdata_read(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        abort();
    }
    size_t size = 0, cap = 4096;
    char *data = xmalloc(cap + 1);
    for (size_t n; (n = fread(data + size, 1, cap - size, f)) > 0;) {
        size += n;
        if (size == cap) {
            cap *= 2;
            data = xrealloc(data, cap + 1, 1);
        }
    }
    (void)fclose(f);
    data[size] = '\0';
    if (ret_size)
        *ret_size = size;
    return data;
}
