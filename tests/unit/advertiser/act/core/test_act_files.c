/* What of a pod's ConfigMaps, Secrets and volumes becomes which file, variable
 * and mount. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "advertiser/act/card/connection.h"
#include "advertiser/act/core/config.h"
#include "advertiser/act/core/deliver.h"
#include "advertiser/act/core/pod_table.h"
#include "advertiser/act/core/state.h"
#include "advertiser/act/pod/files.h"
#include "lib/base/base64.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"

#define CONTENTS                                                              \
    "[{\"kind\":\"ConfigMap\",\"name\":\"m\",\"data\":{\"a\":\"b25l\",\"b\":" \
    "\"\"}},"                                                                 \
    "{\"kind\":\"Secret\",\"name\":\"m\",\"data\":{\"a\":\"AAEC\"}},"         \
    "{\"kind\":\"Secret\",\"name\":\"empty\"}]"

static struct podspec *parse(const char *volumes, const char *container,
                             const struct podspec_source *source, int expected)
{
    struct podspec *spec = NULL;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
        "\"namespace\":\"ns\",\"uid\":\"u-1\"},\"spec\":{\"volumes\":[%s],"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"%s}]}}",
        volumes, container);
    cr_assert_eq(podspec_parse(json, strlen(json), "n", source, &spec, &err),
                 expected, "%s", err.text);
    return spec;
}

/* --- contents ------------------------------------------------------------- */

Test(act_files, contents_become_files_and_variables)
{
    struct files f;
    struct error err = {0};
    cr_assert_eq(files_init(&f, CONTENTS, strlen(CONTENTS), &err), 0, "%s",
                 err.text);
    const struct podspec_source source = files_source(&f);
    cleanup_with(podspec) struct podspec *spec = parse(
        "{\"name\":\"map\",\"configMap\":{\"name\":\"m\"}},"
        "{\"name\":\"sec\",\"secret\":{\"secretName\":\"m\",\"defaultMode\":"
        "256}},"
        "{\"name\":\"none\",\"secret\":{\"secretName\":\"empty\"}},"
        "{\"name\":\"opt\",\"configMap\":{\"name\":\"x\",\"optional\":true}}",
        ",\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{"
        "\"name\":\"m\",\"key\":\"a\"}}}]",
        &source, 0);
    cr_assert_eq(spec->n_volumes, 4);
    const struct podspec_volume *map = &spec->volumes[0];
    cr_assert_eq(map->n_files, 2);
    cr_expect_str_eq(map->files[0].path, "a");
    cr_expect(map->files[0].size == 3 &&
              memcmp(map->files[0].data, "one", 3) == 0);
    cr_expect_eq(map->files[0].mode, 0644);
    cr_expect_eq(map->files[1].size, 0);
    const struct podspec_volume *secret = &spec->volumes[1];
    cr_assert_eq(secret->n_files, 1, "the Secret of that name, not the map");
    cr_expect(secret->files[0].size == 3 &&
              memcmp(secret->files[0].data, "\0\1\2", 3) == 0);
    cr_expect_eq(secret->files[0].mode, 0400);
    cr_expect_eq(spec->volumes[2].n_files, 0);
    cr_expect_eq(spec->volumes[3].n_files, 0);
    cr_assert_eq(spec->containers[0].n_env, 1);
    cr_expect_str_eq(spec->containers[0].env[0].value, "one");
    files_fini(&f);
    files_fini(&f); /* twice does no harm */
}

Test(act_files, what_did_not_come_is_not_there)
{
    struct files f;
    struct error err = {0};
    cr_assert_eq(files_init(&f, "", 0, &err), 0);
    const struct podspec_source source = files_source(&f);
    cr_expect_null(parse("{\"name\":\"v\",\"configMap\":{\"name\":\"m\"}}", "",
                         &source, -ENOENT));
    files_fini(&f);
    cr_assert_eq(files_init(&f, CONTENTS, strlen(CONTENTS), &err), 0);
    cr_expect_null(parse("{\"name\":\"v\",\"configMap\":{\"name\":\"empty\"}}",
                         "", &source, -ENOENT),
                   "a Secret is no ConfigMap");
    cr_expect_null(parse("{\"name\":\"v\",\"configMap\":{\"name\":\"m\","
                         "\"items\":[{\"key\":\"z\",\"path\":\"z\"}]}}",
                         "", &source, -ENOENT));
    files_fini(&f);
}

Test(act_files, contents_that_are_none)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{}", "files: not a list"},
        {"[1]", "files[0].kind"},
        {"[{\"kind\":\"Pod\",\"name\":\"m\"}]", "files[0].kind"},
        {"[{\"kind\":\"Secret\"}]", "files[0].name"},
        {"[{\"kind\":\"Secret\",\"name\":\"s\",\"data\":{\"k\":1}}]",
         "files[0].data.k"},
        {"[{\"kind\":\"Secret\",\"name\":\"s\"},{\"kind\":\"Secret\",\"name\":"
         "\"t\",\"data\":{\"k\":\"a\"}}]",
         "files[1].data.k: not base64"},
        {"[", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct files f;
        struct error err = {0};
        cr_expect_eq(files_init(&f, bad[i].text, strlen(bad[i].text), &err),
                     -EINVAL, "%s", bad[i].text);
        cr_expect(strstr(err.text, bad[i].says), "%s", err.text);
        cr_expect_null(f.json);
        files_fini(&f);
    }
}

/* The most there may be is taken, one byte more is not. */
Test(act_files, contents_have_a_limit)
{
    for (size_t more = 0; more < 2; more++) {
        cleanup_str struct str text = STR_INIT(4 << 20);
        cleanup_free char *data = xcalloc(PODSPEC_FILES_SIZE_MAX + more, 1);
        struct files f;
        struct error err = {0};
        str_add(&text,
                "[{\"kind\":\"Secret\",\"name\":\"s\",\"data\":{\"k\":\"");
        base64_add(&text, data, PODSPEC_FILES_SIZE_MAX + more);
        str_add(&text, "\"}}]");
        cr_expect_eq(files_init(&f, str_text(&text), text.size, &err),
                     more ? -EINVAL : 0, "%zu: %s", more, err.text);
        files_fini(&f);
    }
}

/* --- mounts --------------------------------------------------------------- */

#define VOLUMES                                          \
    "{\"name\":\"map\",\"configMap\":{\"name\":\"m\"}}," \
    "{\"name\":\"disk\",\"emptyDir\":{}},"               \
    "{\"name\":\"mem\",\"emptyDir\":{\"medium\":\"Memory\"}}"
#define MOUNTS                                                       \
    ",\"volumeMounts\":[{\"name\":\"map\",\"mountPath\":\"/map\"},"  \
    "{\"name\":\"map\",\"mountPath\":\"/one\",\"subPath\":\"a\"},"   \
    "{\"name\":\"disk\",\"mountPath\":\"/disk\"},"                   \
    "{\"name\":\"disk\",\"mountPath\":\"/seen\",\"readOnly\":true}," \
    "{\"name\":\"mem\",\"mountPath\":\"/dev/shm\"}]"

static struct actuator act = {
    .cluster = (char *)"c",
    .node = (char *)"n",
    .dirs = {.card = "/d"},
    .helper_image = (char *)"h",
};

/* The mounts of the only container of a pod there, as text. */
static void mounts(const char *place, const char *owner, struct podspec *spec,
                   struct str *ret_text)
{
    const struct act_pod pod = {.namespace = "ns",
                                .name = "p",
                                .uid = "u-1",
                                .owner = owner,
                                .place = place,
                                .sriov_vfs = -1};
    cleanup_with(intent) struct intent *i = intent_create(&pod);
    struct pod_entry e = {.intent = i, .spec = spec};
    struct config_sandbox sandbox;
    struct cri_container_config config;
    config_sandbox(&act, &e, 1, &sandbox);
    config_container(&act, &e, 0, 1, &sandbox, &config);
    for (size_t k = 0; k < config.n_mounts; k++)
        str_addf(ret_text, "%s=%s%s\n", config.mounts[k].container_path,
                 config.mounts[k].host_path,
                 config.mounts[k].read_only ? " ro" : "");
    config_sandbox_fini(&sandbox);
}

Test(act_files, volumes_become_mounts)
{
    static const char wanted[] = "/map=/d/pods/u-1/volumes/map ro\n"
                                 "/one=/d/pods/u-1/volumes/map/a ro\n"
                                 "/disk=/d/pods/u-1/volumes/disk\n"
                                 "/seen=/d/pods/u-1/volumes/disk ro\n"
                                 "/dev/shm=/dev/shm/biga/u-1/mem\n";
    cleanup_with(podspec) struct podspec *spec = parse(VOLUMES, MOUNTS, NULL,
                                                       0);
    cleanup_str struct str host = STR_INIT(4096), card = STR_INIT(4096);
    cleanup_str struct str both = STR_INIT(4096);
    mounts("host", "extender", spec, &host);
    cr_expect_str_eq(str_text(&host), wanted);
    mounts("card-0000-17-00", "extender", spec, &card);
    str_addf(&both, "%s/var/log/biga=/d/pods/u-1/logs ro\n", wanted);
    cr_expect_str_eq(str_text(&card), str_text(&both),
                     "the runtime makes its folder of logs");
}

Test(act_files, the_helper_has_all_of_a_card)
{
    cleanup_with(podspec) struct podspec *spec = parse("", "", NULL, 0);
    cleanup_str struct str text = STR_INIT(4096);
    mounts("card-0000-17-00", ACT_OWNER_SELF, spec, &text);
    cr_expect_str_eq(str_text(&text), "/d=/d\n/memory=/dev/shm/biga\n"
                                      "/card-dev=/dev ro\n");
}

Test(act_files, volumes_need_the_helper)
{
    cleanup_with(podspec) struct podspec *none = parse("", "", NULL, 0);
    cleanup_with(podspec) struct podspec *some = parse(VOLUMES, "", NULL, 0);
    cleanup_with(podspec) struct podspec *empty =
        parse("{\"name\":\"e\",\"emptyDir\":{}}", "", NULL, 0);
    cr_expect_not(pod_entry_has_volumes(&(struct pod_entry){.spec = NULL}));
    cr_expect_not(pod_entry_has_volumes(&(struct pod_entry){.spec = none}));
    cr_expect(pod_entry_has_volumes(&(struct pod_entry){.spec = some}));
    cr_expect(pod_entry_has_volumes(&(struct pod_entry){.spec = empty}),
              "a runtime would make it root's alone to write to");
}

/* --- the end, where no helper runs ---------------------------------------- */

Test(act_files, what_nobody_can_remove_is_told)
{
    static const struct {
        const char *helper;
        uint32_t attempt;
        bool told;
    } cases[] = {
        {"h", 0, false}, /* it never began, as the helper did not */
        {"h", 1, true},
        {NULL, 1, false}, /* no volumes, no logs */
    };
    const struct act_pod pod = {.namespace = "ns",
                                .name = "p",
                                .uid = "u-1",
                                .place = "card-0000-17-00",
                                .sriov_vfs = -1};
    cleanup_with(podspec) struct podspec *spec = parse(VOLUMES, "", NULL, 0);
    const struct connection c = {.place = {.name = "card-0000-17-00"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct actuator a = {.dirs = {.card = "/d"},
                             .helper_image = (char *)cases[i].helper};
        struct place at = {.a = &a};
        struct intent *intent = intent_create(&pod);
        struct pod_entry e = {.intent = intent, .spec = spec};
        struct machine_result r = {0};
        struct error err = {0};
        intent->attempt = cases[i].attempt;
        deliver_end(&at, &c, &e, &r, &err);
        cr_expect_eq(r.e < 0, cases[i].told, "case %zu: %s", i, err.text);
        if (cases[i].told) {
            cr_expect_not(r.permanent, "it is waited for");
            cr_expect_str_eq(r.reason, "FilesLeft");
            cr_expect(strstr(err.text, "/d/pods/u-1"), "%s", err.text);
            e.await_ms = clock_ms() - 3600000;
            deliver_end(&at, &c, &e, &r, &err);
            cr_expect(r.permanent, "it was waited for");
        }
        intent_destroy(intent);
    }
}
