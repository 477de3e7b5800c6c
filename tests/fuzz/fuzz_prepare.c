/* How a pod wants its card prepared: whatever is read keeps to its limits, and
 * what is refused is named. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/pod/prepare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prepare p = {.sriov_vfs = -7};
    struct error err = {0};
    int rc = prepare_read((const char *)data, size, &p, &err);
    if (rc == 0 &&
        (p.sriov_vfs < -1 || p.sriov_vfs > PREPARE_VFS_MAX || p.sfs < 0 ||
         p.sfs > PREPARE_SFS_MAX || (p.hook[0] && !prepare_hook_ok(p.hook))))
        abort();
    if (rc < 0 && (p.sriov_vfs != -7 || err.text[0] == '\0' ||
                   (rc != -EDOM && rc != -EINVAL)))
        abort();
    return 0;
}
