#include "advertiser/act/card/pod_dir.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"

char *pod_dir_path(const struct pod_dirs *dirs, const char *place,
                   const char *uid)
{
    bool own = strcmp(place, ACT_HOST) == 0 && dirs->host;
    return xasprintf("%s/pods/%s", own ? dirs->host : dirs->card, uid);
}

char *pod_dir_memory(const char *uid, bool helper)
{
    return xasprintf("%s/%s", helper ? ACT_MEMORY_HELPER : ACT_MEMORY_DIR, uid);
}

char *pod_dir_hugetlbfs(uint64_t page, bool helper)
{
    char size[HUGEPAGES_TEXT_SIZE];
    hugepages_page_text(page, size);
    return xasprintf("%s/hugepages-%s", helper ? ACT_DEV_HELPER : "/dev", size);
}

char *pod_dir_hugepages(const char *uid, uint64_t page, bool helper)
{
    cleanup_free char *top = pod_dir_hugetlbfs(page, helper);
    return xasprintf("%s/biga/%s", top, uid);
}

char *pod_dir_log_name(const char *container, uint32_t attempt)
{
    return xasprintf("%s-%" PRIu32 ".log", container, attempt);
}
