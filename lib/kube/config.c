#include "lib/kube/config.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/io/watch.h"
#include "lib/io/yaml.h"

#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum {
    ENTRIES_MAX = 1024, /* clusters, users, contexts */
    NAME_MAX_LEN = 512,
    PATH_MAX_LEN = 4096,
    DATA_MAX = 1 << 20, /* base64 of certificates */
    TOKEN_MAX = 65536,
};

void kube_config_destroy(struct kube_config *c)
{
    if (!c)
        return;
    char *secrets[] = {c->key_pem, c->token};
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        if (secrets[i])
            explicit_bzero(secrets[i], strlen(secrets[i]));
    char *const texts[] = {c->server,     c->server_name, c->ca_pem,
                           c->ca_file,    c->cert_pem,    c->cert_file,
                           c->key_pem,    c->key_file,    c->token,
                           c->token_file, c->namespace};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    free(c);
}

/* --- members ------------------------------------------------------------ */

/* "" is as good as absent, as kubectl has it. */
static char *take_text(struct reader *r, const char *name, size_t max)
{
    const char *text = reader_opt_string(r, name, max);
    return text && *text ? xstrdup(text) : NULL;
}

static char *take_path(struct reader *r, const char *name, const char *dir)
{
    const char *path = reader_opt_string(r, name, PATH_MAX_LEN);
    if (!path || !*path)
        return NULL;
    if (*path == '/' || !dir || !*dir)
        return xstrdup(path);
    return xasprintf("%s/%s", dir, path);
}

/* Line breaks are passed over, as Go does.  False when it is no base64, or
 * holds a NUL, which no PEM text does. */
static bool decode_base64(const char *text, struct str *out)
{
    size_t n = 0, size = strlen(text);
    cleanup_free char *plain = xmalloc(size + 1);
    for (const char *p = text; *p; p++)
        if (*p != '\n' && *p != '\r')
            plain[n++] = *p;
    bool ok = base64_decode(plain, n, out) &&
              !memchr(str_text(out), '\0', out->size);
    explicit_bzero(plain, size); /* it may be a key */
    return ok;
}

static char *take_data(struct reader *r, const char *name)
{
    cleanup_str struct str out = STR_INIT(DATA_MAX);
    const char *text = reader_opt_string(r, name, DATA_MAX);
    if (!text || !*text)
        return NULL;
    if (!decode_base64(text, &out) || out.size == 0) {
        (void)reader_fail(r, name, "is not base64 of a PEM text");
        return NULL;
    }
    if (!strstr(out.data, "-----BEGIN ")) {
        (void)reader_fail(r, name,
                          "is base64, but of no PEM text (-----BEGIN …)");
        return NULL;
    }
    return str_steal(&out);
}

/* Present and neither null, false nor empty. */
static bool is_set(const struct reader *r, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, name);
    if (!item || cJSON_IsNull(item) || cJSON_IsFalse(item))
        return false;
    if (cJSON_IsString(item))
        return item->valuestring[0] != '\0';
    return !(cJSON_IsArray(item) || cJSON_IsObject(item)) || item->child;
}

static void refuse(struct reader *r, const char *name, const char *instead)
{
    if (!r->failed && is_set(r, name))
        (void)reader_fail(r, name, "is not supported: %s", instead);
}

/* --- the parts of a kubeconfig ------------------------------------------ */

/* The entry of `list` (clusters, contexts, users) that is called `name`:
 * its member `part`.  NULL after an error. */
static const cJSON *find_part(struct reader *top, const char *list,
                              const char *part, const char *name)
{
    const cJSON *array = reader_opt_array(top, list, ENTRIES_MAX), *entry;
    const cJSON *found = NULL;
    int n = 0;
    cJSON_ArrayForEach(entry, array)
    {
        const char *is = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(entry, "name"));
        n += is && strcmp(is, name) == 0;
        if (is && strcmp(is, name) == 0)
            found = cJSON_GetObjectItemCaseSensitive(entry, part);
    }
    if (top->failed)
        return NULL;
    if (n != 1)
        (void)reader_fail(top, list,
                          n ? "\"%.100s\" is there more than once"
                            : "there is no \"%.100s\"",
                          name);
    else if (!cJSON_IsObject(found))
        (void)reader_fail(top, list, "\"%.100s\" has no %s", name, part);
    return top->failed ? NULL : found;
}

/* A name could lead anywhere: an address, or "localhost". */
static bool is_loopback(const char *host)
{
    char name[64];
    struct in_addr address;
    size_t size = strcspn(host, ":/");
    if (strncmp(host, "[::1]", 5) == 0)
        return host[5] == '\0' || host[5] == ':' || host[5] == '/';
    if (size >= sizeof name)
        return false;
    memcpy(name, host, size);
    name[size] = '\0';
    return strcmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &address) == 1 &&
            ntohl(address.s_addr) >> 24 == 127);
}

static void check_server(struct reader *r, const char *server)
{
    bool secure = strncasecmp(server, "https://", 8) == 0;
    bool plain = strncasecmp(server, "http://", 7) == 0;
    if (!secure && !plain)
        (void)reader_fail(r, "server",
                          "is \"%.100s\", must begin with https://", server);
    else if (strpbrk(server, "@?# \t\r\n"))
        (void)reader_fail(r, "server",
                          "is \"%.100s\", must be an address alone, without "
                          "user or query",
                          server);
    else if (plain && !is_loopback(server + 7))
        (void)reader_fail(r, "server",
                          "is \"%.100s\": http is allowed to this host alone "
                          "(127.0.0.1), use https",
                          server);
}

static int read_cluster(struct kube_config *c, const cJSON *json,
                        const char *dir, struct error *err)
{
    struct reader r;
    reader_init(&r, json, "cluster", err);
    const char *server = reader_string(&r, "server", 2048);
    if (!r.failed)
        check_server(&r, server);
    refuse(&r, "insecure-skip-tls-verify",
           "give the authority of the server's certificate in "
           "certificate-authority");
    refuse(&r, "proxy-url", "the API server must be reachable directly");
    c->server_name = take_text(&r, "tls-server-name", 253);
    c->ca_file = take_path(&r, "certificate-authority", dir);
    c->ca_pem = take_data(&r, "certificate-authority-data");
    int rc = reader_finish_lenient(&r);
    if (rc == 0)
        c->server = xstrdup(server);
    return rc;
}

static int read_user(struct kube_config *c, const cJSON *json, const char *dir,
                     struct error *err)
{
    static const char *const others[] = {"as", "as-uid", "as-groups",
                                         "as-user-extra"};
    struct reader r;
    reader_init(&r, json, "user", err);
    refuse(&r, "exec",
           "no command is run for credentials; use tokenFile with a token that "
           "something else renews, or client-certificate and client-key");
    refuse(&r, "auth-provider",
           "use tokenFile, or client-certificate and client-key");
    refuse(&r, "username",
           "use tokenFile, or client-certificate and client-key");
    refuse(&r, "password",
           "use tokenFile, or client-certificate and client-key");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        refuse(&r, others[i], "give the credentials of the user that is meant");
    c->cert_file = take_path(&r, "client-certificate", dir);
    c->cert_pem = take_data(&r, "client-certificate-data");
    c->key_file = take_path(&r, "client-key", dir);
    c->key_pem = take_data(&r, "client-key-data");
    c->token = take_text(&r, "token", TOKEN_MAX);
    c->token_file = take_path(&r, "tokenFile", dir);
    bool cert = c->cert_file || c->cert_pem, key = c->key_file || c->key_pem;
    if (!r.failed && cert && !key)
        (void)reader_fail(&r, "client-key",
                          "is missing for "
                          "client-certificate");
    if (!r.failed && key && !cert)
        (void)reader_fail(&r, "client-certificate",
                          "is missing for client-key");
    return reader_finish_lenient(&r);
}

static int read_context(struct kube_config *c, struct reader *top,
                        const char *dir, const char *current)
{
    const cJSON *context = find_part(top, "contexts", "context", current);
    const cJSON *cluster = NULL, *user = NULL;
    struct reader r;
    if (!context)
        return -EINVAL;
    reader_init(&r, context, "context", top->err);
    const char *cluster_name = reader_string(&r, "cluster", NAME_MAX_LEN);
    const char *user_name = reader_opt_string(&r, "user", NAME_MAX_LEN);
    c->namespace = take_text(&r, "namespace", 63);
    int rc = reader_finish_lenient(&r);
    if (rc < 0)
        return rc;
    cluster = find_part(top, "clusters", "cluster", cluster_name);
    if (cluster && user_name && *user_name)
        user = find_part(top, "users", "user", user_name);
    if (top->failed)
        return -EINVAL;
    rc = read_cluster(c, cluster, dir, top->err);
    if (rc < 0)
        return error_wrap(top->err, "cluster \"%.100s\"", cluster_name);
    if (user && (rc = read_user(c, user, dir, top->err)) < 0)
        return error_wrap(top->err, "user \"%.100s\"", user_name);
    return 0;
}

int kube_config_parse(const char *data, size_t size, const char *dir,
                      struct kube_config **ret_config, struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_with(kube_config) struct kube_config *c = xcalloc(1, sizeof *c);
    struct reader top;
    int r = yaml_parse(data, size, &json, err);
    if (r < 0)
        return r;
    reader_init(&top, json, "", err);
    const char *kind = reader_opt_string(&top, "kind", 64);
    if (!top.failed && kind && *kind && strcmp(kind, "Config") != 0)
        (void)reader_fail(&top, "kind", "is \"%s\", must be Config", kind);
    const char *current = reader_opt_string(&top, "current-context",
                                            NAME_MAX_LEN);
    if (!top.failed && (!current || !*current))
        (void)reader_fail(&top, "current-context",
                          "is not set: kubectl config use-context NAME");
    if (top.failed)
        return -EINVAL;
    if ((r = read_context(c, &top, dir, current)) < 0)
        return r;
    if (!c->namespace)
        c->namespace = xstrdup("default");
    *ret_config = steal(&c);
    return 0;
}

/* --- where it comes from ------------------------------------------------ */

static int read_file(const char *path, struct str *out, struct error *err)
{
    struct watched_file f;
    watch_init(&f, path, YAML_SIZE_MAX);
    int r = watch_poll(&f, out, err);
    watch_fini(&f);
    return r < 0 ? r : 0;
}

static int load_file(const char *path, struct kube_config **ret_config,
                     struct error *err)
{
    cleanup_str struct str text = STR_INIT(YAML_SIZE_MAX);
    const char *slash = strrchr(path, '/');
    cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path))
                                   : xstrdup(".");
    int r = read_file(path, &text, err);
    if (r < 0)
        return r;
    /* "/kubeconfig": its folder is "/", with no name before the slash */
    r = kube_config_parse(str_text(&text), text.size,
                          slash == path ? "/." : dir, ret_config, err);
    if (text.data) /* keys and tokens */
        explicit_bzero(text.data, text.cap);
    return r < 0 ? error_wrap(err, "%s", path) : 0;
}

static int read_namespace(const char *path, char **ret_name, struct error *err)
{
    cleanup_str struct str text = STR_INIT(YAML_SIZE_MAX);
    int r = read_file(path, &text, err);
    if (r < 0)
        return r;
    size_t size = strcspn(str_text(&text), " \t\r\n");
    if (size == 0 || size > 63)
        return error_set(err, EINVAL, "%s: holds no name of a namespace", path);
    *ret_name = xstrndup(str_text(&text), size);
    return 0;
}

int kube_config_in_pod(const char *host, const char *port, const char *dir,
                       struct kube_config **ret_config, struct error *err)
{
    cleanup_with(kube_config) struct kube_config *c = xcalloc(1, sizeof *c);
    size_t digits = strspn(port, "0123456789");
    if (!*host || digits == 0 || digits > 5 || port[digits])
        return error_set(err, EINVAL,
                         "KUBERNETES_SERVICE_HOST is \"%.100s\" and "
                         "KUBERNETES_SERVICE_PORT \"%.100s\": no address",
                         host, port);
    bool bare6 = strchr(host, ':') && host[0] != '[';
    c->server = xasprintf(bare6 ? "https://[%s]:%s" : "https://%s:%s", host,
                          port);
    c->ca_file = xasprintf("%s/ca.crt", dir);
    c->token_file = xasprintf("%s/token", dir);
    cleanup_free char *path = xasprintf("%s/namespace", dir);
    const char *const needed[] = {c->ca_file, c->token_file};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (access(needed[i], R_OK) < 0)
            return error_errno(err, errno,
                               "%s: is the pod's service account token "
                               "mounted (automountServiceAccountToken)?",
                               needed[i]);
    int r = read_namespace(path, &c->namespace, err);
    if (r == 0)
        *ret_config = steal(&c);
    return r;
}

int kube_config_load(const char *path, struct kube_config **ret_config,
                     struct error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *named = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (path && *path)
        return load_file(path, ret_config, err);
    if (host && *host)
        return kube_config_in_pod(host, port ? port : "443", POD_FOLDER,
                                  ret_config, err);
    size_t first = named ? strcspn(named, ":") : 0;
    if (named && named[first] == ':' && first == 0)
        named += strspn(named, ":"), first = strcspn(named, ":");
    cleanup_free char *found = first  ? xstrndup(named, first)
                               : home ? xasprintf("%s/.kube/config", home)
                                      : NULL;
    if (!found)
        return error_set(err, ENOENT,
                         "no kubeconfig: not in a pod, and neither KUBECONFIG "
                         "nor HOME is set");
    int r = load_file(found, ret_config, err);
    if (r == -ENOENT && !first && access(found, F_OK) < 0)
        return error_set(err, ENOENT,
                         "no kubeconfig: not in a pod, KUBECONFIG is not set, "
                         "and there is no %.200s; name one with --kubeconfig",
                         found);
    return r;
}
