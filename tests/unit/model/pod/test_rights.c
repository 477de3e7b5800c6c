/* What a pod may ask for, and how it is refused. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/pod/rights.h"
#include "model/topo/card_rights.h"

static const struct {
    const char *spec; /* members of the spec */
    const char *security;
    const char *path;  /* what is refused without --allow; NULL nothing */
    const char *needs; /* the words that allow it */
} pods[] = {
    {"", "", NULL, NULL},
    {"\"hostNetwork\":true,", "", NULL, NULL},
    {"",
     "\"capabilities\":{\"add\":[\"NET_RAW\",\"CAP_KILL\"],"
     "\"drop\":[\"ALL\"]}",
     NULL, NULL},
    {"\"hostPID\":true,", "", "spec.hostPID: is true", "host-pid"},
    {"\"hostIPC\":true,", "", "spec.hostIPC: is true", "host-ipc"},
    {"", "\"privileged\":true",
     "spec.containers[1].securityContext.privileged: is true", "privileged"},
    {"", "\"capabilities\":{\"add\":[\"KILL\",\"NET_ADMIN\"]}",
     "spec.containers[1].securityContext.capabilities.add[1]: is "
     "\"NET_ADMIN\"",
     "NET_ADMIN"},
    {"", "\"capabilities\":{\"add\":[\"CAP_SYS_ADMIN\"]}",
     "add[0]: is \"SYS_ADMIN\"", "SYS_ADMIN"},
    {"", "\"capabilities\":{\"add\":[\"ALL\"]}", "add[0]: is \"ALL\"", "ALL"},
    {"", "\"capabilities\":{\"add\":[\"NEW_ONE\"]}", "is \"NEW_ONE\"", "ALL"},
    {"\"initContainers\":[{\"name\":\"i\",\"image\":\"i\",\"securityContext\":"
     "{\"privileged\":true}}],",
     "", "spec.initContainers[0].securityContext.privileged", "privileged"},
};

static struct podspec *parse(size_t n)
{
    struct podspec *spec = NULL;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
        "\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":{%s\"containers\":["
        "{\"name\":\"a\",\"image\":\"i\"},{\"name\":\"b\",\"image\":\"i\","
        "\"securityContext\":{%s}}]}}",
        pods[n].spec, pods[n].security);
    cr_assert_eq(podspec_parse(json, strlen(json), "h", NULL, &spec, &err), 0,
                 "%zu: %s", n, err.text);
    return spec;
}

static struct rights granted(const char *text)
{
    struct rights r;
    struct error err = {0};
    cr_assert_eq(rights_parse(text, &r, &err), 0, "%s", err.text);
    return r;
}

Test(rights, what_is_beyond_the_usual_is_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        cleanup_with(podspec) struct podspec *spec = parse(i);
        struct rights none = granted(NULL);
        struct error err = {0};
        int e = rights_check(&none, spec, &err);
        if (!pods[i].path) {
            cr_expect_eq(e, 0, "%zu: %s", i, err.text);
            continue;
        }
        cleanup_free char *setting = xasprintf("--allow %s", pods[i].needs);
        cr_expect_eq(e, -EPERM, "%zu", i);
        cr_expect(strstr(err.text, pods[i].path), "%zu: %s", i, err.text);
        cr_expect(strstr(err.text, setting), "%zu: %s", i, err.text);
    }
}

Test(rights, what_is_granted_is_taken_alone)
{
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        for (size_t k = 0; k < ARRAY_LEN(pods); k++) {
            cleanup_with(podspec) struct podspec *spec = parse(i);
            struct rights r = granted(pods[k].needs);
            const char *asked = pods[i].needs, *given = pods[k].needs;
            bool capable = asked &&
                           strspn(asked, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
            bool may = !asked || (given && strcmp(asked, given) == 0) ||
                       (given && capable &&
                        (strcmp(given, "ALL") == 0 ||
                         strcmp(given, "privileged") == 0));
            cr_expect_eq(rights_check(&r, spec, NULL), may ? 0 : -EPERM,
                         "%s of %s", asked, given);
        }
}

/* As a kubelet asks a runtime, which has no Pod. */
Test(rights, one_container_alone)
{
    static const char *const caps[] = {"KILL", "NET_ADMIN"};
    const struct rights none = granted(NULL), admin = granted("NET_ADMIN"),
                        pid = granted("host-pid");
    const struct rights_asked adds = {.cap_add = caps, .n_cap_add = 2},
                              sees = {.host_pid = true};
    struct error err = {0};
    cr_expect_eq(rights_check_asked(&none, &adds, "container \"c\"", &err),
                 -EPERM);
    cr_expect(strstr(err.text, "container \"c\".securityContext.capabilities."
                               "add[1]: is \"NET_ADMIN\""),
              "%s", err.text);
    cr_expect_eq(rights_check_asked(&admin, &adds, "c", &err), 0);
    cr_expect_eq(rights_check_asked(&admin, &sees, "c", &err), -EPERM);
    cr_expect(strstr(err.text, "--allow host-pid"), "%s", err.text);
    cr_expect_eq(rights_check_asked(&pid, &sees, "c", &err), 0);
}

Test(rights, words)
{
    static const char *const wrong[] = {
        "all",      "Privileged", "NET_ADMIN,,KILL",
        "CAP_KILL", "host-pid,x", "privileged KILL",
        "KIL",      ","};
    struct rights r = {.host_pid = true};
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        cr_expect_eq(rights_parse(wrong[i], &r, &err), -EINVAL, "%s", wrong[i]);
    cr_expect(r.host_pid, "written although it failed");
    r = granted("");
    cr_expect(!r.privileged && !r.host_pid && !r.host_ipc && !r.capabilities);
    r = granted("privileged,host-ipc,CHOWN,CHECKPOINT_RESTORE");
    cr_expect(r.privileged && !r.host_pid && r.host_ipc);
    cr_expect_eq(r.capabilities, UINT64_C(1) | UINT64_C(1) << 40);
}

/* Bits are what is asked of and told about cards. */
Test(rights, as_bits)
{
    static const struct {
        const char *text;
        uint64_t bits; /* but capabilities */
    } cases[] = {
        {"host-pid", CARD_RIGHTS_HOST_PID},
        {"host-ipc,IPC_LOCK", CARD_RIGHTS_HOST_IPC},
        {"ALL", CARD_RIGHTS_ANY_CAPABILITY},
        {"privileged", CARD_RIGHTS_ANY_CAPABILITY | CARD_RIGHTS_PRIVILEGED}};
    const uint64_t known = (UINT64_C(1) << 41) - 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct rights r = granted(cases[i].text);
        cr_expect_eq(rights_bits(&r) & ~known, cases[i].bits, "%s",
                     cases[i].text);
        cr_expect_eq(rights_bits(&r) & known, i == 0   ? 0
                                              : i == 1 ? CARD_RIGHTS_IPC_LOCK
                                                       : known);
    }
    cr_expect_eq(rights_capability_bits("IPC_LOCK", 8), CARD_RIGHTS_IPC_LOCK);
    cr_expect_eq(rights_capability_bits("CHOWN", 5), 0u, "all have it");
    cr_expect_eq(rights_capability_bits("ALL", 3), CARD_RIGHTS_ANY_CAPABILITY);
    cr_expect_eq(rights_capability_bits("NEW_ONE", 7),
                 CARD_RIGHTS_ANY_CAPABILITY);
    cleanup_str struct str out = STR_INIT(256);
    rights_bits_add(CARD_RIGHTS_IPC_LOCK | CARD_RIGHTS_PRIVILEGED |
                        CARD_RIGHTS_ANY_CAPABILITY,
                    &out);
    cr_expect_str_eq(str_text(&out), "IPC_LOCK,ALL,privileged");
}
