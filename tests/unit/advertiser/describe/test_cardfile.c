#include "advertiser/describe/cardfile.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static struct cardfile *parsed(const char *json)
{
    struct cardfile *file = NULL;
    struct error err = {0};
    cr_assert_eq(cardfile_parse(json, strlen(json), &file, &err), 0, "%s",
                 err.text);
    return file;
}

static struct cardfile_card found(const struct cardfile *file, const char *pci,
                                  uint16_t device_id, const char *serial)
{
    struct cardfile_key key = {
        .vendor_id = 0x15b3, .device_id = device_id, .serial = serial};
    cr_assert_eq(pci_addr_parse(pci, &key.pci, NULL), 0);
    struct cardfile_card card;
    cardfile_find(file, &key, &card);
    return card;
}

/* Without TLS is what the most particular entry says, as TLS is. */
Test(cardfile, plaintext_is_said_expressly)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":["
        "{\"match\":{\"id\":\"15B3:A2DC\"},\"tls\":{\"ca\":\"/a\","
        "\"cert\":\"/b\",\"key\":\"/c\"}},"
        "{\"match\":{\"id\":\"15B3:A2D6\"},\"plaintext\":true},"
        "{\"match\":{\"pci\":\"17:00\"},\"plaintext\":true},"
        "{\"match\":{\"pci\":\"18:00\"},\"tls\":{\"ca\":\"/x\","
        "\"cert\":\"/b\",\"key\":\"/c\"}}]}");
    struct cardfile_card c = found(file, "0000:17:00.0", 0xa2dc, "");
    cr_expect(c.plaintext);
    cr_expect_str_eq(c.tls_ca, "");
    cr_expect_str_eq(c.tls_key, "");
    c = found(file, "0000:18:00.0", 0xa2d6, "");
    cr_expect(!c.plaintext);
    cr_expect_str_eq(c.tls_ca, "/x");
    c = found(file, "0000:19:00.0", 0xa2d6, "");
    cr_expect(c.plaintext);
    c = found(file, "0000:19:00.0", 0xa2dc, "");
    cr_expect(!c.plaintext);
}

Test(cardfile, names_device_nodes)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":["
        "{\"match\":{\"id\":\"15B3:A2DC\"},\"device-nodes\":[\"/dev/a\","
        "\"/dev/b/c0\"]},"
        "{\"match\":{\"pci\":\"17:00\"},\"device-nodes\":[\"/dev/d\"]}]}");
    struct cardfile_card c = found(file, "0000:18:00.0", 0xa2dc, "");
    cr_assert_eq(c.n_device_nodes, 2u);
    cr_expect_str_eq(c.device_nodes[0], "/dev/a");
    cr_expect_str_eq(c.device_nodes[1], "/dev/b/c0");
    c = found(file, "0000:17:00.0", 0xa2dc, "");
    cr_assert_eq(c.n_device_nodes, 1u, "the more particular entry's");
    cr_expect_str_eq(c.device_nodes[0], "/dev/d");
    c = found(file, "0000:19:00.0", 0xa2d6, "");
    cr_expect_eq(c.n_device_nodes, 0u);
}

Test(cardfile, refuses_device_nodes_elsewhere)
{
    static const char *const bad[] = {
        "7",
        "\"\"",
        "\"/etc/shadow\"",
        "\"/dev/\"",
        "\"/dev/../x\"",
        "\"/dev/a//b\"",
        "\"/dev/a b\"",
        ("\"/dev/"
         "0123456789012345678901234567890123456789012345678901234567890\""),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cardfile *file = NULL;
        struct error err = {0};
        cleanup_free char *json =
            xasprintf("{\"cards\":[{\"match\":{\"pci\":\"17:00\"},"
                      "\"device-nodes\":[\"/dev/ok\",%s]}]}",
                      bad[i]);
        cr_expect_eq(cardfile_parse(json, strlen(json), &file, &err), -EINVAL,
                     "%s", bad[i]);
        cr_expect(strstr(err.text, "cards[0].device-nodes[1]: is "), "%s",
                  err.text);
    }
}

Test(cardfile, names_sets_of_devices)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":["
        "{\"match\":{\"id\":\"15B3:A2DC\"},\"devices\":{"
        "\"rdma\":{\"paths\":[\"/dev/infiniband/uverbs*\","
        "\"/dev/infiniband/rdma_cm\"],\"share\":4},"
        "\"snap\":[\"/dev/uio[0-3]\",\"/dev/v?o\"]}},"
        "{\"match\":{\"pci\":\"17:00\"},\"devices\":{"
        "\"only\":{\"paths\":[\"/dev/[!a]\"]}}}]}");
    struct cardfile_card c = found(file, "0000:18:00.0", 0xa2dc, "");
    cr_assert_eq(c.n_sets, 2u);
    cr_expect_str_eq(c.sets[0].name, "rdma");
    cr_expect_eq(c.sets[0].share, 4u);
    cr_assert_eq(c.sets[0].n_globs, 2u);
    cr_expect_str_eq(c.sets[0].globs[0], "/dev/infiniband/uverbs*");
    cr_expect_str_eq(c.sets[0].globs[1], "/dev/infiniband/rdma_cm");
    cr_expect_str_eq(c.sets[1].name, "snap");
    cr_expect_eq(c.sets[1].share, 1u, "a set is one pod's unless it says so");
    cr_expect_eq(c.sets[1].n_globs, 2u);
    c = found(file, "0000:17:00.0", 0xa2dc, "");
    cr_assert_eq(c.n_sets, 1u, "the more particular entry's");
    cr_expect_str_eq(c.sets[0].name, "only");
    c = found(file, "0000:19:00.0", 0xa2d6, "");
    cr_expect_eq(c.n_sets, 0u);
}

Test(cardfile, describes_by_address_id_and_serial)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":["
        "{\"match\":{\"id\":\"15B3:A2DC\"},\"arch\":\"arm64\",\"cores\":16,"
        "\"memory-mib\":32768,\"model\":\"BF3\"},"
        "{\"match\":{\"serial\":\"MT01\"},\"cores\":12,"
        "\"fabric-port\":\"leaf1/1\"},"
        "{\"match\":{\"pci\":\"0000:17:00.0\"},\"cores\":8,"
        "\"endpoint\":\"tcp://192.168.100.2:7443\",\"tls\":{"
        "\"ca\":\"/c/ca.pem\",\"cert\":\"/c/c.pem\",\"key\":\"/c/k.pem\"}},"
        "{\"match\":{\"pci\":\"5e:00\"},\"exclude\":true}]}");

    struct cardfile_card c = found(file, "0000:17:00.1", 0xa2dc, "MT01");
    cr_expect(c.listed && !c.exclude);
    cr_expect_eq(c.cores, 8, "the address is the most particular");
    cr_expect_eq(c.memory_mib, 32768, "from the id");
    cr_expect_str_eq(c.fabric_port, "leaf1/1", "from the serial");
    cr_expect_str_eq(c.arch, "arm64");
    cr_expect_str_eq(c.model, "BF3");
    cr_expect_str_eq(c.endpoint, "tcp://192.168.100.2:7443");
    cr_expect_str_eq(c.tls_ca, "/c/ca.pem");
    cr_expect_str_eq(c.tls_cert, "/c/c.pem");
    cr_expect_str_eq(c.tls_key, "/c/k.pem");

    c = found(file, "0000:18:00.0", 0xa2dc, "MT01");
    cr_expect_eq(c.cores, 12);
    c = found(file, "0000:18:00.0", 0xa2dc, NULL);
    cr_expect_eq(c.cores, 16);
    c = found(file, "0000:18:00.0", 0xa2d6, "");
    cr_expect(!c.listed);
    cr_expect_str_eq(c.arch, "");
    c = found(file, "0000:5e:00.0", 0xa2dc, "");
    cr_expect(c.listed && c.exclude, "the address decides");
}

Test(cardfile, a_particular_entry_takes_back_an_exclusion)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":["
        "{\"match\":{\"pci\":\"0000:17:00.0\"},\"cores\":8},"
        "{\"match\":{\"id\":\"15b3:a2dc\"},\"exclude\":true}]}");
    cr_expect(!found(file, "0000:17:00.0", 0xa2dc, "").exclude);
    cr_expect(found(file, "0000:18:00.0", 0xa2dc, "").exclude);
}

Test(cardfile, only_what_is_no_card_is_set_aside)
{
    static const char text[] =
        "{\"cards\":[{\"match\":{\"id\":\"15b3:a2dc\"},\"compute\":false}]}";
    struct cardfile *none = NULL;
    struct error err = {0};
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":[{\"match\":{\"pci\":\"5e:00\"},\"exclude\":true,"
        "\"compute\":false},{\"match\":{\"pci\":\"5f:00\"},"
        "\"exclude\":true}]}");
    cr_expect(found(file, "0000:5e:00.1", 0x1021, "").set_aside);
    cr_expect_not(found(file, "0000:5f:00.0", 0x1021, "").set_aside);
    cr_expect_eq(cardfile_parse(text, strlen(text), &none, &err), -EINVAL);
    cr_expect(strstr(err.text, "cards[0].compute: is false, which"), "%s",
              err.text);
}

Test(cardfile, no_file_lists_nothing)
{
    cr_expect(!found(NULL, "0000:17:00.0", 0xa2dc, "").listed);
    cleanup_with(cardfile) struct cardfile *file = parsed("{\"cards\":[]}");
    cr_expect(!found(file, "0000:17:00.0", 0xa2dc, "").listed);
}

#define ONE(members) \
    "{\"cards\":[{\"match\":{\"pci\":\"17:00.0\"}," members "}]}"
#define MATCH(members) "{\"cards\":[{\"match\":{" members "}}]}"

static void expect_refusal(const char *json, const char *text)
{
    struct cardfile *file = NULL;
    struct error err = {0};
    int rc = cardfile_parse(json, strlen(json), &file, &err);
    cr_expect_lt(rc, 0, "accepted: %s", json);
    cr_expect_null(file);
    cr_expect(strstr(err.text, text), "%s: %s", json, err.text);
}

Test(cardfile, every_error_names_the_path)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"", "line 1"},
        {"[]", "must be an object"},
        {"{}", "cards: required member missing"},
        {"{\"cards\":{}}", "cards: must be an array"},
        {"{\"cards\":[],\"card\":[]}", "card"},
        {"{\"cards\":[1]}", "cards[0]: must be an object"},
        {"{\"cards\":[{}]}", "cards[0].match: required member missing"},
        {MATCH(""), "cards[0].match: must have exactly one"},
        {MATCH("\"pci\":\"17:00.0\",\"serial\":\"a\""), "exactly one"},
        {MATCH("\"pci\":\"17\""), "cards[0].match.pci: is \"17\""},
        {MATCH("\"pci\":\"0000:17:00.0.0\""), "cards[0].match.pci"},
        {MATCH("\"id\":\"15b3\""), "cards[0].match.id: is \"15b3\""},
        {MATCH("\"id\":\"15b3:a2dcc\""), "cards[0].match.id"},
        {MATCH("\"id\":\"15b3:a2g0\""), "cards[0].match.id"},
        {MATCH("\"serial\":\"\""), "cards[0].match.serial"},
        {MATCH("\"pci\":1"), "cards[0].match.pci: must be a string"},
        {MATCH("\"mac\":\"a\""), "cards[0].match"},
        {ONE("\"cores\":0"), "cards[0].cores: is 0, must be 1 to 65535"},
        {ONE("\"cores\":1.5"), "cards[0].cores: must be an integer"},
        {ONE("\"memory-mib\":-1"), "cards[0].memory-mib"},
        {ONE("\"exclude\":1"), "cards[0].exclude: must be true or false"},
        {ONE("\"exclude\":true,\"cores\":1"), "excludes a card and describes"},
        {ONE("\"arch\":\"ARM\""), "cards[0].arch: is \"ARM\""},
        {ONE("\"arch\":\"\""), "cards[0].arch"},
        {ONE("\"arch\":\"a234567890123456\""), "cards[0].arch"},
        {ONE("\"endpoint\":\"192.168.1.1:7\""), "cards[0].endpoint: is"},
        {ONE("\"endpoint\":\"tcp://:7\""), "cards[0].endpoint"},
        {ONE("\"endpoint\":\"tcp://h:0\""), "cards[0].endpoint"},
        {ONE("\"endpoint\":\"tcp://h:65536\""), "cards[0].endpoint"},
        {ONE("\"endpoint\":\"tcp://h:7/x\""), "cards[0].endpoint"},
        {ONE("\"tls\":{}"), "cards[0].tls.ca: required member missing"},
        {ONE("\"plaintext\":1"), "cards[0].plaintext: "},
        {ONE("\"plaintext\":true,\"tls\":{\"ca\":\"/a\",\"cert\":\"/c\","
             "\"key\":\"/k\"}"),
         "cards[0].plaintext: is true, and there is tls beside it"},
        {ONE("\"tls\":{\"ca\":\"ca\",\"cert\":\"/c\",\"key\":\"/k\"}"),
         "cards[0].tls.ca: is \"ca\", must be an absolute path"},
        {ONE("\"core\":1"), "core"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refusal(cases[i].json, cases[i].text);
}

Test(cardfile, sets_of_devices_may_give_huge_pages_and_memory_locks)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":[{\"match\":{\"id\":\"15b3:a2dc\"},\"devices\":{"
        "\"rdma\":{\"paths\":[\"/dev/x\"],\"capabilities\":[\"IPC_LOCK\"]},"
        "\"huge\":{\"hugepages\":{\"2Mi\":\"512Mi\",\"1Gi\":\"4Gi\"},"
        "\"share\":3}}}]}");
    struct cardfile_card c = found(file, "0000:17:00.0", 0xa2dc, "");
    cr_assert_eq(c.n_sets, 2u);
    cr_expect(c.sets[0].ipc_lock && c.sets[0].hugepages.n == 0);
    cr_expect(!c.sets[1].ipc_lock && c.sets[1].n_globs == 0);
    cr_expect_eq(c.sets[1].share, 3u);
    cr_expect_eq(hugepages_of(&c.sets[1].hugepages, 2 << 20), 512u << 20);
    cr_expect_eq(hugepages_of(&c.sets[1].hugepages, 1 << 30), 4ULL << 30);
}

Test(cardfile, errors_of_devices_name_the_path)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {ONE("\"devices\":[]"), "cards[0].devices: must be an object"},
        {ONE("\"devices\":{\"a_b\":[\"/dev/x\"]}"),
         "cards[0].devices: has \"a_b\", must be names of sets"},
        {ONE("\"devices\":{\"a\":7}"),
         "cards[0].devices.a: must be a list of paths, or an object"},
        {ONE("\"devices\":{\"a\":[]}"),
         "cards[0].devices.a: has 0 paths, must have 1 to 8"},
        {ONE("\"devices\":{\"a\":[\"/dev/x\",\"/etc/*\"]}"),
         "cards[0].devices.a[1]: is \"/etc/*\", must be a path below /dev"},
        {ONE("\"devices\":{\"a\":[\"/dev/*/../x\"]}"), "devices.a[0]"},
        {ONE("\"devices\":{\"a\":[\"/dev/[a\"]}"), "devices.a[0]"},
        {ONE("\"devices\":{\"a\":[\"/dev/[a/b]\"]}"), "devices.a[0]"},
        {ONE("\"devices\":{\"a\":[\"/dev/a;b\"]}"), "devices.a[0]"},
        {ONE("\"devices\":{\"a\":[\"/dev/shm/*\"]}"),
         "devices.a[0]: is \"/dev/shm/*\", must be a path below /dev but not"},
        {ONE("\"devices\":{\"a\":[null]}"), "devices.a[0]: is no text"},
        {ONE("\"devices\":{\"a\":{}}"),
         "cards[0].devices.a.paths: required member missing"},
        {ONE("\"devices\":{\"a\":{\"paths\":[]}}"),
         "cards[0].devices.a.paths: has 0 paths"},
        {ONE("\"devices\":{\"a\":{\"paths\":[\"/dev/x\"],\"share\":0}}"),
         "cards[0].devices.a.share: is 0, must be 1 to 4096"},
        {ONE("\"devices\":{\"a\":{\"paths\":[\"/dev/x\"],\"shared\":1}}"),
         "cards[0].devices.a"},
        {ONE("\"devices\":{\"a\":[\"/dev/x\"],\"b\":[\"/dev/x\"],"
             "\"c\":[\"/dev/x\"],\"d\":[\"/dev/x\"],\"e\":[\"/dev/x\"],"
             "\"f\":[\"/dev/x\"],\"g\":[\"/dev/x\"],\"h\":[\"/dev/x\"],"
             "\"i\":[\"/dev/x\"]}"),
         "cards[0].devices: has more than 8 sets"},
        {ONE("\"devices\":{\"a\":{\"hugepages\":{\"2MB\":\"4Mi\"}}}"),
         "cards[0].devices.a.hugepages: has \"2MB\", must be sizes of pages"},
        {ONE("\"devices\":{\"a\":{\"hugepages\":{\"2Mi\":\"3Mi\"}}}"),
         "cards[0].devices.a.hugepages.2Mi: is \"3Mi\", must be whole pages"},
        {ONE("\"devices\":{\"a\":{\"hugepages\":{\"2Mi\":4}}}"),
         "cards[0].devices.a.hugepages.2Mi: is no text"},
        {ONE("\"devices\":{\"a\":{\"hugepages\":{\"4Ki\":\"1Mi\",\"2Mi\":"
             "\"2Mi\",\"8Mi\":\"8Mi\",\"1Gi\":\"1Gi\",\"2Gi\":\"2Gi\"}}}"),
         "cards[0].devices.a.hugepages: has more than 4 sizes"},
        {ONE("\"devices\":{\"a\":{\"hugepages\":[]}}"),
         "cards[0].devices.a.hugepages: must be an object"},
        {ONE("\"devices\":{\"a\":{\"capabilities\":[\"SYS_ADMIN\"]}}"),
         "a.capabilities: has \"SYS_ADMIN\", must be \"IPC_LOCK\""},
        {ONE("\"devices\":{\"a\":{\"capabilities\":[true]}}"),
         "cards[0].devices.a.capabilities: has no text"},
        {ONE("\"devices\":{\"a\":{\"capabilities\":[],\"share\":2}}"),
         "cards[0].devices.a: must give something"},
        {ONE("\"exclude\":true,\"devices\":{\"a\":[\"/dev/x\"]}"),
         "excludes a card and describes"},
        {ONE("\"cores\":1,\"cores\":2"), "duplicate key"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refusal(cases[i].json, cases[i].text);
}

Test(cardfile, limits)
{
    cleanup_free char *big = xcalloc(1, CARDFILE_SIZE_MAX + 2);
    memset(big, ' ', CARDFILE_SIZE_MAX + 1);
    struct cardfile *file = NULL;
    struct error err = {0};
    cr_expect_eq(cardfile_parse(big, CARDFILE_SIZE_MAX + 1, &file, &err),
                 -EFBIG);
    cr_expect_eq(cardfile_parse(big, 10, &file, &err), -EINVAL);
}

Test(cardfile, files_are_named_in_errors)
{
    struct cardfile *file = NULL;
    struct error err = {0};
    cr_expect_lt(cardfile_load("/nonexistent.json", &file, &err), 0);
    cr_expect(strstr(err.text, "/nonexistent.json"), "%s", err.text);

    char path[] = "/tmp/biga-test-cardfile-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "{\"cards\":[{}]}", 14), 14);
    close(fd);
    cr_expect_lt(cardfile_load(path, &file, &err), 0);
    cr_expect(strstr(err.text, path) && strstr(err.text, "cards[0].match"),
              "%s", err.text);
    unlink(path);
}

Test(cardfile, the_addresses_that_it_names_are_told_in_order)
{
    cleanup_with(cardfile) struct cardfile *file = parsed(
        "{\"cards\":[{\"match\":{\"pci\":\"18:00\"},\"arch\":\"arm64\"},"
        "{\"match\":{\"id\":\"15b3:a2dc\"},\"arch\":\"arm64\"},"
        "{\"match\":{\"pci\":\"0001:17:00.1\"},\"exclude\":true}]}");
    struct pci_addr addrs[4];
    cr_assert_eq(cardfile_addresses(file, addrs, 4), 2);
    cr_expect_eq(addrs[0].bus, 0x18);
    cr_expect_eq(addrs[1].domain, 1);
    cr_assert_eq(cardfile_addresses(file, addrs, 1), 1);
}
