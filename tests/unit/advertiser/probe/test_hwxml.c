/* Every number of an hwloc XML has a limit, and none has a way around it. */
#include "advertiser/probe/hwxml.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "tests/lib/machine.h"
#include "tests/lib/testdata.h"

#define TOPOLOGY(inside) "<topology version=\"2.0\">\n" inside "\n</topology>"
#define OBJECT(attributes) TOPOLOGY("<object type=\"PU\" " attributes "/>")

Test(hwxml, takes_what_hwloc_writes)
{
    static const char *const texts[] = {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" TOPOLOGY(""),
        "<topology><!-- <object os_index='x'> - -- --></topology>",
        TOPOLOGY("<info name='a>b' value=\"it's 4294967295 &#10;\"/>"),
        OBJECT("os_index=\"65535\""),
        OBJECT("cpuset=\"0xf...f,,0x00000001\" nodeset=\"\""),
        TOPOLOGY("<object type=\"Core\" os_index=\"4294967295\"/>"),
        TOPOLOGY("<object type=\"L2Cache\" os_index=\"2147549440\"/>"),
        TOPOLOGY("<object type=\"PCIDev\" os_index=\"53477376\" "
                 "pci_busid=\"10000:3c:1f.7\"/>"),
        TOPOLOGY("<object type=\"Bridge\" bridge_pci=\"0000:[00-ff]\"/>"),
        TOPOLOGY("<object type=\"L3Cache\" cache_associativity=\"-1\"/>"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err = {0};
        cr_expect_eq(hwxml_check(texts[i], &err), 0, "%zu: %s", i, err.text);
    }
}

Test(hwxml, names_the_attribute_and_the_value)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {OBJECT("os_index=\"4294967295\""),
         "line 2: os_index of <object>: is \"4294967295\", must be a number "
         "of at most 65535"},
        {OBJECT("os_index=\"65536\""), "\"65536\""},
        {OBJECT("os_index=\"-1\""), "\"-1\""},
        {OBJECT("os_index=\"\""), "is \"\""},
        {OBJECT("os_index=\" 1\""), "is \" 1\""},
        {OBJECT("os_index=\"18446744073709551617\""), "os_index"},
        {OBJECT("os_index=\"429496729&#52;\""), "&#52;"},
        {OBJECT("os_index = '4294967294'"), "\"4294967294\""},
        {TOPOLOGY("<object type=\"pu\" os_index=\"65536\"/>"), "65536"},
        {TOPOLOGY("<object type=\"&#80;U\" os_index=\"65536\"/>"), "65536"},
        {TOPOLOGY("<object os_index=\"65536\"/>"), "65536"},
        {TOPOLOGY("<object type=\"Core\" os_index=\"4294967296\"/>"),
         "at most 4294967295"},
        {OBJECT("cpuset=\"0xg\""), "cpuset of <object>: is \"0xg\""},
        {OBJECT("nodeset=\"0x111111111\""), "a set like 0x000000ff"},
        {OBJECT("gp_index=\"9223372036854775808\""), "gp_index"},
        {TOPOLOGY("<object local_memory=\"1152921504606846977\"/>"),
         "local_memory of <object>: is \"1152921504606846977\""},
        {TOPOLOGY("<page_type size=\"99999999999999999999\"/>"), "size of"},
        {TOPOLOGY("<distances2 nbobjs=\"1025\"/>"), "nbobjs of <distances2>"},
        {TOPOLOGY("<distances nbobjs=\"-1\"/>"), "nbobjs of <distances>"},
        {TOPOLOGY("<userdata length=\"4294967295\"/>"), "length of"},
        {TOPOLOGY("<object pci_busid=\"0000:00:20.0\"/>"), "like 0000:17:00.0"},
        {TOPOLOGY("<object bridge_pci=\"0000:[0-ff]\"/>"), "0000:[10-20]"},
        {"<topology version=\"3.0\"/>", "is an hwloc XML of version 3.0;"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        cr_expect_eq(hwxml_check(cases[i].text, &err), -EINVAL, "%zu", i);
        cr_expect(strstr(err.text, cases[i].says), "%zu: %s", i, err.text);
    }
}

/* What would make the text say something else to hwloc's own parsers. */
Test(hwxml, leaves_no_way_around)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"<!DOCTYPE topology [<!ENTITY a \"9\">]>" OBJECT(""), "declare"},
        {"<!DOCTYPE t SYSTEM \"a>b\" [<!ENTITY a \"9\">]>", "declare"},
        {TOPOLOGY("<![CDATA[<object>]]>"), "declare"},
        {"<?xml version=\"1.0\" encoding=\"UTF-7\"?><topology/>", "UTF-7"},
        {"<?xml version=\"1.0\"\n<topology os_index=\"9\"?>", "no name"},
        {"<?xsl x=\"1\"?><topology/>", "instructions"},
        {OBJECT("os_index=\"1\" os_index=\"2\""), "os_index: is there twice"},
        {OBJECT("name=\"<object os_index='9'>\""), "has a '<'"},
        {OBJECT("os_index=65536"), "is not quoted"},
        {OBJECT("os_index"), "has no value"},
        {"<!--><topology/>", "a comment does not end"},
        {"<topology/><!-- x ->", "a comment does not end"},
        {"<topology></topology></topology>", "did not begin"},
        {"<topology", "no name"},
        {"<topology version=\"2.0", "not quoted"},
        {"< topology>", "an element has no name"},
        {"<html></html>", "there is no <topology>"},
        {"", "there is no <topology>"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        cr_expect_eq(hwxml_check(cases[i].text, &err), -EINVAL, "%zu", i);
        cr_expect(strstr(err.text, cases[i].says), "%zu: %s", i, err.text);
    }
}

static void repeat(struct str *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        str_add(s, text);
}

/* Exactly `n` of `text` may be within a topology. */
static void limit(const char *begin, const char *text, const char *end,
                  size_t n)
{
    for (size_t more = 0; more < 2; more++) {
        cleanup_str struct str s = STR_INIT(STR_MAX_DEFAULT);
        struct error err = {0};
        str_add(&s, begin);
        repeat(&s, text, n + more);
        str_add(&s, end);
        cr_expect_eq(hwxml_check(str_text(&s), &err), more ? -EINVAL : 0,
                     "%zu of %s: %s", n + more, text, err.text);
    }
}

Test(hwxml, limits)
{
    limit("<topology>", "<object>", "", HWXML_DEPTH_MAX - 1);
    limit("<topology>", "<object/>", "</topology>", HWXML_OBJECTS_MAX);
    limit("<topology>", "<info/>", "</topology>", HWXML_ELEMENTS_MAX - 1);
    limit("<topology><object cpuset=\"", "0x0,", "0x1\"/></topology>",
          HWXML_INDEX_MAX / 32);
    cleanup_str struct str s = STR_INIT(STR_MAX_DEFAULT);
    struct error err = {0};
    str_add(&s, "<topology");
    for (int i = 0; i <= HWXML_ATTRIBUTES_MAX; i++)
        str_addf(&s, " a%d=''", i);
    str_add(&s, "/>");
    cr_expect_eq(hwxml_check(str_text(&s), &err), -EINVAL);
    cr_expect(strstr(err.text, "more than 32 attributes"), "%s", err.text);
}

static int is_xml(const struct dirent *entry)
{
    return strstr(entry->d_name, ".xml") != NULL;
}

Test(hwxml, every_real_machine_is_taken)
{
    static const char *const folders[] = {"hosts", "hosts-derived",
                                          "fabric/plafrim/hwloc"};
    int n_files = 0;
    for (size_t f = 0; f < ARRAY_LEN(folders); f++) {
        cleanup_free char *dir = xasprintf("%s/%s", machine_dir(), folders[f]);
        struct dirent **entries = NULL;
        int n = scandir(dir, &entries, is_xml, alphasort);
        for (int i = 0; i < n; i++, n_files++) {
            cleanup_free char *path = xasprintf("%s/%s", dir,
                                                entries[i]->d_name);
            cleanup_free char *text = testdata_read(path, NULL);
            struct error err = {0};
            cr_expect_eq(hwxml_check(text, &err), 0, "%s: %s", path, err.text);
            free(entries[i]);
        }
        free(entries);
    }
    cr_expect_geq(n_files, 150, "%d files", n_files);
}
