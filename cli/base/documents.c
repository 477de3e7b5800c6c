#include "cli/base/documents.h"

#include <string.h>

#include "cli/base/say.h"
#include "lib/base/jscan.h"
#include "lib/base/mem.h"
#include "lib/io/yaml.h"

static int add_document(void *ctx, cJSON *json)
{
    cleanup_free char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    str_add(ctx, text);
    str_add_c(ctx, '\n');
    return 0;
}

/* Documents of JSON go as they are, for the server names what is wrong in
 * them by line; all else is YAML. */
static bool is_json(const struct str *text)
{
    const char *p = str_text(text);
    struct jscan s;
    jscan_init(&s, p, text->size);
    while (s.p < s.end) {
        s.p += strspn(s.p, " \t\r\n");
        if (s.p == s.end)
            break;
        if (!strchr("{[", *s.p) || !jscan_skip(&s))
            return false;
    }
    return true;
}

static int as_json(const char *name, const struct str *text,
                   struct str *ret_body)
{
    struct error err = {0};
    if (is_json(text)) {
        str_add_n(ret_body, str_text(text), text->size);
        return 0;
    }
    if (text->size > YAML_SIZE_MAX)
        return cli_fail("%s: larger than %d MiB, which is too much for YAML",
                        name, YAML_SIZE_MAX >> 20);
    if (yaml_each(str_text(text), text->size, add_document, ret_body, &err) < 0)
        return cli_fail("%s: %s", name, err.text);
    return 0;
}

int documents_read(const char *name, struct str *ret_body)
{
    cleanup_str struct str text = STR_INIT(DOCUMENTS_MAX);
    int rc = cli_read_input(name, &text);
    if (rc == 0)
        rc = as_json(name, &text, ret_body);
    if (rc == 0 && ret_body->size == 0)
        rc = cli_fail("%s: has no document", name);
    return rc;
}
