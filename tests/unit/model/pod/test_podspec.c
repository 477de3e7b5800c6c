#include "model/pod/podspec.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "tests/lib/badjson.h"

/* ConfigMap "map" of namespace "ns" has a=one, b=(NUL inside), dir.conf;
 * Secret "sec" has k=word. */
static int each(void *ctx, bool secret, const char *namespace, const char *name,
                void (*visit)(void *arg, const char *key, const char *data,
                              size_t size),
                void *arg)
{
    (void)ctx;
    if (strcmp(namespace, "ns") != 0)
        return -ENOENT;
    if (secret && strcmp(name, "sec") == 0) {
        visit(arg, "k", "word", 4);
        return 0;
    }
    if (secret || strcmp(name, "map") != 0)
        return -ENOENT;
    visit(arg, "a", "one", 3);
    visit(arg, "b", "x\0y", 3);
    visit(arg, "dir.conf", "c $(A)\n", 7);
    return 0;
}

static const struct podspec_source source = {.each = each};

/* A pod around members of its spec and of its only container. */
static void wrap(const char *spec, const char *container, struct str *out)
{
    str_addf(out,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
             "\"name\":\"p.x\",\"namespace\":\"ns\",\"uid\":\"u-1\","
             "\"labels\":{\"biga.dev/role\":\"xpu\",\"l\":\"v\"},"
             "\"annotations\":{\"q\":\"a\\\"b\\n\"}},"
             "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i:1\"%s%s}]"
             "%s%s},\"status\":{\"phase\":\"Pending\"}}",
             *container ? "," : "", container, *spec ? "," : "", spec);
}

static struct podspec *read_ok(const char *spec, const char *container)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    struct podspec *p = NULL;
    struct error err = {0};
    wrap(spec, container, &text);
    cr_assert_eq(podspec_parse(text.data, text.size, "n1", &source, &p, &err),
                 0, "%s", err.text);
    return p;
}

static const char *env_of(const struct podspec_container *c, const char *name)
{
    for (size_t i = 0; i < c->n_env; i++)
        if (strcmp(c->env[i].name, name) == 0)
            return c->env[i].value;
    return NULL;
}

Test(podspec, reads_a_plain_pod)
{
    cleanup_with(podspec) struct podspec *p = read_ok("", "");
    cr_expect_str_eq(p->namespace, "ns");
    cr_expect_str_eq(p->name, "p.x");
    cr_expect_str_eq(p->uid, "u-1");
    cr_expect_eq(p->restart, PODSPEC_RESTART_ALWAYS);
    cr_expect_eq(p->grace_s, 30);
    cr_expect_eq(p->n_containers, 1);
    cr_expect_eq(p->n_init, 0);
    const struct podspec_container *c = &p->containers[0];
    cr_expect_str_eq(c->image, "i:1");
    cr_expect_eq(c->pull, PODSPEC_PULL_IF_NOT_PRESENT);
    cr_expect_null(c->command[0]);
    cr_expect_eq(c->run_as_user, -1);
    cr_expect_str_eq(c->working_dir, "");
    cr_expect(!c->privileged && !c->no_new_privileges);
}

Test(podspec, pulls_as_kubernetes_does)
{
    static const struct {
        const char *image;
        enum podspec_pull pull;
    } images[] = {
        {"i", PODSPEC_PULL_ALWAYS},
        {"i:latest", PODSPEC_PULL_ALWAYS},
        {"host:5000/i", PODSPEC_PULL_ALWAYS},
        {"host:5000/i:2", PODSPEC_PULL_IF_NOT_PRESENT},
        {"i@sha256:00", PODSPEC_PULL_IF_NOT_PRESENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        char text[256];
        struct podspec *p = NULL;
        int n = snprintf(text, sizeof text,
                         "{\"metadata\":{\"name\":\"p\"},\"spec\":{"
                         "\"containers\":[{\"name\":\"c\",\"image\":\"%s\"}]}}",
                         images[i].image);
        cr_assert_eq(podspec_parse(text, (size_t)n, "", NULL, &p, NULL), 0);
        cr_expect_eq(p->containers[0].pull, images[i].pull, "%s",
                     images[i].image);
        cr_expect_str_eq(p->namespace, "default");
        podspec_destroy(p);
    }
}

/* What the annotation gives a pod of that role. */
static int read_devices(const char *role, const char *value,
                        struct device_sets *ret_sets, struct error *err)
{
    cleanup_with(podspec) struct podspec *p = NULL;
    cleanup_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p\",\"labels\":{\"biga.dev/role\":\"%s\"},"
        "\"annotations\":{\"biga.dev/devices\":\"%s\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
        role, value);
    int e = podspec_parse(text, strlen(text), "", NULL, &p, err);
    if (e == 0)
        *ret_sets = p->devices;
    return e;
}

Test(podspec, devices_are_those_of_pods_on_cards)
{
    struct device_sets sets;
    struct error err = {0};
    cr_assert_eq(read_devices("xpu", "snap,rdma", &sets, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(sets.text, "rdma snap");
    cr_assert_eq(read_devices("service", "", &sets, &err), 0);
    cr_expect_str_eq(sets.text, "");
    cr_assert_eq(read_devices("host", "rdma", &sets, &err), 0);
    cr_expect_str_eq(sets.text, "", "it says what its xPU pods have");
    cr_assert_eq(read_devices("xpu", "a,B", &sets, &err), -EINVAL);
    cr_expect(strstr(err.text, "metadata.annotations[\"biga.dev/devices\"]: "
                               "\"B\" must be"),
              "%s", err.text);
}

Test(podspec, resolves_variables)
{
    cleanup_with(podspec) struct podspec *p = read_ok(
        "",
        "\"command\":[\"run\",\"$(A)-$(LATE)\",\"$$(A)\",\"$(NONE)\",\"$\"],"
        "\"args\":[\"$(m_a)\"],"
        "\"envFrom\":[{\"prefix\":\"m_\",\"configMapRef\":{\"name\":\"map\"}},"
        "{\"secretRef\":{\"name\":\"none\",\"optional\":true}}],"
        "\"env\":[{\"name\":\"A\",\"value\":\"1\"},"
        "{\"name\":\"B\",\"value\":\"$(A)$(m_a)$(C)$(BIGA_RANK)\"},"
        "{\"name\":\"C\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"sec\","
        "\"key\":\"k\"}}},"
        "{\"name\":\"D\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":"
        "\"metadata.labels['l']\"}}},"
        "{\"name\":\"E\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":"
        "\"spec.nodeName\"}}},"
        "{\"name\":\"F\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"map\","
        "\"key\":\"none\",\"optional\":true}}},"
        "{\"name\":\"G\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"map\","
        "\"key\":\"dir.conf\"}}},"
        "{\"name\":\"A\",\"value\":\"2\"}]");
    const struct podspec_container *c = &p->containers[0];
    cr_expect_str_eq(env_of(c, "A"), "2", "the last one counts");
    cr_expect_str_eq(env_of(c, "B"), "2$(m_a)$(C)$(BIGA_RANK)");
    cr_expect_str_eq(env_of(c, "C"), "word");
    cr_expect_str_eq(env_of(c, "D"), "v");
    cr_expect_str_eq(env_of(c, "E"), "n1");
    cr_expect_null(env_of(c, "F"));
    cr_expect_str_eq(env_of(c, "G"), "c $(A)\n", "what is looked up stays");
    cr_expect_str_eq(env_of(c, "m_a"), "one");
    cr_expect_null(env_of(c, "m_b"), "has a NUL");
    cr_expect_str_eq(c->command[1], "2-$(LATE)");
    cr_expect_str_eq(c->command[2], "$(A)");
    cr_expect_str_eq(c->command[3], "$(NONE)");
    cr_expect_str_eq(c->command[4], "$");
    cr_expect_null(c->command[5]);
    cr_expect_str_eq(c->args[0], "one");

    podspec_set_env(p, "LATE", "l");
    podspec_set_env(p, "BIGA_RANK", "3");
    podspec_set_env(p, "A", "not taken");
    cr_expect_str_eq(c->command[1], "2-l");
    cr_expect_str_eq(c->command[2], "$(A)", "once escaped stays escaped");
    cr_expect_str_eq(env_of(c, "B"), "2$(m_a)$(C)3");
    cr_expect_str_eq(env_of(c, "BIGA_RANK"), "3");
}

Test(podspec, delivers_files)
{
    cleanup_with(podspec) struct podspec *p = read_ok(
        "\"volumes\":["
        "{\"name\":\"m\",\"configMap\":{\"name\":\"map\",\"defaultMode\":256,"
        "\"items\":[{\"key\":\"a\",\"path\":\"x/y\",\"mode\":64},"
        "{\"key\":\"b\",\"path\":\"z\"}]}},"
        "{\"name\":\"s\",\"secret\":{\"secretName\":\"sec\"}},"
        "{\"name\":\"d\",\"downwardAPI\":{\"items\":[{\"path\":\"notes\","
        "\"fieldRef\":{\"fieldPath\":\"metadata.annotations\"}}]}},"
        "{\"name\":\"j\",\"projected\":{\"sources\":[{\"configMap\":{\"name\":"
        "\"map\",\"items\":[{\"key\":\"a\",\"path\":\"a\"}]}},{\"secret\":{"
        "\"name\":\"sec\"}},{\"secret\":{\"name\":\"none\",\"optional\":true}}"
        "]}},"
        "{\"name\":\"e\",\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":"
        "\"1Gi\"}},{\"name\":\"f\",\"emptyDir\":{}}]",
        "\"volumeMounts\":[{\"name\":\"m\",\"mountPath\":\"/m\",\"readOnly\":"
        "true,\"subPath\":\"x\"},{\"name\":\"e\",\"mountPath\":\"/dev/shm\"}]");
    cr_assert_eq(p->n_volumes, 6);
    const struct podspec_volume *m = &p->volumes[0];
    cr_expect_eq(m->kind, PODSPEC_FILES);
    cr_assert_eq(m->n_files, 2);
    cr_expect_str_eq(m->files[0].path, "x/y");
    cr_expect_eq(m->files[0].mode, 0100);
    cr_expect_eq(m->files[1].mode, 0400);
    cr_expect_eq(m->files[1].size, 3);
    cr_expect_eq(memcmp(m->files[1].data, "x\0y", 3), 0);
    cr_expect_str_eq(p->volumes[1].files[0].path, "k");
    cr_expect_eq(p->volumes[1].files[0].mode, 0644);
    const struct podspec_file *notes = &p->volumes[2].files[0];
    cr_expect_eq(strncmp(notes->data, "q=\"a\\\"b\\n\"", notes->size), 0);
    cr_expect_eq(p->volumes[3].n_files, 2);
    cr_expect_eq(p->volumes[4].kind, PODSPEC_EMPTY);
    cr_expect_eq(p->volumes[4].medium, PODSPEC_MEMORY);
    cr_expect_eq(p->volumes[5].medium, PODSPEC_DISK);
    const struct podspec_container *c = &p->containers[0];
    cr_expect_eq(c->n_mounts, 2);
    cr_expect_str_eq(c->mounts[0].sub_path, "x");
    cr_expect(c->mounts[0].read_only && !c->mounts[1].read_only);
    cr_expect_eq(c->mounts[1].volume, 4);
}

Test(podspec, reads_resources_and_rights)
{
    cleanup_with(podspec) struct podspec *p = read_ok(
        "\"restartPolicy\":\"OnFailure\",\"hostPID\":true,\"hostNetwork\":true,"
        "\"terminationGracePeriodSeconds\":0,\"tolerations\":[{\"key\":\"x\"}],"
        "\"securityContext\":{\"runAsUser\":7,\"runAsNonRoot\":true},"
        "\"initContainers\":[{\"name\":\"i\",\"image\":\"x\",\"resources\":{"
        "\"limits\":{\"cpu\":1.5,\"memory\":\"64Mi\"},\"requests\":{\"cpu\":"
        "\"500m\"}}}]",
        "\"resources\":{\"limits\":{\"cpu\":\"9\",\"biga.dev/card-cores\":2,"
        "\"biga.dev/card-memory-mib\":\"1Ki\",\"biga.dev/card\":1}},"
        "\"securityContext\":{\"runAsGroup\":8,\"readOnlyRootFilesystem\":true,"
        "\"allowPrivilegeEscalation\":false,\"capabilities\":{\"add\":["
        "\"CAP_NET_ADMIN\"],\"drop\":[\"ALL\"]}},"
        "\"ports\":[{\"containerPort\":80,\"hostPort\":80}]");
    const struct podspec_container *i = &p->init[0], *c = &p->containers[0];
    cr_expect_eq(p->restart, PODSPEC_RESTART_ON_FAILURE);
    cr_expect_eq(p->grace_s, 0);
    cr_expect(p->host_pid && !p->host_ipc);
    cr_expect_eq(i->cpu_limit_milli, 1500);
    cr_expect_eq(i->cpu_request_milli, 500);
    cr_expect_eq(i->memory_limit, 64 << 20);
    cr_expect_eq(i->run_as_user, 7);
    cr_expect_eq(c->cpu_limit_milli, 2000, "cores of the card");
    cr_expect_eq(c->cpu_request_milli, 2000);
    cr_expect_eq(c->memory_limit, UINT64_C(1024) << 20);
    cr_expect_eq(c->run_as_group, 8);
    cr_expect(c->run_as_non_root && c->read_only_root && c->no_new_privileges);
    cr_expect_str_eq(c->cap_add[0], "NET_ADMIN");
    cr_expect_str_eq(c->cap_drop[0], "ALL");
}

static struct podspec *annotated(const char *role, const char *init,
                                 const char *containers)
{
    struct podspec *p = NULL;
    struct error err = {0};
    cleanup_free char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p\",\"labels\":{\"biga.dev/role\":\"%s\"},"
        "\"annotations\":{\"biga.dev/card-cores\":\"2\","
        "\"biga.dev/card-memory-mib\":\"1Ki\"}},\"spec\":{"
        "\"initContainers\":[%s],\"containers\":[%s]}}",
        role, init, containers);
    cr_assert_eq(podspec_parse(text, strlen(text), "n", NULL, &p, &err), 0,
                 "%s", err.text);
    return p;
}

#define PLAIN(name) "{\"name\":\"" name "\",\"image\":\"i:1\"}"
#define LIMITED(name, limits) \
    "{\"name\":\"" name       \
    "\",\"image\":\"i:1\",\"resources\":{\"limits\":{" limits "}}}"

/* With one container the share that annotations state is that one's. */
Test(podspec, takes_a_share_by_annotations)
{
    struct podspec *p = annotated("xpu", PLAIN("i"),
                                  LIMITED("c", "\"cpu\":\"9\""));
    cr_expect_eq(p->containers[0].cpu_limit_milli, 2000);
    cr_expect_eq(p->containers[0].memory_limit, UINT64_C(1024) << 20);
    cr_expect_eq(p->init[0].cpu_limit_milli, 2000);
    podspec_destroy(p);
    p = annotated("service", "", LIMITED("c", "\"biga.dev/card-cores\":1"));
    cr_expect_eq(p->containers[0].cpu_limit_milli, 1000);
    cr_expect_eq(p->containers[0].memory_limit, UINT64_C(1024) << 20);
    podspec_destroy(p);
    p = annotated("xpu", "", PLAIN("c") "," PLAIN("d"));
    cr_expect_eq(p->containers[0].cpu_limit_milli, 0);
    cr_expect_eq(p->containers[1].memory_limit, 0);
    podspec_destroy(p);
    p = annotated("host", "", LIMITED("c", "\"cpu\":\"9\""));
    cr_expect_eq(p->containers[0].cpu_limit_milli, 9000);
    cr_expect_eq(p->containers[0].memory_limit, 0);
    podspec_destroy(p);
}

Test(podspec, needs_no_source_to_check)
{
    cleanup_str struct str text = STR_INIT(4096);
    cleanup_with(podspec) struct podspec *p = NULL;
    struct error err = {0};
    wrap("\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"none\","
         "\"items\":[{\"key\":\"k\",\"path\":\"k\"}]}}]",
         "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"subPath\":"
         "\"k\"}],\"env\":[{\"name\":\"X\",\"valueFrom\":{\"configMapKeyRef\":"
         "{\"name\":\"none\",\"key\":\"k\"}}}]",
         &text);
    cr_assert_eq(podspec_parse(text.data, text.size, "", NULL, &p, &err), 0,
                 "%s", err.text);
    cr_expect_eq(p->volumes[0].n_files, 0);
    cr_expect_str_eq(p->containers[0].env[0].value, "");
}

Test(podspec, tells_what_it_names)
{
    static const struct podspec_ref expected[] = {{true, (char *)"s"},
                                                  {false, (char *)"m"},
                                                  {true, (char *)"m"},
                                                  {false, (char *)"all"}};
    cleanup_str struct str text = STR_INIT(4096);
    cleanup_with(podspec) struct podspec *p = NULL;
    struct error err = {0};
    wrap("\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\","
         "\"optional\":true}},{\"name\":\"w\",\"projected\":{\"sources\":[{"
         "\"configMap\":{\"name\":\"m\"}},{\"secret\":{\"name\":\"s\"}}]}}]",
         "\"env\":[{\"name\":\"X\",\"valueFrom\":{\"secretKeyRef\":{"
         "\"name\":\"m\",\"key\":\"k\"}}}],\"envFrom\":[{\"configMapRef\":{"
         "\"name\":\"all\"}}]",
         &text);
    cr_assert_eq(podspec_parse(text.data, text.size, "", NULL, &p, &err), 0,
                 "%s", err.text);
    cr_assert_eq(p->n_refs, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        size_t n = 0;
        for (size_t k = 0; k < p->n_refs; k++)
            n += p->refs[k].secret == expected[i].secret &&
                 strcmp(p->refs[k].name, expected[i].name) == 0;
        cr_expect_eq(n, 1, "%s", expected[i].name);
    }
}

Test(podspec, names_no_more_than_it_may)
{
    enum { EACH = 500 };
    cleanup_str struct str text = STR_INIT(1 << 20);
    struct podspec *p = NULL;
    struct error err = {0};
    str_add(&text, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[");
    for (int i = 0; i <= PODSPEC_REFS_MAX; i++) {
        if (i % EACH == 0)
            str_addf(&text, "%s{\"name\":\"c%d\",\"image\":\"i\",\"env\":[",
                     i ? "]}," : "", i);
        str_addf(&text,
                 "%s{\"name\":\"E%d\",\"valueFrom\":{\"secretKeyRef\":{"
                 "\"name\":\"s%d\",\"key\":\"k\"}}}",
                 i % EACH ? "," : "", i, i);
    }
    str_add(&text, "]}]}}");
    cr_expect_eq(podspec_parse(text.data, text.size, "", NULL, &p, &err),
                 -EFBIG);
    cr_expect(strstr(err.text, "from more than 1024"), "%s", err.text);
}

/* --- refusals --------------------------------------------------------------- */

struct refusal {
    const char *spec, *container;
    const char *path, *value; /* parts of the error */
};

#define VOLUME(text) "\"volumes\":[{\"name\":\"v\"," text "}]"
#define MOUNT(text) "\"volumeMounts\":[{\"name\":\"v\"," text "}]"
#define EMPTY VOLUME("\"emptyDir\":{}")

static const struct refusal refusals[] = {
    {VOLUME("\"hostPath\":{\"path\":\"/data\"}"), "",
     "spec.volumes[0].hostPath: is {\"path\":\"/data\"}",
     "cards have no host paths"},
    {VOLUME("\"csi\":{\"driver\":\"d\"}"), "",
     "spec.volumes[0].csi:", "\"driver\":\"d\""},
    {VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"c\"}"), "",
     "spec.volumes[0].persistentVolumeClaim:", "\"c\""},
    {VOLUME("\"nfs\":{\"server\":\"s\"}"), "", "spec.volumes[0].nfs:", "\"s\""},
    {VOLUME("\"iscsi\":{\"iqn\":\"s\"}"), "", "spec.volumes[0].iscsi:", "iqn"},
    {VOLUME("\"ephemeral\":{\"x\":1}"), "", "spec.volumes[0].ephemeral:", "x"},
    {VOLUME("\"emptyDir\":{},\"secret\":{\"secretName\":\"sec\"}"), "",
     "spec.volumes[0]: must have one of", ""},
    {VOLUME("\"emptyDir\":{\"medium\":\"HugePages2Mi\"}"), "",
     "spec.volumes[0].emptyDir.medium: is \"HugePages2Mi\"", "\"Memory\""},
    {VOLUME("\"emptyDir\":{\"medium\":\"HugePages-2MB\"}"), "",
     "spec.volumes[0].emptyDir.medium: is \"HugePages-2MB\"", "2Mi"},
    {VOLUME("\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"path\":"
            "\"t\"}}]}"),
     "", "spec.volumes[0].projected.sources[0].serviceAccountToken:", "\"t\""},
    {VOLUME("\"configMap\":{\"name\":\"map\",\"items\":[{\"key\":\"a\","
            "\"path\":\"../x\"}]}"),
     "", "spec.volumes[0].configMap.items[0].path: is \"../x\"", "relative"},
    {VOLUME("\"configMap\":{\"name\":\"map\",\"items\":[{\"key\":\"a\","
            "\"path\":\"x\"},{\"key\":\"b\",\"path\":\"x/y\"}]}"),
     "", "spec.volumes[0].configMap: \"x\" and \"x/y\"", "way"},
    {VOLUME("\"configMap\":{\"name\":\"map\",\"defaultMode\":512}"), "",
     "spec.volumes[0].configMap.defaultMode: is 512", "511"},
    {VOLUME("\"emptyDir\":{}"), MOUNT("\"mountPath\":\"rel\""),
     "spec.containers[0].volumeMounts[0].mountPath: is \"rel\"", "absolute"},
    {EMPTY, MOUNT("\"mountPath\":\"/a/../b\""),
     "volumeMounts[0].mountPath: is \"/a/../b\"", ""},
    {EMPTY, MOUNT("\"mountPath\":\"/a/..\""), "mountPath: is \"/a/..\"", ""},
    {EMPTY, MOUNT("\"mountPath\":\"/\""), "mountPath: is \"/\"", "root"},
    {EMPTY, MOUNT("\"mountPath\":\"/a\",\"subPath\":\"../..\""),
     "subPath: is \"../..\"", ""},
    {EMPTY, MOUNT("\"mountPath\":\"/a\",\"subPathExpr\":\"$(X)\""),
     "subPathExpr: is \"$(X)\"", ""},
    {EMPTY,
     MOUNT("\"mountPath\":\"/a\",\"mountPropagation\":\"Bidirectional\""),
     "mountPropagation: is \"Bidirectional\"", "\"None\""},
    {"", MOUNT("\"mountPath\":\"/a\""), "volumeMounts[0].name: is \"v\"",
     "spec.volumes"},
    {"\"ephemeralContainers\":[{\"name\":\"d\"}]", "",
     "spec.ephemeralContainers: is [{\"name\":\"d\"}]", "biga exec"},
    {"\"activeDeadlineSeconds\":5", "", "spec.activeDeadlineSeconds: is 5", ""},
    {"\"hostAliases\":[{\"ip\":\"1\"}]", "", "spec.hostAliases:", "\"ip\""},
    {"\"hostUsers\":false", "", "spec.hostUsers: is false", "namespaces"},
    {"\"runtimeClassName\":\"gvisor\"", "", "spec.runtimeClassName: is \"gvis",
     "\"xpu\""},
    {"\"dnsPolicy\":\"None\"", "", "spec.dnsPolicy: is \"None\"", "Default"},
    {"\"imagePullSecrets\":[{\"name\":\"s\"}]", "",
     "spec.imagePullSecrets:", "credentials"},
    {"\"os\":{\"name\":\"windows\"}", "", "spec.os.name: is \"windows\"", ""},
    {"\"resourceClaims\":[{\"name\":\"g\"}]", "", "spec.resourceClaims:", "g"},
    {"\"restartPolicy\":\"Sometimes\"", "",
     "spec.restartPolicy: is \"Sometimes\"", "\"OnFailure\""},
    {"\"terminationGracePeriodSeconds\":-1", "",
     "spec.terminationGracePeriodSeconds: is -1", "86400"},
    {"\"securityContext\":{\"fsGroup\":5}", "",
     "spec.securityContext.fsGroup: is 5", ""},
    {"\"securityContext\":{\"sysctls\":[{\"name\":\"x\"}]}", "",
     "spec.securityContext.sysctls:", "x"},
    {"\"securityContext\":{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}",
     "", "spec.securityContext.seccompProfile.type: is \"RuntimeDefault\"",
     "Unconfined"},
    {"\"contaners\":[]", "", "spec.contaners: is []", "no such member"},
    {"\"initContainers\":[{\"name\":\"i\",\"image\":\"x\",\"restartPolicy\":"
     "\"Always\"}]",
     "", "spec.initContainers[0].restartPolicy: is \"Always\"", "sidecar"},
    {"\"initContainers\":[{\"name\":\"c\",\"image\":\"x\"}]", "",
     "spec.containers[0].name: is \"c\"", "another container"},
    {"", "\"livenessProbe\":{\"tcpSocket\":{\"port\":1}}",
     "spec.containers[0].livenessProbe: is {\"tcpSocket\"", "not probed"},
    {"", "\"readinessProbe\":{\"exec\":{}}", "[0].readinessProbe:", "exec"},
    {"", "\"startupProbe\":{\"grpc\":{}}", "[0].startupProbe:", "grpc"},
    {"", "\"lifecycle\":{\"preStop\":{}}", "[0].lifecycle:", "preStop"},
    {"", "\"tty\":true", "[0].tty: is true", "terminal"},
    {"", "\"stdin\":true", "[0].stdin: is true", ""},
    {"", "\"volumeDevices\":[{\"name\":\"d\"}]", "[0].volumeDevices:", "d"},
    {"", "\"ports\":[{\"containerPort\":80,\"hostPort\":81}]",
     "ports[0].hostPort: is 81", "containerPort"},
    {"", "\"ports\":[{\"containerPort\":80,\"hostIP\":\"1.2.3.4\"}]",
     "ports[0].hostIP: is \"1.2.3.4\"", ""},
    {"", "\"imagePullPolicy\":\"Now\"", "imagePullPolicy: is \"Now\"", "Never"},
    {"", "\"command\":[1]", "[0].command: element 0", "text"},
    {"", "\"resources\":{\"claims\":[{\"name\":\"x\"}]}",
     "resources.claims:", "x"},
    {"", "\"resources\":{\"limits\":{\"cpu\":\"many\"}}",
     "resources.limits: cpu: is \"many\"", ""},
    {"", "\"resources\":{\"limits\":{\"cpu\":1},\"requests\":{\"cpu\":2}}",
     "resources.requests: cpu: is 2000m", "1000m"},
    {"", "\"securityContext\":{\"seLinuxOptions\":{\"level\":\"s0\"}}",
     "securityContext.seLinuxOptions:", "s0"},
    {"", "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":0}",
     "spec.containers[0].securityContext: runAsNonRoot", "0"},
    {"",
     "\"securityContext\":{\"privileged\":true,\"allowPrivilegeEscalation\":"
     "false}",
     "allowPrivilegeEscalation: is false", "privileged"},
    {"", "\"securityContext\":{\"capabilities\":{\"add\":[\"net admin\"]}}",
     "capabilities.add: element 0 is \"net admin\"", ""},
    {"", "\"securityContext\":{\"procMount\":\"Unmasked\"}",
     "procMount: is \"Unmasked\"", ""},
    {"", "\"env\":[{\"name\":\"A=B\",\"value\":\"\"}]",
     "spec.containers[0].env[0].name: is \"A=B\"", ""},
    {"",
     "\"env\":[{\"name\":\"A\",\"value\":\"x\",\"valueFrom\":{\"fieldRef\":{"
     "\"fieldPath\":\"metadata.name\"}}}]",
     "env[0]: has value and valueFrom", ""},
    {"",
     "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":"
     "\"status.podIP\"}}}]",
     "env[0].valueFrom.fieldRef.fieldPath: is \"status.podIP\"",
     "BIGA_PEER_ADDRESS"},
    {"",
     "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"resourceFieldRef\":{"
     "\"resource\":\"limits.cpu\"}}}]",
     "env[0].valueFrom.resourceFieldRef:", "limits.cpu"},
    {"",
     "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":"
     "\"map\",\"key\":\"b\"}}}]",
     "env[0].valueFrom.configMapKeyRef.key: is \"b\"", "NUL"},
};

Test(podspec, refuses_by_path_and_value)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const struct refusal *r = &refusals[i];
        cleanup_str struct str text = STR_INIT(1 << 20);
        struct podspec *p = NULL;
        struct error err = {0};
        wrap(r->spec, r->container, &text);
        cr_assert_eq(podspec_parse(text.data, text.size, "", &source, &p, &err),
                     -EINVAL, "%s %s: %s", r->spec, r->container, err.text);
        cr_expect_null(p);
        cr_expect(strstr(err.text, r->path), "%s: no %s", err.text, r->path);
        cr_expect(strstr(err.text, r->value), "%s: no %s", err.text, r->value);
    }
}

Test(podspec, says_what_is_not_there)
{
    static const struct refusal absent[] = {
        {VOLUME("\"configMap\":{\"name\":\"none\"}"), "",
         "spec.volumes[0].configMap.name: is \"none\"",
         "namespace ns has no ConfigMap"},
        {VOLUME("\"secret\":{\"secretName\":\"sec\",\"items\":[{\"key\":\"x\","
                "\"path\":\"x\"}]}"),
         "", "spec.volumes[0].secret.items[0].key: is \"x\"", "no such key"},
        {"",
         "\"env\":[{\"name\":\"A\",\"valueFrom\":{\"secretKeyRef\":{\"name\":"
         "\"sec\",\"key\":\"x\"}}}]",
         "env[0].valueFrom.secretKeyRef.key: is \"x\"", "Secret \"sec\""},
        {"", "\"envFrom\":[{\"secretRef\":{\"name\":\"x\"}}]",
         "envFrom[0].secretRef.name: is \"x\"", "no Secret"},
    };
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        cleanup_str struct str text = STR_INIT(4096);
        struct podspec *p = NULL;
        struct error err = {0};
        wrap(absent[i].spec, absent[i].container, &text);
        cr_expect_eq(podspec_parse(text.data, text.size, "", &source, &p, &err),
                     -ENOENT, "%s", err.text);
        cr_expect(strstr(err.text, absent[i].path), "%s", err.text);
        cr_expect(strstr(err.text, absent[i].value), "%s", err.text);
    }
}

Test(podspec, refuses_other_objects)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"metadata\":{\"name\":\"p\"}}",
        "{\"kind\":\"Job\",\"metadata\":{\"name\":\"p\"},\"spec\":{}}",
        "{\"metadata\":{\"name\":\"P\"},\"spec\":{\"containers\":[]}}",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"../x\"},\"spec\":{}}",
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"a.b\"},\"spec\":{}}",
        "{\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":1}},\"spec\":{}}",
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[]}}",
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":"
        "\"c\"}]}}",
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":"
        "\"../c\",\"image\":\"i\"}]}}",
    };
    size_t n;
    const struct badjson *bad = badjson_syntax(&n);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct podspec *p = NULL;
        struct error err = {0};
        cr_expect_eq(
            podspec_parse(texts[i], strlen(texts[i]), "", NULL, &p, &err),
            -EINVAL, "%s", texts[i]);
        cr_expect(*err.text, "%s", texts[i]);
    }
    for (size_t i = 0; i < n; i++) {
        struct podspec *p = NULL;
        cr_expect_eq(
            podspec_parse(bad[i].data, bad[i].size, "", NULL, &p, NULL),
            -EINVAL, "%s", bad[i].name);
    }
}

Test(podspec, has_caps)
{
    cleanup_str struct str text = STR_INIT(4 << 20);
    struct podspec *p = NULL;
    struct error err = {0};
    str_add(&text, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[");
    for (int i = 0; i <= PODSPEC_CONTAINERS_MAX; i++)
        str_addf(&text, "%s{\"name\":\"c%d\",\"image\":\"i\"}", i ? "," : "",
                 i);
    str_add(&text, "]}}");
    cr_expect_eq(podspec_parse(text.data, text.size, "", NULL, &p, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "spec.containers: has 17"), "%s", err.text);
    str_reset(&text);
    while (text.size <= PODSPEC_SIZE_MAX)
        str_add(&text, "                                                ");
    cr_expect_eq(podspec_parse(text.data, text.size, "", NULL, &p, &err),
                 -EINVAL);
    cr_expect(strstr(err.text, "the limit is 1048576"), "%s", err.text);
}
