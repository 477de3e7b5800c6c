/* What the command devlink prints: whatever it is, what is read keeps to its
 * limits and belongs to the function that was asked for, and what is refused is
 * named. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/prep/devlink.h"
#include "lib/base/hidden_text.h"

#define PCI "0000:17:00.0"

static void check_text(const char *text)
{
    size_t size = strlen(text);
    if (size > DEVLINK_TEXT_MAX)
        abort();
    for (size_t at = 0; at < size;) {
        bool hidden;
        at += hidden_text_next(text + at, size - at, &hidden);
        if (hidden)
            abort();
    }
}

static void check_result(int e, const struct error *err)
{
    if (e > 0 || (e < 0 && err->text[0] == '\0'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    struct devlink_sfs sfs = {0};
    struct devlink_info info = {.driver = ""};
    char mode[DEVLINK_TEXT_MAX + 1] = "";
    struct error err = {0};
    int e = devlink_read_sfs(json, size, PCI, &sfs, &err);
    check_result(e, &err);
    if ((e < 0 && sfs.list) || sfs.n > DEVLINK_PORTS_MAX)
        abort();
    for (size_t i = 0; i < sfs.n; i++)
        if (strncmp(sfs.list[i].handle, "pci/" PCI "/", 17) != 0)
            abort();
    free(sfs.list);
    err.text[0] = '\0';
    check_result(devlink_read_info(json, size, PCI, &info, &err), &err);
    check_text(info.driver);
    check_text(info.serial);
    check_text(info.firmware);
    check_text(info.stored);
    check_text(info.psid);
    err.text[0] = '\0';
    check_result(devlink_read_eswitch(json, size, PCI, mode, &err), &err);
    check_text(mode);
    return 0;
}
