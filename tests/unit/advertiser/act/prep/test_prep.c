/* A card's virtual functions, on a tree like sysfs whose kernel is played by
 * write() below. */
#include "advertiser/act/prep/prep.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/mem.h"
#include "tests/lib/tmpdir.h"

#define PCI "0000:17:00.0"
#define CARD "card-0000-17-00"

/* --- a kernel ------------------------------------------------------------ */

static struct kernel {
    char *sysfs, *function; /* "" of which sriov_numvfs is */
    int now, total;
    int fail;      /* errno of the next write, 0 none */
    int stuck;     /* so many are made instead; 0: as told */
    bool bind;     /* new ones get a driver */
    int n_written; /* since the last reset */
    int written[8];
} kernel;

static char *in_function(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
static char *in_function(const char *fmt, ...)
{
    char name[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    return xasprintf("%s/%s", kernel.function, name);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    cr_assert(f, "%s", path);
    (void)fputs(text, f);
    cr_assert_eq(fclose(f), 0);
}

static void put_number(const char *name, int n)
{
    cleanup_free char *path = in_function("%s", name),
                      *text = xasprintf("%d\n", n);
    put(path, text);
}

static void bind_driver(int i, bool bound)
{
    cleanup_free char *path = in_function("virtfn%d/driver", i);
    if (bound)
        (void)!symlink("../../../bus/pci/drivers/mlx5_core", path);
    else
        (void)unlink(path);
}

static bool is_bound(int i)
{
    char target[64];
    cleanup_free char *path = in_function("virtfn%d/driver", i);
    return readlink(path, target, sizeof target) > 0;
}

static void set_functions(int n)
{
    for (int i = 0; i < kernel.now; i++) {
        cleanup_free char *link = in_function("virtfn%d", i),
                          *dir = in_function("../0000:17:01.%d", i);
        bind_driver(i, false);
        cr_assert_eq(unlink(link), 0);
        cr_assert_eq(rmdir(dir), 0);
    }
    for (int i = 0; i < n; i++) {
        cleanup_free char *link = in_function("virtfn%d", i),
                          *dir = in_function("../0000:17:01.%d", i),
                          *to = xasprintf("../0000:17:01.%d", i);
        cr_assert_eq(mkdir(dir, 0700), 0);
        cr_assert_eq(symlink(to, link), 0);
        if (kernel.bind)
            bind_driver(i, true);
    }
    kernel.now = n;
    put_number("sriov_numvfs", n);
}

/* As sriov_numvfs_store() in Linux: the same number is a success, another one
 * beside some is EBUSY, more than there can be is ERANGE. */
static ssize_t kernel_write(const char *text, size_t size)
{
    char number[16] = "";
    cr_assert_lt(size, sizeof number);
    memcpy(number, text, size);
    int n = (int)strtol(number, NULL, 10);
    cr_assert_lt(kernel.n_written, 8);
    kernel.written[kernel.n_written++] = n;
    errno = kernel.fail;
    kernel.fail = 0;
    if (errno == 0 && n > kernel.total)
        errno = ERANGE;
    if (errno == 0 && n != 0 && kernel.now != 0 && n != kernel.now)
        errno = EBUSY;
    if (errno)
        return -1;
    set_functions(n > 0 && kernel.stuck ? kernel.stuck : n);
    return (ssize_t)size;
}

/* In place of libc's; stdio does not come by here. */
ssize_t write(int fd, const void *data, size_t size)
{
    static const char name[] = "/sriov_numvfs";
    char link[32], path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = kernel.sysfs ? readlink(link, path, sizeof path - 1) : -1;
    size_t tail = sizeof name - 1;
    if (n > (ssize_t)tail && memcmp(path + n - tail, name, tail) == 0)
        return kernel_write(data, size);
    return syscall(SYS_write, fd, data, size);
}

static void kernel_begin(int total)
{
    memset(&kernel, 0, sizeof kernel);
    char *dir = tmpdir_create();
    cleanup_free char *bus = xasprintf("%s/bus", dir),
                      *pci = xasprintf("%s/pci", bus),
                      *devices = xasprintf("%s/devices", pci);
    kernel.function = xasprintf("%s/%s", devices, PCI);
    cr_assert_eq(mkdir(bus, 0700), 0);
    cr_assert_eq(mkdir(pci, 0700), 0);
    cr_assert_eq(mkdir(devices, 0700), 0);
    cr_assert_eq(mkdir(kernel.function, 0700), 0);
    kernel.total = total;
    if (total >= 0) {
        put_number("sriov_totalvfs", total);
        put_number("sriov_numvfs", 0);
    }
    kernel.sysfs = dir;
}

static void kernel_end(void)
{
    tmpdir_remove(kernel.sysfs);
    free(kernel.function);
    kernel.sysfs = NULL;
}

/* --- asking for virtual functions ---------------------------------------- */

static struct prep_outcome ask_beside(int vfs, bool in_use)
{
    struct prep_config config = {.sysfs = kernel.sysfs};
    struct prep_request request = {.card = CARD,
                                   .pci = PCI,
                                   .namespace = "default",
                                   .pod = "a",
                                   .sriov_vfs = vfs,
                                   .in_use = in_use};
    struct prep_outcome o = {.exit_status = 77};
    struct error err = {0};
    kernel.n_written = 0;
    cr_assert_eq(prep_run(&config, &request, &o, &err), 0, "%s", err.text);
    cr_assert_not(o.hook_ran);
    return o;
}

static struct prep_outcome ask(int vfs)
{
    return ask_beside(vfs, false);
}

#define expect_reason(o, word, part)                           \
    do {                                                       \
        struct prep_outcome o_ = (o);                          \
        cr_expect_str_eq(o_.reason, word, "%s", o_.message);   \
        cr_expect(strstr(o_.message, part), "%s", o_.message); \
    } while (0)

Test(prep, functions_are_made_and_made_anew)
{
    kernel_begin(16);
    struct prep_outcome o = ask(8);
    expect_reason(o, "", PCI " has 8 virtual functions now");
    cr_expect(o.vfs_changed);
    cr_expect_eq(kernel.now, 8);
    cr_expect_eq(kernel.n_written, 1); /* from 0 in one step */
    o = ask(4);
    expect_reason(o, "", "4");
    cr_expect_eq(kernel.n_written, 2); /* by way of 0 */
    cr_expect_eq(kernel.written[0], 0);
    cr_expect_eq(kernel.written[1], 4);
    o = ask(0);
    expect_reason(o, "", "0");
    cr_expect_eq(kernel.n_written, 1);
    cr_expect_eq(kernel.now, 0);
    kernel_end();
}

Test(prep, what_is_right_is_left_alone)
{
    kernel_begin(16);
    kernel.bind = true;
    (void)ask(8);
    for (int i = 0; i < 3; i++) {
        struct prep_outcome o = ask_beside(8, true);
        expect_reason(o, "", "");
        cr_expect_not(o.vfs_changed);
        cr_expect_eq(kernel.n_written, 0);
    }
    (void)ask_beside(-1, true); /* as it is */
    cr_expect_eq(kernel.n_written, 0);
    cr_expect_eq(kernel.now, 8);
    kernel_end();
}

Test(prep, functions_in_use_are_left_alone)
{
    kernel_begin(16);
    (void)ask(8);
    bind_driver(5, true);
    struct prep_outcome o = ask(4);
    expect_reason(o, "VfsInUse", "0000:17:01.5 has the driver mlx5_core");
    expect_reason(ask(0), "VfsInUse", "or ask for 8");
    cr_expect(o.again);
    cr_expect_eq(kernel.n_written, 0);
    cr_expect(is_bound(5));
    bind_driver(5, false);
    o = ask_beside(4, true);
    expect_reason(o, "VfsInUse", "another pod uses " CARD);
    cr_expect_eq(kernel.now, 8);
    expect_reason(ask(4), "", "4");
    kernel_end();
}

Test(prep, more_than_there_can_be)
{
    kernel_begin(16);
    struct prep_outcome o = ask(17);
    expect_reason(o, "VfsTooMany", "can have 16 virtual functions, and 17");
    cr_expect_not(o.again);
    cr_expect_eq(kernel.n_written, 0);
    kernel_end();
}

Test(prep, a_card_without_virtual_functions)
{
    kernel_begin(-1);
    expect_reason(ask(4), "VfsUnsupported", PCI " has no virtual functions");
    expect_reason(ask(0), "", "");
    kernel_end();
    kernel_begin(16);
    cleanup_free char *file = in_function("sriov_totalvfs");
    static const char *const texts[] = {"", "x\n", "-1\n", "99999999999999\n",
                                        "16 17\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        put(file, texts[i]);
        expect_reason(ask(4), "VfsUnsupported", PCI);
    }
    kernel_end();
}

Test(prep, the_kernel_says_no)
{
    kernel_begin(16);
    kernel.fail = ENOMEM;
    struct prep_outcome o = ask(8);
    expect_reason(o, "VfsFailed", "Cannot allocate memory; it has 0 now");
    cr_expect(o.again);
    cr_expect_not(o.vfs_changed);
    kernel.stuck = 3;
    expect_reason(ask(8), "VfsFailed", "the kernel left it; it has 3 now");
    kernel.fail = EBUSY;
    expect_reason(ask(0), "VfsFailed", "it has 3 now");
    kernel_end();
}

Test(prep, a_wrong_request)
{
    static const struct {
        const char *card, *pci;
    } wrong[] = {
        {"", PCI},
        {"../x", PCI},
        {CARD, ""},
        {CARD, "../../.."},
        {CARD, "17:00.0"},
        {CARD, "0000:17:00.0/.."},
        {CARD, "0000:17:00.0 "},
        {CARD, "0000:1A:00.0"},
    };
    kernel_begin(16);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct prep_config config = {.sysfs = kernel.sysfs};
        struct prep_request request = {.card = wrong[i].card,
                                       .pci = wrong[i].pci,
                                       .namespace = "default",
                                       .pod = "a",
                                       .sriov_vfs = 4};
        struct prep_outcome o = {.exit_status = 77};
        struct error err = {0};
        cr_expect_eq(prep_run(&config, &request, &o, &err), -EINVAL, "%s %s",
                     wrong[i].card, wrong[i].pci);
        cr_expect_eq(o.exit_status, 77, "written although it failed");
    }
    kernel_end();
}

/* Anything may be asked at any time: what is there then is what was asked or
 * what was there, and a function with a driver is never taken away. */
Test(prep, random_use)
{
    unsigned seed = 7;
    kernel_begin(12);
    for (int i = 0; i < 3000; i++) {
        int wanted = rand_r(&seed) % 15 - 1, before = kernel.now;
        bool in_use = rand_r(&seed) % 8 == 0, bound = false;
        kernel.bind = rand_r(&seed) % 4 == 0;
        kernel.fail = rand_r(&seed) % 8 == 0 ? EIO : 0;
        if (before > 0 && rand_r(&seed) % 2)
            bind_driver(rand_r(&seed) % before, rand_r(&seed) % 4 == 0);
        for (int k = 0; k < before; k++)
            bound = bound || is_bound(k);
        bool fails = kernel.fail != 0;
        struct prep_outcome o = ask_beside(wanted, in_use);
        bool same = wanted < 0 || wanted == before;
        bool taken = before > 0 && (in_use || bound);
        const char *want = same          ? ""
                           : wanted > 12 ? "VfsTooMany"
                           : taken       ? "VfsInUse"
                           : fails       ? "VfsFailed"
                                         : "";
        cr_assert_str_eq(o.reason, want, "%d to %d: %s", before, wanted,
                         o.message);
        cr_assert_eq(kernel.now, same || want[0] ? before : wanted);
        cr_assert_eq(o.vfs_changed, kernel.now != before);
    }
    kernel_end();
}
