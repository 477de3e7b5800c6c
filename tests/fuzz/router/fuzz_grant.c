/* A pod's annotation, which whoever may write pods has written: what is taken
 * of it is within its caps, and it counts for the pod and node alone that it
 * names. */
#include <stdlib.h>
#include <string.h>

#include "router/serve/grant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct grant_pod pod = {"ns", "a", "u", "n1"};
    static const struct grant_pod other = {"ns", "b", "v", "n2"};
    struct grant grant, again;
    struct error err = {0};
    int r = grant_read((const char *)data, size, &pod, &grant, &err);
    if (r < 0) {
        must(err.text[0] != '\0');
        return 0;
    }
    must(size <= GRANT_SIZE_MAX);
    must(memchr(grant.card, '\0', sizeof grant.card) != NULL);
    must(memchr(grant.pci, '\0', sizeof grant.pci) != NULL);
    must(memchr(grant.arch, '\0', sizeof grant.arch) != NULL);
    must(grant_read((const char *)data, size, &other, &again, &err) < 0);
    return 0;
}
