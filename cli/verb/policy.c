/* biga policy */
#include <errno.h>
#include <string.h>

#include "cli/base/say.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "model/decide/policy.h"

/* --- checking a file ---------------------------------------------------- */

static int read_whole(const char *path, struct str *out, struct error *err)
{
    char buffer[65536];
    size_t n;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    if (!f)
        return error_errno(err, errno, "%s", path);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        str_add_n(out, buffer, n);
    int r = ferror(f) ? error_errno(err, errno, "%s", path) : 0;
    if (f != stdin)
        (void)fclose(f);
    if (r == 0 && out->overflow)
        r = error_set(err, EFBIG, "%s: has more than %d bytes", path,
                      POLICY_TEXT_MAX);
    return r;
}

static int check(struct cli *c, const char *path)
{
    cleanup_str struct str text = STR_INIT(POLICY_TEXT_MAX);
    cleanup_with(policy) struct policy *policy = NULL;
    struct error err = {0};
    int r = read_whole(path, &text, &err);
    if (r == 0) {
        r = policy_read(str_text(&text), text.size, &policy, &err);
        if (r < 0)
            (void)error_wrap(&err, "%s", path);
    }
    if (r < 0)
        return cli_fail("%s", err.text);
    if (c->set.json)
        str_addf(&c->out,
                 "{\"hash\":\"%016llx\",\"quotas\":%zu,\"services\":%zu}\n",
                 (unsigned long long)policy->hash, policy->n_quotas,
                 policy->n_services);
    else
        str_addf(&c->out, "%s: right: %zu quota%s, %zu share%s of services\n",
                 path, policy->n_quotas, policy->n_quotas == 1 ? "" : "s",
                 policy->n_services, policy->n_services == 1 ? "" : "s");
    return 0;
}

/* --- what is in force --------------------------------------------------- */

static void add_limit(struct table *t, const cJSON *quota, const char *name)
{
    const cJSON *sum = cJSON_GetObjectItemCaseSensitive(quota, name);
    double used = json_number(sum, "used"), limit = json_number(sum, "limit");
    char text[64];
    if (limit < 0) {
        table_addf(t, "%.0f", used);
        return;
    }
    (void)snprintf(text, sizeof text, "%.0f/%.0f", used, limit);
    table_add_style(t, used >= limit ? STYLE_BAD : STYLE_PLAIN, text);
}

static void quotas_render(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"NAMESPACE", false},
        {"CARDS", true},
        {"CARD CORES", true},
        {"CARD MEMORY MiB", true},
    };
    cleanup_table struct table t;
    const cJSON *quota;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cJSON_ArrayForEach(quota, list)
    {
        table_add(&t, json_text(quota, "namespace"));
        add_limit(&t, quota, "cards");
        add_limit(&t, quota, "cardCores");
        add_limit(&t, quota, "cardMemoryMiB");
    }
    table_sort(&t);
    cli_write_rows(c, &t, "No namespace has a quota.\n");
}

static void add_devices(struct table *t, const cJSON *entry)
{
    cleanup_str struct str names = STR_INIT(4096);
    const cJSON *name;
    cJSON_ArrayForEach(name, json_list(entry, "sets"))
    {
        str_addf(&names, "%s%s", names.size ? " " : "",
                 cJSON_IsString(name) ? name->valuestring : "?");
    }
    table_add(t, json_text(entry, "namespace"));
    table_add(t, str_text(&names));
}

static void devices_render(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"NAMESPACE", false},
        {"DEVICES OF CARDS", false},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cli_add_rows(&t, list, add_devices);
    cli_write_rows(c, &t, "No namespace may have devices of cards.\n");
}

static void add_service(struct table *t, const cJSON *service)
{
    const cJSON *shares = cJSON_GetObjectItemCaseSensitive(service, "shares");
    static const char *const patterns[] = {"nodes", "models", "pci"};
    static const char *const states[] = {"held", "short", "never"};
    table_addf(t, "%s/%s", json_text(service, "namespace"),
               json_text(service, "name"));
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        table_add(t, json_text(service, patterns[i]));
    table_addf(t, "%.0f", json_number(service, "cores"));
    table_addf(t, "%.0f", json_number(service, "memoryMiB"));
    const cJSON *priority = cJSON_GetObjectItemCaseSensitive(service,
                                                             "priority");
    table_addf(t, "%.0f", cJSON_IsNumber(priority) ? priority->valuedouble : 0);
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        table_addf(t, "%.0f", json_number(shares, states[i]));
}

static void lacking_render(struct cli *c, const cJSON *services)
{
    const cJSON *service, *card;
    cJSON_ArrayForEach(service, services)
    {
        cJSON_ArrayForEach(card, json_list(service, "lacking"))
        {
            bool others = strcmp(json_text(card, "state"), "short") == 0;
            cli_line(
                c, "%s/%s lacks its share on node %s %s: %s",
                json_text(service, "namespace"), json_text(service, "name"),
                json_text(card, "node"), json_text(card, "card"),
                others ? "others still have it" : "the card cannot hold it");
        }
    }
}

static void services_render(struct cli *c, const cJSON *list)
{
    static const struct table_column columns[] = {
        {"SERVICE", false}, {"NODES", false}, {"MODELS", false},
        {"PCI", false},     {"CORES", true},  {"MEMORY MiB", true},
        {"PRIORITY", true}, {"HELD", true},   {"SHORT", true},
        {"NEVER", true},
    };
    cleanup_table struct table t;
    table_init_columns(&t, columns, ARRAY_LEN(columns));
    cli_add_rows(&t, list, add_service);
    cli_write_rows(c, &t, "No service has a share of the cards.\n");
    lacking_render(c, list);
}

/* Only what is of that namespace. */
static void choose(cJSON *policy, const char *namespace)
{
    static const char *const lists[] = {"quotas", "services", "devices"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cJSON *list = cJSON_GetObjectItemCaseSensitive(policy, lists[i]);
        for (cJSON *x = list ? list->child : NULL, *next; x; x = next) {
            next = x->next;
            if (strcmp(json_text(x, "namespace"), namespace) != 0)
                cJSON_Delete(cJSON_DetachItemViaPointer(list, x));
        }
    }
}

static int fetch(struct cli *c, cJSON **ret_json)
{
    const char *namespace = cli_namespace(c);
    cleanup_with(json) cJSON *json = NULL;
    const bool as_json = c->set.json;
    if (!namespace)
        return cli_get(c, "/v1/policy", ret_json);
    c->set.json = false; /* what is asked is for us */
    int rc = cli_get(c, "/v1/policy", &json);
    c->set.json = as_json;
    if (rc)
        return rc;
    choose(json, namespace);
    if (as_json) {
        cleanup_free char *text = cJSON_PrintUnformatted(json);
        str_addf(&c->out, "%s\n", text ? text : "");
    } else {
        *ret_json = steal(&json);
    }
    return 0;
}

int verb_policy(struct cli *c, int argc, char **argv)
{
    cleanup_with(json) cJSON *json = NULL;
    (void)argc;
    (void)argv;
    if (c->set.check && c->set.watch)
        return cli_usage("policy: a file is not watched: --check, or --watch");
    if (c->set.check)
        return check(c, c->set.check);
    int rc = fetch(c, &json);
    if (rc || !json)
        return rc;
    if (*json_text(json, "error")) {
        str_add(&c->out, "The file as it is now is not in force, what follows "
                         "is the policy before: ");
        text_clean(json_text(json, "error"), &c->out);
        str_add(&c->out, "\n\n");
    }
    quotas_render(c, json_list(json, "quotas"));
    str_add_c(&c->out, '\n');
    services_render(c, json_list(json, "services"));
    str_add_c(&c->out, '\n');
    devices_render(c, json_list(json, "devices"));
    return 0;
}
