#include "model/pod/rights.h"

#include <errno.h>
#include <string.h>

#include "lib/base/mem.h"

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
                             "of these",
                             (int)(size < 48 ? size : 48), text);
        r.capabilities |= one;
        text += size + (text[size] == ',');
    }
    *ret_rights = r;
    return 0;
}

static int refuse(struct error *err, const char *path, const char *word)
{
    return error_set(err, EPERM,
                     "%s may not be asked for on this node: its operator "
                     "would have to start the advertiser with --allow %s",
                     path, word);
}

static int check_container(const struct rights *r,
                           const struct podspec_container *c, const char *path,
                           struct error *err)
{
    uint64_t allowed = r->privileged ? UINT64_MAX : r->capabilities;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        allowed |= capability(usual[i], strlen(usual[i]));
    if (c->privileged && !r->privileged) {
        cleanup_free char *at =
            xasprintf("%s.securityContext.privileged: is true, which", path);
        return refuse(err, at, "privileged");
    }
    for (size_t i = 0; c->cap_add && c->cap_add[i]; i++) {
        const char *name = c->cap_add[i];
        uint64_t asked = capability(name, strlen(name));
        if (asked ? (allowed & asked) == asked : allowed == UINT64_MAX)
            continue;
        cleanup_free char *at =
            xasprintf("%s.securityContext.capabilities.add[%zu]: is \"%s\", "
                      "which",
                      path, i, name);
        return refuse(err, at, asked ? name : "ALL");
    }
    return 0;
}

static int check_containers(const struct rights *r,
                            const struct podspec_container *list, size_t n,
                            const char *member, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        cleanup_free char *path = xasprintf("spec.%s[%zu]", member, i);
        int e = check_container(r, &list[i], path, err);
        if (e < 0)
            return e;
    }
    return 0;
}

int rights_check(const struct rights *rights, const struct podspec *spec,
                 struct error *err)
{
    if (spec->host_pid && !rights->host_pid)
        return refuse(err, "spec.hostPID: is true, which", "host-pid");
    if (spec->host_ipc && !rights->host_ipc)
        return refuse(err, "spec.hostIPC: is true, which", "host-ipc");
    int e = check_containers(rights, spec->init, spec->n_init, "initContainers",
                             err);
    return e < 0 ? e
                 : check_containers(rights, spec->containers,
                                    spec->n_containers, "containers", err);
}
