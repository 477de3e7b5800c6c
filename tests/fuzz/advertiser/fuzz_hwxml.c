/* Any text as an hwloc XML: no crash; what is refused says why; and no index
 * is taken, however it is written, that would cost hwloc a great set. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/probe/hwxml.h"
#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Found by another way than the one under test: the name, wherever it is in
 * a tag of a PU, and the number behind it. */
static void no_great_index(const char *text)
{
    static const char pu[] = "<object type=\"PU\" os_index=\"";
    for (const char *p = text; (p = strstr(p, pu)); p++)
        if (strtoull(p + sizeof pu - 1, NULL, 10) > HWXML_INDEX_MAX)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    cleanup_free char *text = xstrndup((const char *)data, size);
    int r = hwxml_check(text, &err);
    if (r < 0 ? err.text[0] == '\0' || r != -EINVAL : err.text[0] != '\0')
        abort();
    if (r == 0 && !strstr(text, "<!--"))
        no_great_index(text);
    return 0;
}
