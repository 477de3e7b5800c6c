#include "advertiser/probe/pci_function.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "lib/base/mem.h"

/* One line of a file of /sys; "" when there is none, or it is no plain
 * word. */
static void word_read(const char *path, char ret_word[PCI_FUNCTION_TEXT_SIZE])
{
    char text[PCI_FUNCTION_TEXT_SIZE + 1];
    ret_word[0] = '\0';
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, PCI_FUNCTION_TEXT_SIZE);
    if (n <= 0)
        return;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    size_t size = strlen(text);
    if (size < PCI_FUNCTION_TEXT_SIZE &&
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == size)
        memcpy(ret_word, text, size + 1);
}

/* 0 when it is none, or more than `max`. */
static uint32_t number_read(const char *path, uint32_t max)
{
    char word[PCI_FUNCTION_TEXT_SIZE];
    word_read(path, word);
    if (strspn(word, "0123456789") != strlen(word))
        return 0; /* a link that is down has the speed -1 */
    unsigned long long value = strtoull(word, NULL, 10);
    return value <= max ? (uint32_t)value : 0;
}

/* The files are those of the kernel's sysfs-class-net and sysfs-bus-pci; the
 * mode is one that the vendor's driver adds to them (compat/devlink), where it
 * is installed: the kernel's own tells it to devlink only. */
void pci_function_read(const char *sysroot, const char *pci,
                       const char *interface, struct pci_function *ret_look)
{
    char path[PATH_MAX];
    struct pci_function look = {0};
    if (interface[0] && !strchr(interface, '/')) {
        (void)snprintf(path, sizeof path, "%s/sys/class/net/%s/operstate",
                       sysroot, interface);
        word_read(path, look.link);
        (void)snprintf(path, sizeof path, "%s/sys/class/net/%s/speed", sysroot,
                       interface);
        look.link_mbps = number_read(path, INT32_MAX);
        (void)snprintf(path, sizeof path,
                       "%s/sys/class/net/%s/compat/devlink/mode", sysroot,
                       interface);
        word_read(path, look.mode);
    }
    (void)snprintf(path, sizeof path,
                   "%s/sys/bus/pci/devices/%s/sriov_totalvfs", sysroot, pci);
    look.vfs_max = (uint16_t)number_read(path, UINT16_MAX);
    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/sriov_numvfs",
                   sysroot, pci);
    look.vfs = (uint16_t)number_read(path, look.vfs_max);
    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/physfn",
                   sysroot, pci);
    look.is_virtual = access(path, F_OK) == 0;
    *ret_look = look;
}
