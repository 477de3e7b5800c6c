/* Kubeconfig files as kubectl writes them and as people do, and what a pod
 * finds mounted. */
#include "lib/kube/config.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/str.h"
#include "tests/lib/tmpdir.h"

/* "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n" */
#define PEM_BASE64                                                 \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClFRPT0KLS0tLS1FTkQgQ0VS" \
    "VElGSUNBVEUtLS0tLQo="
#define PEM "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"

/* One context around what stands in its cluster and its user. */
static char *around(const char *cluster, const char *user)
{
    return xasprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                     "contexts:\n- name: c\n  context: {cluster: k, user: u}\n"
                     "clusters:\n- name: k\n  cluster:\n"
                     "    server: https://10.0.0.1:6443\n%s"
                     "users:\n- name: u\n  user:\n    x: z\n%s",
                     cluster, user);
}

static struct kube_config *parse(const char *text, const char *dir)
{
    struct kube_config *c = NULL;
    struct error err = {0};
    cr_assert_eq(kube_config_parse(text, strlen(text), dir, &c, &err), 0, "%s",
                 err.text);
    return c;
}

static void expect_refused(const char *text, const char *want)
{
    struct kube_config *c = NULL;
    struct error err = {0};
    cr_expect_eq(kube_config_parse(text, strlen(text), "/d", &c, &err), -EINVAL,
                 "taken: %s", text);
    cr_expect_null(c);
    cr_expect_not_null(strstr(err.text, want), "%s\nwanted: %s", err.text,
                       want);
    kube_config_destroy(c);
}

static void expect_refused_in(const char *cluster, const char *user,
                              const char *want)
{
    cleanup_free char *text = around(cluster, user);
    expect_refused(text, want);
}

/* As `kubectl config` of 1.37 wrote it. */
static const char by_kubectl[] =
    "apiVersion: v1\nclusters:\n- cluster:\n"
    "    insecure-skip-tls-verify: true\n    server: http://127.0.0.1:8001\n"
    "  name: lab\n- cluster:\n    certificate-authority: /etc/k/ca.crt\n"
    "    server: https://[2001:db8::1]:6443\n"
    "    tls-server-name: kube.example\n  name: prod\ncontexts:\n"
    "- context:\n    cluster: prod\n    namespace: \"no\"\n    user: \"on\"\n"
    "  name: \"0123\"\n- context:\n    cluster: lab\n    user: ex\n"
    "  name: \"null\"\n- context:\n    cluster: prod\n    user: bob\n"
    "  name: 'with: colon'\n- context:\n    cluster: prod\n    user: ex\n"
    "  name: ex\ncurrent-context: \"%s\"\nkind: Config\nusers:\n- name: bob\n"
    "  user:\n    password: 'p: #x'\n    username: \"yes\"\n- name: ex\n"
    "  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
    "      args:\n      - eks\n      - -n\n      command: aws\n      env:\n"
    "      - name: A\n        value: \"0x1\"\n      provideClusterInfo: false\n"
    "- name: \"on\"\n  user:\n    token: \"1e5\"\n";

static char *with_context(const char *name)
{
    cleanup_str struct str out = STR_INIT(8192);
    const char *at = strstr(by_kubectl, "%s");
    str_add_n(&out, by_kubectl, (size_t)(at - by_kubectl));
    str_add(&out, name);
    str_add(&out, at + 2);
    return str_steal(&out);
}

Test(kube_config, what_kubectl_writes)
{
    cleanup_free char *text = with_context("0123");
    cleanup_with(kube_config) struct kube_config *c = parse(text, "/d");
    cr_expect_str_eq(c->server, "https://[2001:db8::1]:6443");
    cr_expect_str_eq(c->server_name, "kube.example");
    cr_expect_str_eq(c->ca_file, "/etc/k/ca.crt");
    cr_expect_str_eq(c->token, "1e5");
    cr_expect_str_eq(c->namespace, "no");
    cr_expect_null(c->ca_pem);
    cr_expect_null(c->cert_file);
    cr_expect_null(c->key_pem);
    cr_expect_null(c->token_file);
}

Test(kube_config, what_is_not_supported_says_what_to_use)
{
    cleanup_free char *lab = with_context("null");
    cleanup_free char *bob = with_context("with: colon");
    cleanup_free char *ex = with_context("ex");
    expect_refused(lab, "cluster \"lab\": cluster.insecure-skip-tls-verify: is "
                        "not supported: give the authority");
    expect_refused(bob, "user \"bob\": user.username: is not supported: use "
                        "tokenFile, or client-certificate");
    expect_refused(ex, "user \"ex\": user.exec: is not supported: no command "
                       "is run for credentials; use tokenFile");
    expect_refused_in("    proxy-url: http://p\n", "",
                      "cluster.proxy-url: is not supported: the API server");
    expect_refused_in("", "    password: x\n", "user.password: is not");
    expect_refused_in("", "    auth-provider: {name: oidc}\n",
                      "user.auth-provider: is not supported");
    expect_refused_in("", "    as: admin\n", "user.as: is not supported");
    expect_refused_in("", "    as-groups: [g]\n", "user.as-groups: is not");
}

Test(kube_config, empty_forms_of_it_are_nothing)
{
    cleanup_free char *text =
        around("    insecure-skip-tls-verify: false\n    proxy-url: ''\n",
               "    exec: null\n    username: ''\n    as-groups: []\n"
               "    token: ''\n    client-key: ''\n");
    cleanup_with(kube_config) struct kube_config *c = parse(text, "/d");
    cr_expect_str_eq(c->namespace, "default");
    cr_expect_null(c->token);
    cr_expect_null(c->key_file);
}

Test(kube_config, files_start_at_the_folder)
{
    cleanup_free char *text =
        around("    certificate-authority: pki/ca.crt\n",
               "    client-certificate: a.crt\n    client-key: /k/a.key\n"
               "    tokenFile: ../token\n");
    cleanup_with(kube_config) struct kube_config *c = parse(text, "/d/e");
    cr_expect_str_eq(c->ca_file, "/d/e/pki/ca.crt");
    cr_expect_str_eq(c->cert_file, "/d/e/a.crt");
    cr_expect_str_eq(c->key_file, "/k/a.key");
    cr_expect_str_eq(c->token_file, "/d/e/../token");
}

Test(kube_config, data_is_base64_of_pem)
{
    cleanup_free char *text =
        around("    certificate-authority-data: " PEM_BASE64 "\n",
               "    client-certificate-data: |\n      " PEM_BASE64 "\n"
               "    client-key-data: \"" PEM_BASE64 "\"\n    token: t\n");
    cleanup_with(kube_config) struct kube_config *c = parse(text, "/d");
    cr_expect_str_eq(c->ca_pem, PEM);
    cr_expect_str_eq(c->cert_pem, PEM);
    cr_expect_str_eq(c->key_pem, PEM);
}

Test(kube_config, data_may_have_line_breaks)
{
    cleanup_str struct str broken = STR_INIT(4096);
    for (const char *p = PEM_BASE64; *p; p++)
        str_addf(&broken, "%c%s", *p, (p - PEM_BASE64) % 7 ? "" : "\\r\\n");
    cleanup_free char *ca = xasprintf("    certificate-authority-data: "
                                      "\"%s\"\n",
                                      str_text(&broken));
    cleanup_free char *text = around(ca, "    token: t\n");
    cleanup_with(kube_config) struct kube_config *c = parse(text, "/d");
    cr_expect_str_eq(c->ca_pem, PEM);
}

Test(kube_config, data_that_is_none)
{
    static const char *const wrong[] = {"a",
                                        "ab=",
                                        "a=bc",
                                        "ab==c===",
                                        "ab#d",
                                        "====",
                                        "AAAA",
                                        "LS0t LS0t",
                                        "LS0tLS1CRUdJTiAtLS0tLQ",
                                        "_-_-",
                                        "\xc3\xa9\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_free char *ca =
            xasprintf("    certificate-authority-data: \"%s\"\n", wrong[i]);
        expect_refused_in(ca, "",
                          "cluster.certificate-authority-data: is not base64");
    }
    expect_refused_in("", "    client-key-data: aGVsbG8=\n",
                      "user.client-key-data: is base64, but of no PEM");
}

Test(kube_config, certificate_and_key_come_together)
{
    expect_refused_in("", "    client-certificate: a\n",
                      "user.client-key: is missing");
    expect_refused_in("", "    client-key: a\n",
                      "user.client-certificate: is missing");
}

Test(kube_config, names_lead_somewhere)
{
    expect_refused("kind: Config\n", "current-context: is not set");
    expect_refused("kind: Pod\n", "kind: is \"Pod\", must be Config");
    expect_refused("current-context: c\n", "contexts: there is no \"c\"");
    expect_refused("current-context: c\ncontexts: [{name: c}]\n",
                   "contexts: \"c\" has no context");
    expect_refused("current-context: c\ncontexts:\n- {name: c, context: {}}\n",
                   "context.cluster");
    expect_refused("current-context: c\n"
                   "contexts: [{name: c, context: {cluster: k}}]\n",
                   "clusters: there is no \"k\"");
    expect_refused("current-context: c\n"
                   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                   "clusters: [{name: k, cluster: {server: 'https://a'}}]\n",
                   "users: there is no \"u\"");
    expect_refused("current-context: c\ncontexts:\n"
                   "- {name: c, context: {}}\n- {name: c, context: {}}\n",
                   "contexts: \"c\" is there more than once");
    expect_refused("current-context: 1\n", "current-context");
    expect_refused("[]", "object");
    expect_refused("a: [\n", "line 2 column 1");
}

static void try_server(const char *server, const char *want)
{
    cleanup_free char *text = xasprintf(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        "clusters: [{name: k, cluster: {server: \"%s\"}}]\n",
        server);
    if (want)
        expect_refused(text, want);
    else
        kube_config_destroy(parse(text, "/d"));
}

/* A token must not be sent in the clear to another machine. */
Test(kube_config, http_to_this_host_alone)
{
    static const char *const loopback[] = {
        "http://127.0.0.1:8001", "http://127.1.2.3",  "http://localhost:1/k",
        "http://[::1]:8001",     "https://a.example", "HTTPS://a/b"};
    static const char *const other[] = {"http://10.0.0.1",
                                        "http://127.example",
                                        "http://127.0.0.1.a.net",
                                        "http://localhost.a.net",
                                        "http://[::1].a:80",
                                        "http://[::2]",
                                        "http://127.1"};
    for (size_t i = 0; i < ARRAY_LEN(loopback); i++)
        try_server(loopback[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        try_server(other[i], "http is allowed to this host alone");
    try_server("10.0.0.1:6443", "must begin with https://");
    try_server("ftp://a", "must begin with https://");
    try_server("http://127.0.0.1@a.net", "without user or query");
    try_server("https://a?b", "without user or query");
    try_server("", "cluster.server");
}

static void put(const char *dir, const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(text, f), 0);
    cr_assert_eq(fclose(f), 0);
}

Test(kube_config, in_a_pod)
{
    char *dir = tmpdir_create();
    struct kube_config *c = NULL;
    struct error err = {0};
    put(dir, "token", "abc\n");
    put(dir, "namespace", "biga-system\n");
    cr_expect_eq(kube_config_in_pod("10.96.0.1", "443", dir, &c, &err),
                 -ENOENT);
    cr_expect_not_null(strstr(err.text, "/ca.crt: is the pod's service"), "%s",
                       err.text);
    put(dir, "ca.crt", PEM);
    cr_assert_eq(kube_config_in_pod("10.96.0.1", "443", dir, &c, &err), 0, "%s",
                 err.text);
    cr_expect_str_eq(c->server, "https://10.96.0.1:443");
    cr_expect_str_eq(c->namespace, "biga-system");
    cr_expect(strncmp(c->token_file, dir, strlen(dir)) == 0);
    cr_expect_null(c->token);
    kube_config_destroy(c);
    cr_assert_eq(kube_config_in_pod("fd00::1", "6443", dir, &c, &err), 0);
    cr_expect_str_eq(c->server, "https://[fd00::1]:6443");
    kube_config_destroy(c);
    cr_expect_eq(kube_config_in_pod("h", "44x", dir, &c, &err), -EINVAL);
    cr_expect_eq(kube_config_in_pod("h", "", dir, &c, &err), -EINVAL);
    put(dir, "namespace", "\n");
    cr_expect_eq(kube_config_in_pod("h", "1", dir, &c, &err), -EINVAL);
    tmpdir_remove(dir);
}

Test(kube_config, where_the_file_is)
{
    char *dir = tmpdir_create();
    struct kube_config *c = NULL;
    struct error err = {0};
    cleanup_free char *text = around("    certificate-authority: ca\n", "");
    cleanup_free char *named = xasprintf("%s/named", dir);
    cleanup_free char *first = xasprintf("%s:/nonexistent", named);
    cleanup_free char *home = xasprintf("%s/.kube", dir);
    cleanup_free char *ca = xasprintf("%s/ca", dir);
    cleanup_free char *home_ca = xasprintf("%s/ca", home);
    put(dir, "named", text);
    cr_assert_eq(mkdir(home, 0700), 0);
    put(home, "config", text);
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    (void)setenv("HOME", dir, 1);
    (void)setenv("KUBECONFIG", first, 1);
    cr_assert_eq(kube_config_load(NULL, &c, &err), 0, "%s", err.text);
    cr_expect_str_eq(c->ca_file, ca);
    kube_config_destroy(c);
    (void)unsetenv("KUBECONFIG");
    cr_assert_eq(kube_config_load("", &c, &err), 0, "%s", err.text);
    cr_expect_str_eq(c->ca_file, home_ca);
    kube_config_destroy(c);
    (void)setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    cr_expect_neq(kube_config_load(NULL, &c, &err), 0);
    cr_expect_not_null(strstr(err.text, "/var/run/secrets/"), "%s", err.text);
    cr_assert_eq(kube_config_load(named, &c, &err), 0, "a name comes first");
    kube_config_destroy(c);
    put(dir, "named", "current-context: c\n");
    cr_expect_eq(kube_config_load(named, &c, &err), -EINVAL);
    cr_expect(strncmp(err.text, named, strlen(named)) == 0, "%s", err.text);
    cr_expect_eq(kube_config_load("/nonexistent/k", &c, &err), -ENOENT);
    cr_expect_not_null(strstr(err.text, "/nonexistent/k"));
    tmpdir_remove(dir);
}
