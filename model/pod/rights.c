#include "model/pod/rights.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"
#include "model/topo/card_rights.h"

#define BIT(n) (UINT64_C(1) << (n))

/* By their numbers: linux/capability.h. */
static const char *const capabilities[] = {
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
};

/* What containerd gives every container: defaultUnixCaps() of its
 * oci/spec.go. */
static const char *const usual[] = {
    "CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",      "MKNOD",
    "NET_RAW", "SETGID",       "SETUID",           "SETFCAP",     "SETPCAP",
    "KILL",    "SYS_CHROOT",   "NET_BIND_SERVICE", "AUDIT_WRITE",
};

/* 0 when there is none of that name. */
static uint64_t capability(const char *name, size_t size)
{
    if (size == 3 && memcmp(name, "ALL", 3) == 0)
        return UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        if (strlen(capabilities[i]) == size &&
            memcmp(capabilities[i], name, size) == 0)
            return BIT(i);
    return 0;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(text, word, size) == 0;
}

int rights_parse(const char *text, struct rights *ret_rights, struct error *err)
{
    struct rights r = {0};
    while (text && *text) {
        size_t size = strcspn(text, ",");
        uint64_t one = capability(text, size);
        if (is_word(text, size, "privileged"))
            r.privileged = true;
        else if (is_word(text, size, "host-pid"))
            r.host_pid = true;
        else if (is_word(text, size, "host-ipc"))
            r.host_ipc = true;
        else if (!one)
            return error_set(err, EINVAL,
                             "has \"%.*s\", must be privileged, host-pid, "
                             "host-ipc, a capability as in NET_ADMIN, or ALL "
                             "for every capability",
                             (int)(size < 48 ? size : 48), text);
        r.capabilities |= one;
        text += size + (text[size] == ',');
    }
    *ret_rights = r;
    return 0;
}

#define KNOWN (BIT(ARRAY_LEN(capabilities)) - 1)

uint64_t rights_bits(const struct rights *rights)
{
    uint64_t all = rights->privileged ? UINT64_MAX : rights->capabilities;
    return (all & KNOWN) |
           (all == UINT64_MAX ? CARD_RIGHTS_ANY_CAPABILITY : 0) |
           (rights->privileged ? CARD_RIGHTS_PRIVILEGED : 0) |
           (rights->host_pid ? CARD_RIGHTS_HOST_PID : 0) |
           (rights->host_ipc ? CARD_RIGHTS_HOST_IPC : 0);
}

uint64_t rights_capability_bits(const char *name, size_t size)
{
    uint64_t bit = capability(name, size);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        if (is_word(name, size, usual[i]))
            return 0;
    return bit && bit != UINT64_MAX ? bit : CARD_RIGHTS_ANY_CAPABILITY;
}

void rights_bits_add(uint64_t bits, struct str *out)
{
    static const struct {
        uint64_t bit;
        const char *word;
    } others[] = {{CARD_RIGHTS_ANY_CAPABILITY, "ALL"},
                  {CARD_RIGHTS_PRIVILEGED, "privileged"},
                  {CARD_RIGHTS_HOST_PID, "host-pid"},
                  {CARD_RIGHTS_HOST_IPC, "host-ipc"}};
    const char *between = "";
    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        if (bits & BIT(i)) {
            str_addf(out, "%s%s", between, capabilities[i]);
            between = ",";
        }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (bits & others[i].bit) {
            str_addf(out, "%s%s", between, others[i].word);
            between = ",";
        }
}

void rights_add(struct rights *rights, const char *name)
{
    rights->capabilities |= capability(name, strlen(name));
}

static int refuse(struct error *err, const char *path, const char *word)
{
    return error_set(err, EPERM,
                     "%s may not be asked for on this node: its operator "
                     "would have to give --allow %s",
                     path, word);
}

int rights_check_asked(const struct rights *rights,
                       const struct rights_asked *asked, const char *path,
                       struct error *err)
{
    uint64_t allowed = rights->privileged ? UINT64_MAX : rights->capabilities;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        allowed |= capability(usual[i], strlen(usual[i]));
    if (asked->host_pid && !rights->host_pid)
        return refuse(err, "spec.hostPID: is true, which", "host-pid");
    if (asked->host_ipc && !rights->host_ipc)
        return refuse(err, "spec.hostIPC: is true, which", "host-ipc");
    if (asked->privileged && !rights->privileged) {
        cleanup_free char *at =
            xasprintf("%s.securityContext.privileged: is true, which", path);
        return refuse(err, at, "privileged");
    }
    for (size_t i = 0; i < asked->n_cap_add; i++) {
        const char *name = asked->cap_add[i];
        uint64_t bits = capability(name, strlen(name));
        if (bits ? (allowed & bits) == bits : allowed == UINT64_MAX)
            continue;
        cleanup_free char *at =
            xasprintf("%s.securityContext.capabilities.add[%zu]: is \"%s\", "
                      "which",
                      path, i, name);
        return refuse(err, at, bits ? name : "ALL");
    }
    return 0;
}

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static int check_containers(const struct rights *r,
                            const struct podspec_container *list, size_t n,
                            const char *member, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        cleanup_free char *path = xasprintf("spec.%s[%zu]", member, i);
        const struct rights_asked asked = {
            .privileged = list[i].privileged,
            .cap_add = (const char *const *)list[i].cap_add,
            .n_cap_add = count(list[i].cap_add),
        };
        int e = rights_check_asked(r, &asked, path, err);
        if (e < 0)
            return e;
    }
    return 0;
}

int rights_check(const struct rights *rights, const struct podspec *spec,
                 struct error *err)
{
    const struct rights_asked pod = {
        .host_pid = spec->host_pid,
        .host_ipc = spec->host_ipc,
    };
    int e = rights_check_asked(rights, &pod, "spec", err);
    if (e == 0)
        e = check_containers(rights, spec->init, spec->n_init, "initContainers",
                             err);
    return e < 0 ? e
                 : check_containers(rights, spec->containers,
                                    spec->n_containers, "containers", err);
}
