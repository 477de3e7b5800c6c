#include "cli/base/output.h"

#include <ctype.h>
#include <string.h>

#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "lib/io/yaml_write.h"

int output_choose(struct cli *c)
{
    static const char *const names[] = {
        [OUTPUT_TABLE] = "table", [OUTPUT_WIDE] = "wide",
        [OUTPUT_JSON] = "json",   [OUTPUT_YAML] = "yaml",
        [OUTPUT_NAME] = "name",
    };
    const char *asked = c->set.output;
    bool given = cli_is_given(c, "output");
    bool json = cli_is_given(c, "json") || !given; /* else a variable's */
    for (size_t i = 0; asked && i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], asked) == 0)
            c->form = (enum output_form)i;
    if (c->set.json && json && given && c->form != OUTPUT_JSON)
        return cli_usage("--json is -o json, but --output is \"%s\"", asked);
    if (c->set.json && json)
        c->form = OUTPUT_JSON;
    c->set.json = c->form >= OUTPUT_JSON;
    return 0;
}

static bool add_text(const cJSON *object, const char *member, struct str *out)
{
    const char *text = json_text(object, member);
    text_clean(text, out);
    return *text;
}

bool output_name(const cJSON *object, struct str *out)
{
    const cJSON *pod = cJSON_GetObjectItemCaseSensitive(object, "pod");
    const bool named = *json_text(object, "name");
    const char *id = *json_text(object, "pci")  ? "pci"
                     : *json_text(object, "id") ? "id"
                                                : "card"; /* of an event */
    if (!named && *json_text(pod, "name"))
        return output_name(pod, out);
    if (add_text(object, named ? "namespace" : "node", out) &&
        (named || *json_text(object, id)))
        str_add_c(out, '/');
    else if (!named)
        return *json_text(object, "node");
    return add_text(object, named ? "name" : id, out);
}

/* "Pod" as "pod/"; of what is of several kinds, as events, its own */
static void add_kind(const cJSON *object, const char *kind, struct str *out)
{
    const char *own = json_text(object, "kind");
    bool says = (!*kind || isupper((unsigned char)*own)) &&
                output_name(object, out);
    str_reset(out);
    for (const char *p = says ? own : kind; *p; p++)
        str_add_c(out, (char)tolower((unsigned char)*p));
    str_add_c(out, '/');
}

static int add_names(const cJSON *json, const char *kind, struct str *out)
{
    const cJSON *x, *list = json_list(json, "items");
    cleanup_str struct str name = STR_INIT(8192);
    cJSON_ArrayForEach(x, list)
    {
        int rc = add_names(x, kind, out);
        if (rc)
            return rc;
    }
    if (list)
        return 0;
    add_kind(json, kind, &name);
    if (str_text(&name)[0] == '/' || !output_name(json, &name))
        return cli_usage("-o name: what was asked for has no name; it may be "
                         "table, wide, json or yaml");
    str_addf(out, "%s\n", str_text(&name));
    return 0;
}

static void yaml_add(const cJSON *json, bool first, struct str *out)
{
    if (!first)
        str_add(out, "---\n");
    yaml_write(json, out);
}

/* The next of the JSON texts that a command has printed, one after the other. */
static int next_json(const char **at, const char *end, cJSON **ret_json,
                     struct error *err)
{
    struct jscan scan;
    struct jtext bytes;
    jscan_init(&scan, *at, (size_t)(end - *at));
    if (!jscan_raw(&scan, &bytes))
        return jscan_error(&scan, err);
    *at += jscan_offset(&scan);
    *at += strspn(*at, " \r\n\t");
    return json_parse(bytes.data, bytes.size, ret_json, err);
}

int output_finish(struct cli *c)
{
    const char *kind = c->kind ? c->kind : "";
    struct str made = STR_INIT(STR_MAX_DEFAULT);
    const char *at = str_text(&c->out), *end = at + c->out.size;
    struct error err = {0};
    int rc = 0;
    if (c->form != OUTPUT_YAML && c->form != OUTPUT_NAME)
        return 0;
    for (bool first = !c->seen; rc == 0 && at < end; first = false) {
        cleanup_with(json) cJSON *json = NULL;
        if (next_json(&at, end, &json, &err) < 0)
            rc = cli_fail("the answer is no JSON: %s", err.text);
        else if (c->form == OUTPUT_NAME)
            rc = add_names(json, kind, &made);
        else
            yaml_add(json, first, &made);
    }
    str_fini(&c->out);
    c->out = made;
    return rc;
}
