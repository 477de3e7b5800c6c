/* The number of a card's virtual functions, through sysfs: the files
 * sriov_totalvfs and sriov_numvfs of its PCI function, and a link virtfnN to
 * each of them (Documentation/ABI/testing/sysfs-bus-pci, in Linux). */
#include "advertiser/act/prep/prep_private.h"

#include <fcntl.h>
#include <limits.h>

#include "lib/base/mem.h"
#include "lib/io/file.h"

enum { NUMBER_MAX = 15, PATH_ROOM = PATH_MAX + 64 };

struct vfs {
    const char *pci;
    char dir[PATH_MAX]; /* of the function in sysfs */
    int now, total;     /* how many there are, and can be */
};

/* A number of sysfs; -1 when there is none. */
static int number_read(const struct vfs *v, const char *name)
{
    char path[PATH_ROOM], text[NUMBER_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/%s", v->dir, name);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, NUMBER_MAX);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    char *end;
    long value = strtol(text, &end, 10);
    bool whole = end != text && (*end == '\n' || *end == '\0');
    return whole && value >= 0 && value <= USHRT_MAX ? (int)value : -1;
}

/* 0 or a positive errno. */
static int number_write(const struct vfs *v, int number)
{
    char path[PATH_ROOM], text[NUMBER_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/sriov_numvfs", v->dir);
    int size = snprintf(text, sizeof text, "%d\n", number);
    cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t n = write(fd, text, (size_t)size); /* all, or an error */
    return n == size ? 0 : n < 0 ? errno : EIO;
}

/* A virtual function that has a driver is somebody's: a network device of the
 * host, a virtual machine's, a container's.  Sysfs does not tell whose. */
static bool find_user(const struct vfs *v, struct prep_outcome *o)
{
    char path[PATH_ROOM], driver[64], pci[64];
    for (int i = 0; i < v->now; i++) {
        (void)snprintf(path, sizeof path, "%s/virtfn%d/driver", v->dir, i);
        if (!file_link_name(path, driver, sizeof driver))
            continue;
        (void)snprintf(path, sizeof path, "%s/virtfn%d", v->dir, i);
        if (!file_link_name(path, pci, sizeof pci))
            (void)snprintf(pci, sizeof pci, "number %d", i);
        prep_say(o, "VfsInUse",
                 "%s has %d virtual functions, and %s has the driver %s: "
                 "unbind it (and write 0 to sriov_drivers_autoprobe, so that "
                 "new ones get none), or ask for %d",
                 v->pci, v->now, pci, driver, v->now);
        return true;
    }
    return false;
}

static bool in_use(const struct vfs *v, const struct prep_request *request,
                   struct prep_outcome *o)
{
    if (v->now == 0)
        return false;
    if (request->in_use) {
        prep_say(o, "VfsInUse",
                 "%s has %d virtual functions, and another pod uses %s: "
                 "wait for its end, or ask for %d",
                 v->pci, v->now, request->card, v->now);
        return true;
    }
    return find_user(v, o);
}

/* The kernel takes no number but 0 when there are some. */
static int change(struct vfs *v, int wanted, struct prep_outcome *o)
{
    int code = v->now > 0 ? number_write(v, 0) : 0;
    if (code == 0 && wanted > 0)
        code = number_write(v, wanted);
    int now = number_read(v, "sriov_numvfs");
    o->vfs_changed = now != v->now;
    if (code == 0 && now == wanted)
        return prep_say(o, "", "%s has %d virtual functions now", v->pci, now);
    o->again = true;
    return prep_say(o, "VfsFailed",
                    "%s: %d virtual functions instead of %d: %s; it has %d "
                    "now: see the kernel's log",
                    v->pci, wanted, v->now,
                    code ? strerror(code) : "the kernel left it", now);
}

int prep_vfs(const struct prep_config *config,
             const struct prep_request *request, struct prep_outcome *o,
             struct error *err)
{
    struct vfs v = {.pci = request->pci};
    int wanted = request->sriov_vfs;
    int n = snprintf(v.dir, sizeof v.dir, "%s/bus/pci/devices/%s",
                     config->sysfs ? config->sysfs : "/sys", request->pci);
    if (n < 0 || (size_t)n >= sizeof v.dir)
        return error_set(err, ENAMETOOLONG, "the path of sysfs is too long");
    v.now = number_read(&v, "sriov_numvfs");
    v.total = number_read(&v, "sriov_totalvfs");
    if (v.now == wanted || (v.now < 0 && wanted == 0))
        return 0;
    if (v.now < 0 || v.total < 0)
        return prep_say(o, "VfsUnsupported",
                        "%s has no virtual functions: the card has none, they "
                        "are off in its firmware, or its driver is not loaded",
                        request->pci);
    if (wanted > v.total)
        return prep_say(o, "VfsTooMany",
                        "%s can have %d virtual functions, and %d are asked "
                        "for (biga.dev/sriov-vfs)",
                        request->pci, v.total, wanted);
    if (in_use(&v, request, o)) {
        o->again = o->waits = true;
        return 0;
    }
    return change(&v, wanted, o);
}
