#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "router/remotes.h"
#include "tests/lib/tmpdir.h"

static void write_file(const char *dir, const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

static void make_dir(const char *dir, const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
}

/* `json` read where /sys has a BlueField with two functions, at 0000:03:00. */
static int load(const char *json, struct remotes *ret, struct error *err)
{
    char *dir = tmpdir_create();
    write_file(dir, "cards.json", json);
    make_dir(dir, "bus");
    make_dir(dir, "bus/pci");
    make_dir(dir, "bus/pci/devices");
    for (int i = 0; i < 2; i++) {
        cleanup_free char *name = xasprintf("bus/pci/devices/0000:03:00.%d", i);
        cleanup_free char *vendor = xasprintf("%s/vendor", name);
        cleanup_free char *device = xasprintf("%s/device", name);
        make_dir(dir, name);
        write_file(dir, vendor, "0x15b3\n");
        write_file(dir, device, "0xa2d6\n");
    }
    cleanup_free char *path = xasprintf("%s/cards.json", dir);
    int r = remotes_load(path, dir, ret, err);
    tmpdir_remove(dir);
    return r;
}

#define TLS "\"tls\":{\"ca\":\"/a\",\"cert\":\"/b\",\"key\":\"/c\"}"

Test(remotes, a_card_that_the_file_names_need_not_be_seen)
{
    static struct remotes r;
    struct error err = {0};
    cr_assert_eq(load("{\"cards\":[{\"match\":{\"pci\":\"18:00.1\"},"
                      "\"endpoint\":\"tcp://10.0.0.2:7443\",\"arch\":"
                      "\"arm64\"," TLS "},{\"match\":{\"pci\":\"17:00\"},"
                      "\"endpoint\":\"tcp://10.0.0.1:7443\","
                      "\"plaintext\":true}]}",
                      &r, &err),
                 0, "%s", err.text);
    cr_assert_eq(r.n, 2);
    cr_assert_str_eq(r.list[0].name, "card-0000-17-00");
    cr_assert(r.list[0].plaintext);
    cr_assert_str_eq(r.list[1].name, "card-0000-18-00");
    cr_assert_str_eq(r.list[1].pci, "0000:18:00.0");
    cr_assert_str_eq(r.list[1].arch, "arm64");
    cr_assert_str_eq(r.list[1].key, "/c");
}

Test(remotes, by_its_ids_a_card_is_looked_for)
{
    static struct remotes r;
    struct error err = {0};
    cr_assert_eq(load("{\"cards\":[{\"match\":{\"id\":\"15b3:a2d6\"},"
                      "\"endpoint\":\"tcp://10.0.0.2:7443\"," TLS "}]}",
                      &r, &err),
                 0, "%s", err.text);
    cr_assert_eq(r.n, 1, "both functions are one card");
    cr_assert_str_eq(r.list[0].name, "card-0000-03-00");
    cr_assert_str_eq(r.list[0].pci, "0000:03:00.0");
}

Test(remotes, without_an_endpoint_or_excluded_there_is_none)
{
    static struct remotes r;
    struct error err = {0};
    cr_assert_eq(load("{\"cards\":[{\"match\":{\"id\":\"15b3:a2d6\"},"
                      "\"endpoint\":\"tcp://10.0.0.2:7443\"," TLS "},"
                      "{\"match\":{\"pci\":\"03:00.0\"},\"exclude\":true},"
                      "{\"match\":{\"pci\":\"04:00\"},\"arch\":\"arm64\"}]}",
                      &r, &err),
                 0, "%s", err.text);
    cr_assert_eq(r.n, 0);
}

Test(remotes, more_than_there_may_be_are_refused)
{
    static struct remotes r;
    struct error err = {0};
    cleanup_str struct str json = STR_INIT(1 << 16);
    str_add(&json, "{\"cards\":[");
    for (int i = 0; i <= REMOTES_MAX; i++)
        str_addf(&json,
                 "%s{\"match\":{\"pci\":\"%02x:00\"},\"plaintext\":true,"
                 "\"endpoint\":\"tcp://10.0.0.1:7443\"}",
                 i ? "," : "", 16 + i);
    str_add(&json, "]}");
    cr_assert_eq(load(str_text(&json), &r, &err), -E2BIG);
    cr_assert(strstr(err.text, "card-0000-20-00 is one card too many"), "%s",
              err.text);
}

Test(remotes, a_wrong_file_is_named)
{
    static struct remotes r;
    struct error err = {0};
    cr_assert_lt(load("{\"cards\":[{}]}", &r, &err), 0);
    cr_assert(strstr(err.text, "cards.json"), "%s", err.text);
}

Test(remotes, the_other_machine_is_called_host)
{
    static struct remotes r;
    const char *const keys[] = {"/a", "/b", "/c"};
    remotes_host("tcp://10.0.0.1:7443", keys, &r);
    cr_assert_eq(r.n, 1);
    cr_assert_str_eq(r.list[0].name, "host");
    cr_assert_str_eq(r.list[0].cert, "/b");
    cr_assert_not(r.list[0].plaintext);
    remotes_host("tcp://10.0.0.1:7443", NULL, &r);
    cr_assert(r.list[0].plaintext);
}
