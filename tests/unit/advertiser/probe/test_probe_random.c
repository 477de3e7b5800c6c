/* What is published can be read: whatever an hwloc XML says, a topology that
 * probe gives comes out of its slices as it went in.  The XMLs are those of
 * real hosts with some lines changed at random. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "advertiser/probe/probe.h"
#include "lib/base/str.h"
#include "tests/lib/machine.h"
#include "tests/lib/randnode.h"
#include "tests/lib/roundtrip.h"
#include "tests/lib/testdata.h"

enum { LINES_MAX = 4096, CHANGES_MAX = 8 };

/* An XML by its lines, and those of its PCI functions. */
struct xml {
    char *text;
    const char *lines[LINES_MAX];
    size_t n_lines;
    size_t pci[LINES_MAX];
    size_t n_pci;
};

static void xml_read(const char *path, struct xml *x)
{
    *x = (struct xml){.text = testdata_read(path, NULL)};
    for (char *p = x->text, *line; (line = strsep(&p, "\n"));) {
        cr_assert_lt(x->n_lines, LINES_MAX);
        if (strstr(line, "type=\"PCIDev\""))
            x->pci[x->n_pci++] = x->n_lines;
        x->lines[x->n_lines++] = line;
    }
}

/* The line with the value of an attribute replaced; the caller frees. */
static char *replaced(const char *line, const char *attribute,
                      const char *value)
{
    cleanup_free char *begin = xasprintf(" %s=\"", attribute);
    const char *at = strstr(line, begin);
    if (!at)
        return xstrdup(line);
    at += strlen(begin);
    return xasprintf("%.*s%s%s", (int)(at - line), line, value,
                     at + strcspn(at, "\""));
}

/* Of another function of the file, as it is or one beside it. */
static char *address_roll(const struct xml *x)
{
    const char *other = x->lines[x->pci[roll((uint32_t)x->n_pci)]];
    const char *at = strstr(other, "pci_busid=\"") + strlen("pci_busid=\"");
    char *text = xstrndup(at, strcspn(at, "\""));
    size_t size = strlen(text);
    if (odds(30))
        text[size - 1] = (char)('0' + roll(8));
    if (odds(10))
        text[size - 3] = "0123456789abcdef"[roll(16)];
    if (odds(5))
        text[3] = (char)('0' + roll(10));
    return text;
}

static char *type_roll(void)
{
    static const char *const ids[] = {"15b3:a2dc", "15b3:1021", "1dd8:1002",
                                      "10de:2335", "8086:2250", "1002:74a0"};
    static const char *const classes[] = {"0200", "0207", "0300", "0302",
                                          "1200", "0c06", "0880"};
    return xasprintf("%s [%s] [0000:0000] 00",
                     classes[roll(ARRAY_LEN(classes))],
                     ids[roll(ARRAY_LEN(ids))]);
}

/* A second sight of a function, before its own line and without what is
 * below it. */
static char *again(const char *line)
{
    static unsigned long long gp = 1000000;
    cleanup_free char *index = xasprintf("%llu", gp++);
    cleanup_free char *copy = replaced(line, "gp_index", index);
    size_t size = strcspn(copy, ">");
    size -= copy[size - 1] == '/';
    return xasprintf("%.*s/>\n%s", (int)size, copy, line);
}

static char *number_roll(void)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "7",
                                          "255",
                                          "32767",
                                          "32768",
                                          "65535",
                                          "65536",
                                          "-1",
                                          "x",
                                          "2147483648",
                                          "1152921504606846976",
                                          "9223372036854775807"};
    return xstrdup(numbers[roll(ARRAY_LEN(numbers))]);
}

static char *text_roll(void)
{
    static const char *const texts[] = {
        "",
        "&#10;",
        "&quot;\\&quot;",
        "\xc3\xa9",
        "&#155;31m",
        "&#8238;",
        "4294967296",
        "99999999999999999999",
        "a b",
        "0123456789012345678901234567890123456789012345678901234567890123456"};
    return xstrdup(texts[roll(ARRAY_LEN(texts))]);
}

/* One line changed; the caller frees it. */
static char *changed(const struct xml *x, size_t i)
{
    static const char *const numbers[] = {"os_index", "local_memory", "size"};
    const char *line = x->lines[i];
    cleanup_free char *value = NULL;
    if (strstr(line, "<info "))
        return replaced(line, "value", value = text_roll());
    if (!strstr(line, "type=\"PCIDev\""))
        return replaced(line, numbers[roll(ARRAY_LEN(numbers))],
                        value = number_roll());
    if (odds(40))
        return replaced(line, "pci_busid", value = address_roll(x));
    if (odds(50))
        return replaced(line, "pci_type", value = type_roll());
    return again(line);
}

static void write_changed(const struct xml *x, int fd)
{
    cleanup_str struct str s = STR_INIT(STR_MAX_DEFAULT);
    size_t at[CHANGES_MAX], n = 1 + roll(CHANGES_MAX);
    for (size_t k = 0; k < n; k++)
        at[k] = x->n_pci && odds(80) ? x->pci[roll((uint32_t)x->n_pci)]
                                     : roll((uint32_t)x->n_lines);
    for (size_t i = 0; i < x->n_lines; i++) {
        cleanup_free char *line = NULL;
        for (size_t k = 0; k < n && !line; k++)
            line = at[k] == i ? changed(x, i) : NULL;
        str_addf(&s, "%s\n", line ? line : x->lines[i]);
    }
    cr_assert_eq(ftruncate(fd, 0), 0);
    cr_assert_eq(pwrite(fd, s.data, s.size, 0), (ssize_t)s.size);
}

/* How many of `n` changed hosts were taken. */
static size_t try_host(const char *path, size_t n)
{
    char changed_path[] = "/tmp/biga-test-random-XXXXXX";
    int fd = mkstemp(changed_path);
    const struct probe_source source = {.xml = changed_path};
    struct xml x;
    size_t taken = 0;
    cr_assert_geq(fd, 0);
    xml_read(path, &x);
    for (size_t i = 0; i < n; i++) {
        cleanup_with(topo) struct topo *topo = NULL;
        struct error err = {0};
        write_changed(&x, fd);
        if (probe_run(&source, "h1", NULL, &topo, &err) < 0)
            continue;
        taken++;
        cr_assert(roundtrip(topo), "%s, changed in %s, try %zu", path,
                  changed_path, i);
    }
    close(fd);
    unlink(changed_path);
    free(x.text);
    return taken;
}

static int is_xml(const struct dirent *entry)
{
    return strstr(entry->d_name, ".xml") != NULL;
}

static void try_folder(const char *folder)
{
    const size_t n_tries = setting("BIGA_TEST_TRIES", 8);
    cleanup_free char *dir = xasprintf("%s/%s", machine_dir(), folder);
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_xml, alphasort);
    size_t taken = 0;
    cr_assert_gt(n, 0);
    uint64_t seed = chance_init();
    for (int i = 0; i < n; i++) {
        cleanup_free char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        taken += try_host(path, n_tries);
        free(entries[i]);
    }
    free(entries);
    fprintf(stderr, "# %s: seed %ju, %zu of %zu changed hosts were taken\n",
            folder, (uintmax_t)seed, taken, (size_t)n * n_tries);
    cr_expect_geq(taken, (size_t)n * n_tries / 4);
}

Test(probe_random, what_is_published_can_be_read, .timeout = 300)
{
    try_folder("hosts");
    try_folder("hosts-derived");
}
