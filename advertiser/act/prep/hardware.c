#include "advertiser/act/prep/hardware.h"

#include <stdlib.h>

#include "advertiser/act/prep/tool.h"
#include "lib/base/mem.h"
#include "lib/io/file.h"

enum { NUMBER_FILE_MAX = 65536 }; /* sysfs says that a file has a page */

static int number_of(const struct prep_config *config, const char *pci,
                     const char *name)
{
    cleanup_free char *path = xasprintf("%s/bus/pci/devices/%s/%s",
                                        config->sysfs ? config->sysfs : "/sys",
                                        pci, name);
    cleanup_free char *text = NULL;
    size_t size;
    char *end = NULL;
    if (file_read(path, NUMBER_FILE_MAX, &text, &size, NULL) < 0)
        return -1;
    long n = strtol(text, &end, 10);
    return end != text && n >= 0 && n <= UINT16_MAX ? (int)n : -1;
}

/* `devlink -j a b c [pci/PCI]`; false: it told nothing. */
static bool ask(const struct prep_config *config, const char *const words[3],
                const char *pci, struct str *ret_out)
{
    cleanup_free char *handle = xasprintf("pci/%s", pci);
    const char *const argv[] = {config->devlink ? config->devlink : "devlink",
                                "-j",
                                words[0],
                                words[1],
                                words[2] ? words[2] : handle,
                                words[2] ? handle : NULL,
                                NULL};
    return tool_run(argv, HARDWARE_MS, ret_out, NULL) == 0;
}

static int count_sfs(const struct prep_config *config, const char *pci)
{
    const char *const argv[] = {config->devlink ? config->devlink : "devlink",
                                "-j", "port", "show", NULL};
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    struct devlink_sfs sfs = {0};
    if (tool_run(argv, HARDWARE_MS, &out, NULL) < 0 ||
        devlink_read_sfs(str_text(&out), out.size, pci, &sfs, NULL) < 0)
        return -1;
    free(sfs.list);
    return (int)sfs.n;
}

void hardware_look(const struct prep_config *config, const char *pci,
                   struct hardware *ret_hardware)
{
    static const char *const info[] = {"dev", "info", NULL};
    static const char *const eswitch[] = {"dev", "eswitch", "show"};
    cleanup_str struct str out = STR_INIT(TOOL_OUT_MAX);
    struct hardware h = {.vfs = number_of(config, pci, "sriov_numvfs"),
                         .vfs_max = number_of(config, pci, "sriov_totalvfs"),
                         .sfs = count_sfs(config, pci)};
    /* what fails leaves its members as they are: unknown */
    if (ask(config, info, pci, &out))
        (void)devlink_read_info(str_text(&out), out.size, pci, &h.info, NULL);
    str_reset(&out);
    if (ask(config, eswitch, pci, &out))
        (void)devlink_read_eswitch(str_text(&out), out.size, pci, h.eswitch,
                                   NULL);
    (void)rshim_find(config->dev ? config->dev : "/dev", pci, &h.rshim);
    *ret_hardware = h;
}
