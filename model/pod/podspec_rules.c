/* Which members of a Pod are run, which only matter to Kubernetes, and which
 * are refused; schema/pod.md has the same list. */
#include <string.h>

#include "lib/base/utf8.h"
#include "model/pod/podspec_private.h"

#define READ(name)              \
    {                           \
        name, MEMBER_READ, NULL \
    }
#define SKIP(name)              \
    {                           \
        name, MEMBER_SKIP, NULL \
    }
#define REFUSE(name, why)        \
    {                            \
        name, MEMBER_REFUSE, why \
    }
#define RULES(list)           \
    {                         \
        list, ARRAY_LEN(list) \
    }

#define WHY_NETWORK \
    "pods have the network and the names of their card (or host)"
#define WHY_PROBE                                                         \
    "pods on cards are not probed, ready means that all containers run: " \
    "take it out"
#define WHY_HOOK "there are no lifecycle hooks: do it in the container"
#define WHY_VOLUME                                                        \
    "only volumes of kind configMap, secret, projected, downwardAPI and " \
    "emptyDir reach a card"
#define WHY_PROFILE "no such profile can be asked of a card's runtime"

static const struct member_rule pod_list[] = {
    READ("apiVersion"), READ("kind"),   READ("metadata"),
    READ("spec"),       SKIP("status"),
};
const struct member_rules pod_rules = RULES(pod_list);

static const struct member_rule pod_spec_list[] = {
    READ("containers"),
    READ("initContainers"),
    READ("volumes"),
    READ("restartPolicy"),
    READ("terminationGracePeriodSeconds"),
    READ("hostPID"),
    READ("hostIPC"),
    READ("securityContext"),
    READ("hostUsers"),
    READ("runtimeClassName"),
    READ("dnsPolicy"),
    READ("os"),
    SKIP("affinity"),
    SKIP("automountServiceAccountToken"),
    SKIP("enableServiceLinks"),
    SKIP("hostNetwork"),
    SKIP("hostname"),
    SKIP("hostnameOverride"),
    SKIP("nodeName"),
    SKIP("nodeSelector"),
    SKIP("overhead"),
    SKIP("preemptionPolicy"),
    SKIP("priority"),
    SKIP("priorityClassName"),
    SKIP("readinessGates"),
    SKIP("schedulerName"),
    SKIP("schedulingGates"),
    SKIP("schedulingGroup"),
    SKIP("serviceAccount"),
    SKIP("serviceAccountName"),
    SKIP("setHostnameAsFQDN"),
    SKIP("subdomain"),
    SKIP("tolerations"),
    SKIP("topologySpreadConstraints"),
    SKIP("workloadRef"),
    REFUSE("activeDeadlineSeconds", "nobody ends pods after a time"),
    REFUSE("dnsConfig", WHY_NETWORK),
    REFUSE("ephemeralContainers",
           "a pod's containers are those it began with: use biga exec"),
    REFUSE("hostAliases", WHY_NETWORK),
    REFUSE("imagePullSecrets",
           "images are pulled with the credentials that the card's containerd "
           "has, or are put there beforehand"),
    REFUSE("resourceClaims", "devices are given by resource biga.dev/card"),
    REFUSE("resources", "say it of the containers"),
    REFUSE("shareProcessNamespace", "each container sees its own processes"),
};
const struct member_rules pod_spec_rules = RULES(pod_spec_list);

static const struct member_rule pod_security_list[] = {
    READ("runAsUser"),
    READ("runAsGroup"),
    READ("runAsNonRoot"),
    READ("seccompProfile"),
    READ("appArmorProfile"),
    SKIP("fsGroupChangePolicy"),
    SKIP("seLinuxChangePolicy"),
    SKIP("supplementalGroupsPolicy"),
    REFUSE("fsGroup", "volumes on cards belong to root"),
    REFUSE("seLinuxOptions", WHY_PROFILE),
    REFUSE("supplementalGroups", "only runAsGroup is given"),
    REFUSE("sysctls", "set them on the card"),
    REFUSE("windowsOptions", "cards run Linux"),
};
const struct member_rules pod_security_rules = RULES(pod_security_list);

static const struct member_rule container_list[] = {
    READ("name"),
    READ("image"),
    READ("imagePullPolicy"),
    READ("command"),
    READ("args"),
    READ("env"),
    READ("envFrom"),
    READ("workingDir"),
    READ("volumeMounts"),
    READ("resources"),
    READ("securityContext"),
    READ("ports"),
    SKIP("resizePolicy"),
    SKIP("terminationMessagePath"),
    SKIP("terminationMessagePolicy"),
    REFUSE("lifecycle", WHY_HOOK),
    REFUSE("livenessProbe", WHY_PROBE),
    REFUSE("readinessProbe", WHY_PROBE),
    REFUSE("restartPolicy", "only the pod has one: sidecars are not run"),
    REFUSE("restartPolicyRules", "only the pod has a restartPolicy"),
    REFUSE("startupProbe", WHY_PROBE),
    REFUSE("stdin", "containers have no standard input"),
    REFUSE("stdinOnce", "containers have no standard input"),
    REFUSE("tty", "containers have no terminal"),
    REFUSE("volumeDevices", WHY_VOLUME),
};
const struct member_rules container_rules = RULES(container_list);

static const struct member_rule security_list[] = {
    READ("runAsUser"),
    READ("runAsGroup"),
    READ("runAsNonRoot"),
    READ("readOnlyRootFilesystem"),
    READ("allowPrivilegeEscalation"),
    READ("privileged"),
    READ("capabilities"),
    READ("seccompProfile"),
    READ("appArmorProfile"),
    READ("procMount"),
    REFUSE("seLinuxOptions", WHY_PROFILE),
    REFUSE("windowsOptions", "cards run Linux"),
};
const struct member_rules security_rules = RULES(security_list);

static const struct member_rule port_list[] = {
    READ("containerPort"),
    READ("hostPort"),
    SKIP("name"),
    SKIP("protocol"),
    REFUSE("hostIP", WHY_NETWORK),
};
const struct member_rules port_rules = RULES(port_list);

static const struct member_rule mount_list[] = {
    READ("name"),
    READ("mountPath"),
    READ("subPath"),
    READ("readOnly"),
    READ("mountPropagation"),
    READ("recursiveReadOnly"),
    REFUSE("subPathExpr", "use subPath"),
};
const struct member_rules mount_rules = RULES(mount_list);

static const struct member_rule resource_list[] = {
    READ("limits"),
    READ("requests"),
    REFUSE("claims", "devices are given by resource biga.dev/card"),
};
const struct member_rules resource_rules = RULES(resource_list);

static const struct member_rule env_list[] = {
    READ("name"),
    READ("value"),
    READ("valueFrom"),
};
const struct member_rules env_rules = RULES(env_list);

#define VOLUME(name) REFUSE(name, WHY_VOLUME)
static const struct member_rule volume_list[] = {
    READ("name"),
    READ("configMap"),
    READ("secret"),
    READ("projected"),
    READ("downwardAPI"),
    READ("emptyDir"),
    REFUSE("hostPath",
           "cards have no host paths: give files by a ConfigMap or Secret, and "
           "room by an emptyDir"),
    VOLUME("awsElasticBlockStore"),
    VOLUME("azureDisk"),
    VOLUME("azureFile"),
    VOLUME("cephfs"),
    VOLUME("cinder"),
    VOLUME("csi"),
    VOLUME("ephemeral"),
    VOLUME("fc"),
    VOLUME("flexVolume"),
    VOLUME("flocker"),
    VOLUME("gcePersistentDisk"),
    VOLUME("gitRepo"),
    VOLUME("glusterfs"),
    VOLUME("image"),
    VOLUME("iscsi"),
    VOLUME("nfs"),
    VOLUME("persistentVolumeClaim"),
    VOLUME("photonPersistentDisk"),
    VOLUME("portworxVolume"),
    VOLUME("quobyte"),
    VOLUME("rbd"),
    VOLUME("scaleIO"),
    VOLUME("storageos"),
    VOLUME("vsphereVolume"),
};
const struct member_rules volume_rules = RULES(volume_list);

#define WHY_TOKEN "nobody issues it to a card: give it by a Secret"
static const struct member_rule projection_list[] = {
    READ("configMap"),
    READ("secret"),
    READ("downwardAPI"),
    REFUSE("clusterTrustBundle", WHY_TOKEN),
    REFUSE("podCertificate", WHY_TOKEN),
    REFUSE("serviceAccountToken", WHY_TOKEN),
};
const struct member_rules projection_rules = RULES(projection_list);

/* --- members --------------------------------------------------------------- */

enum { SHOWN_MAX = 64 }; /* bytes of a value that an error repeats */

int member_refuse(struct reader *r, const char *name, const char *why)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(r->json, name);
    cleanup_free char *text = m ? cJSON_PrintUnformatted(m) : NULL;
    const char *value = text ? text : "absent";
    size_t size = strlen(value), shown = size < SHOWN_MAX ? size : SHOWN_MAX;
    while (shown < size && shown > 0 && utf8_inside(value[shown]))
        shown--;
    return reader_fail(r, name, "is %.*s%s: %s", (int)shown, value,
                       shown < size ? "…" : "", why);
}

static bool says_something(const cJSON *m)
{
    if (cJSON_IsNull(m) || cJSON_IsFalse(m))
        return false;
    if (cJSON_IsString(m))
        return m->valuestring[0] != '\0';
    if (cJSON_IsArray(m) || cJSON_IsObject(m))
        return m->child != NULL;
    return true;
}

static const struct member_rule *find_rule(const struct member_rules *rules,
                                           const char *name)
{
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->list[i].name, name) == 0)
            return &rules->list[i];
    return NULL;
}

bool members_begin(struct reader *r, const cJSON *json, const char *path,
                   const struct member_rules *rules, struct error *err)
{
    const cJSON *m;
    reader_init(r, json, path, err);
    if (r->failed)
        return false;
    cJSON_ArrayForEach(m, json)
    {
        const struct member_rule *rule = find_rule(rules, m->string);
        if (!rule)
            (void)member_refuse(r, m->string,
                                "no such member is known; see schema/pod.md");
        else if (rule->action == MEMBER_REFUSE && says_something(m))
            (void)member_refuse(r, m->string, rule->why);
        if (r->failed)
            return false;
    }
    return true;
}

int member_choice(struct reader *r, const char *name, const char *const *list,
                  size_t n, int otherwise)
{
    cleanup_str struct str allowed = STR_INIT(256);
    const char *text = reader_opt_string(r, name, 64);
    if (r->failed)
        return -1;
    if (!text || !*text)
        return otherwise;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, list[i]) == 0)
            return (int)i;
        str_addf(&allowed, "%s\"%s\"", i ? ", " : "must be one of ", list[i]);
    }
    (void)member_refuse(r, name, str_text(&allowed));
    return -1;
}

/* --- names and paths -------------------------------------------------------- */

static size_t label_length(const char *text)
{
    static const char ends[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (n == 0 || !strchr(ends, text[0]) || !strchr(ends, text[n - 1]))
        return 0;
    return n;
}

bool is_dns_label(const char *text, size_t max)
{
    size_t n = label_length(text);
    return n > 0 && text[n] == '\0' && n <= max;
}

bool is_dns_name(const char *text, size_t max)
{
    size_t size = strlen(text), n;
    for (;; text += n + 1) {
        n = label_length(text);
        if (n == 0 || (text[n] != '.' && text[n] != '\0'))
            return false;
        if (text[n] == '\0')
            return size <= max;
    }
}

bool is_inner_path(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n == 0 || (n <= 2 && strspn(path, ".") >= n))
            return false;
        if (path[n] == '\0')
            return true;
        path += n + 1;
    }
}

bool is_clean(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}
