#include "cli/base/cli.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "lib/base/mem.h"
#include "model/topo/topo.h"

enum { TIMEOUT_MS = 10000 };

DEFINE_CLEANUP(http_client, struct http_client *, http_client_destroy)

int cli_complain_unreachable(const struct cli *c, const struct error *err)
{
    /* one with TLS is most often a cluster's */
    const char *start =
        strncasecmp(c->set.server, "https:", 6) == 0
            ? "See whether one serves, in a cluster with\n"
              "`kubectl -n biga-system get pods,lease`,"
            : "Start a server with `biga-extender` (or `biga demo`),";
    return cli_fail("no answer from %s: %s\n"
                    "%s or name another one\nwith --server URL or BIGA_SERVER.",
                    c->set.server, err->text, start);
}

int cli_complain(const struct http_answer *a)
{
    (void)cli_fail_answer("server", a);
    if (a->status == 401)
        fputs("Give it with --token-file FILE or BIGA_TOKEN_FILE.\n", stderr);
    else if (a->status == 403)
        fputs("In a cluster, ClusterRole biga-reader lets a user read "
              "(deploy/README.md).\n",
              stderr);
    return CLI_FAILED;
}

static int understand(struct cli *c, struct http_answer *a, cJSON **ret_json)
{
    struct error err = {0};
    if (a->status < 200 || a->status > 299)
        return cli_complain(a);
    if (c->set.json || !ret_json) {
        str_add_n(&c->out, str_text(&a->body), a->body.size);
        if (ret_json &&
            (!a->body.size || a->body.data[a->body.size - 1] != '\n'))
            str_add_c(&c->out, '\n');
        return 0;
    }
    if (json_parse(str_text(&a->body), a->body.size, ret_json, &err))
        return cli_fail("the server's answer is no JSON: %s", err.text);
    return 0;
}

/* Does nothing between here and there see what is sent? */
static bool is_near(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = url + strlen("http://");
    if (strchr(url, '@')) /* a name before it is no host */
        return false;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t size = strlen(hosts[i]);
        if (strncasecmp(host, hosts[i], size) == 0 &&
            strchr(":/", host[size])) /* or the end */
            return true;
    }
    return false;
}

/* "Bearer " and the one word that the file holds. */
static int read_token(const char *path, struct str *out, struct error *err)
{
    char text[CLI_TOKEN_MAX + 2];
    cleanup_file FILE *f = fopen(path, "re");
    size_t size = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (!f || ferror(f))
        return error_errno(err, errno, "--token-file: %s", path);
    text[size] = '\0';
    size_t begin = strspn(text, " \t\r\n");
    size_t length = strcspn(text + begin, " \t\r\n");
    size_t end = begin + length;
    if (size > CLI_TOKEN_MAX || length == 0 ||
        end + strspn(text + end, " \t\r\n") != size)
        return error_set(err, EINVAL,
                         "--token-file: %s: must hold one token, one word of "
                         "up to %d bytes",
                         path, CLI_TOKEN_MAX);
    for (size_t i = begin; i < end; i++)
        if (text[i] < '!' || text[i] > '~')
            return error_set(err, EINVAL,
                             "--token-file: %s: byte %zu is not printable "
                             "ASCII",
                             path, i + 1);
    str_add(out, "Bearer ");
    str_add_n(out, text + begin, length);
    return 0;
}

int cli_authorization(const struct cli *c, struct str *out, struct error *err)
{
    const struct cli_settings *s = &c->set;
    if (!s->cert != !s->key)
        return error_set(err, EINVAL, "--cert and --key: only one is given");
    if (!s->token_file)
        return 0;
    if (strncasecmp(s->server, "http://", 7) == 0 && !is_near(s->server))
        return error_set(err, EINVAL,
                         "--token-file: a token is not sent to %s without TLS",
                         s->server);
    return read_token(s->token_file, out, err);
}

int cli_connect(const struct cli *c, unsigned timeout_ms,
                const atomic_bool *stop, struct http_client **ret_client,
                struct error *err)
{
    const struct cli_settings *s = &c->set;
    cleanup_str struct str token = STR_INIT(CLI_AUTHORIZATION_MAX);
    const struct http_config config = {
        .base = s->server,
        .timeout_ms = timeout_ms,
        .ca_file = s->ca,
        .cert_file = s->cert,
        .key_file = s->key,
        .stop = stop,
    };
    int r = cli_authorization(c, &token, err);
    if (r == 0 && (r = http_client_open(&config, ret_client, err)) < 0)
        return error_wrap(err, "--server");
    if (r == 0 && token.size)
        http_client_set_authorization(*ret_client, token.data);
    return r;
}

/* What is asked of the server. */
struct asking {
    const char *method, *path;
    const struct str *body; /* NULL: none */
    bool may_lack;          /* 404 is an answer: there is nothing */
};

static int ask(struct cli *c, const struct asking *a, cJSON **ret_json)
{
    const struct str *body = a->body;
    cleanup_with(http_client) struct http_client *http = NULL;
    struct http_answer answer = {.body = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    if (cli_connect(c, TIMEOUT_MS, NULL, &http, &err))
        return cli_usage("%s", err.text);
    int rc;
    c->status = 0;
    if (http_call(http, a->method, a->path, body ? str_text(body) : NULL,
                  body ? body->size : 0, NULL, &answer, &err))
        rc = cli_complain_unreachable(c, &err);
    else if (a->may_lack && answer.status == 404)
        rc = 0;
    else
        rc = understand(c, &answer, ret_json);
    c->status = answer.status;
    str_fini(&answer.body);
    return rc;
}

int cli_peek_with(struct http_client *http, const char *path, cJSON **ret_json)
{
    struct http_answer answer = {.body = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    int r = http_call(http, "GET", path, NULL, 0, NULL, &answer, &err);
    if (r == 0 && answer.status != 200)
        r = -ENOENT;
    if (r == 0)
        r = json_parse(str_text(&answer.body), answer.body.size, ret_json,
                       &err);
    str_fini(&answer.body);
    return r;
}

int cli_peek(struct cli *c, const char *path, unsigned timeout_ms,
             cJSON **ret_json)
{
    cleanup_with(http_client) struct http_client *http = NULL;
    struct error err = {0};
    int r = cli_connect(c, timeout_ms, NULL, &http, &err);
    return r < 0 ? r : cli_peek_with(http, path, ret_json);
}

int cli_get(struct cli *c, const char *path, cJSON **ret_json)
{
    return ask(c, &(struct asking){"GET", path, NULL, false}, ret_json);
}

int cli_get_known(struct cli *c, const char *path, cJSON **ret_json)
{
    return ask(c, &(struct asking){"GET", path, NULL, true}, ret_json);
}

int cli_get_text(struct cli *c, const char *path)
{
    return ask(c, &(struct asking){"GET", path, NULL, false}, NULL);
}

int cli_post(struct cli *c, const char *path, const struct str *body,
             cJSON **ret_json)
{
    return ask(c, &(struct asking){"POST", path, body, false}, ret_json);
}

int cli_delete(struct cli *c, const char *path, cJSON **ret_json)
{
    return ask(c, &(struct asking){"DELETE", path, NULL, false}, ret_json);
}

int cli_read_input(const char *name, struct str *ret_text)
{
    bool standard = strcmp(name, "-") == 0;
    cleanup_file FILE *f = standard ? NULL : fopen(name, "re");
    FILE *from = standard ? stdin : f;
    char block[4096];
    size_t n;
    if (!from)
        return cli_fail("%s: %s", name, strerror(errno));
    while (!ret_text->overflow && (n = fread(block, 1, sizeof block, from)) > 0)
        str_add_n(ret_text, block, n);
    if (ferror(from) || ret_text->overflow)
        return cli_fail("%s: %s", name,
                        ret_text->overflow ? "larger than 16 MiB"
                                           : strerror(errno));
    return 0;
}

void cli_add_encoded(struct str *path, const char *text)
{
    for (; *text; text++) {
        unsigned char u = (unsigned char)*text;
        if (isalnum(u) || strchr("-._~", u))
            str_add_c(path, *text);
        else
            str_addf(path, "%%%02X", u);
    }
}

void cli_add_query(struct str *path, const char *key, const char *text)
{
    if (!text)
        return;
    str_addf(path, "&%s=", key);
    cli_add_encoded(path, text);
}

const char *json_text(const cJSON *object, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(x) ? x->valuestring : "";
}

double json_number(const cJSON *object, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(x) ? x->valuedouble : -1;
}

bool json_true(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

const cJSON *json_list(const cJSON *object, const char *name)
{
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsArray(x) ? x : NULL;
}

bool cli_any(const cJSON *list, const char *name)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        if (*json_text(x, name) || cJSON_GetArraySize(json_list(x, name)) > 0)
            return true;
    }
    return false;
}

const char *cli_namespace(const struct cli *c)
{
    return c->set.all_namespaces || !*c->set.namespace ? NULL
                                                       : c->set.namespace;
}

int cli_qualify(struct cli *c, const char *what, char **arg)
{
    const char *slash = strchr(*arg, '/'), *own = c->set.namespace;
    size_t size = slash ? (size_t)(slash - *arg) : 0;
    bool same = own && strlen(own) == size && strncmp(own, *arg, size) == 0;
    if (slash && !same && cli_is_given(c, "namespace"))
        return cli_usage("%s: is \"%s\", but --namespace is \"%s\"", what, *arg,
                         own);
    free(c->name);
    c->name = slash ? xstrdup(*arg)
                    : xasprintf("%s/%s", own && *own ? own : "default", *arg);
    *arg = c->name;
    return 0;
}

void cli_pod_key(const char *arg, struct str *ret_key)
{
    if (!strchr(arg, '/'))
        str_add(ret_key, "default/");
    str_add(ret_key, arg);
}

void cli_add_name(struct str *path, const char *name)
{
    const char *slash = strchr(name, '/');
    cleanup_free char *namespace = slash
                                       ? xstrndup(name, (size_t)(slash - name))
                                       : xstrdup("default");
    cli_add_encoded(path, namespace);
    str_add_c(path, '/');
    cli_add_encoded(path, slash ? slash + 1 : name);
}

void cli_add_rows(struct table *t, const cJSON *list,
                  void (*add)(struct table *t, const cJSON *each))
{
    const cJSON *each;
    cJSON_ArrayForEach(each, list)
    {
        add(t, each);
    }
}

void cli_write_rows(struct cli *c, const struct table *t, const char *none)
{
    if (t->n_cells)
        table_write(t, c->colours, &c->out);
    else
        str_add(&c->out, none);
}

void cli_write_section(struct cli *c, const struct table *t)
{
    if (!t->n_cells)
        return;
    str_add_c(&c->out, '\n');
    table_write(t, c->colours, &c->out);
}

void cli_add_devices(struct table *t, const cJSON *list)
{
    cleanup_str struct str text = STR_INIT(TABLE_CELL_MAX);
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        const char *name = cJSON_GetStringValue(x);
        const char *pci = name ? name : json_text(x, "pci");
        str_addf(&text, "%s%s", text.size ? "," : "",
                 *pci ? pci : json_text(x, "id"));
    }
    table_add(t, str_text(&text));
}

void cli_add_known(struct table *t, double number)
{
    if (number >= 0)
        table_addf(t, "%.0f", number);
    else
        table_add(t, "");
}

const char *cli_relation(const cJSON *of)
{
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(of, "alignment");
    if (cJSON_IsNull(own))
        return "-";
    return json_text(own ? own : of, "relation"); /* an older server */
}

enum table_style relation_style(const char *relation)
{
    struct error err = {0};
    enum relation r;
    if (relation_parse(relation, &r, &err))
        return STYLE_PLAIN;
    return r <= RELATION_PXB    ? STYLE_GOOD
           : r <= RELATION_NODE ? STYLE_FAIR
                                : STYLE_BAD;
}
