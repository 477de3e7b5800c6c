/* Any bytes as other people's text: cleaned, escaped, quoted or in an error,
 * nothing hidden is left; and what is quoted is a JSON string. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hidden_text.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* `but` may be there. */
static void expect_shown(const char *text, const char *but)
{
    const size_t size = strlen(text);
    for (size_t i = 0, n; i < size; i += n) {
        bool hidden;
        n = hidden_text_next(text + i, size - i, &hidden);
        if (hidden && !strchr(but, text[i]))
            abort();
    }
}

static void expect_json(const char *text)
{
    cleanup_str struct str list = STR_INIT(STR_MAX_DEFAULT);
    cleanup_with(json) cJSON *json = NULL;
    struct error err;
    str_addf(&list, "[%s]", text);
    if (json_parse(list.data, list.size, &json, &err) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xstrndup((const char *)data, size);
    cleanup_str struct str clean = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str page = STR_INIT(STR_MAX_DEFAULT);
    cleanup_str struct str quoted = STR_INIT(STR_MAX_DEFAULT);
    struct error err;
    text_clean(text, &clean);
    text_escape(text, &page);
    text_quote_n(text, strlen(text), &quoted);
    (void)error_set(&err, EINVAL, "%s", text);
    error_wrap(&err, "%s", text);
    expect_shown(str_text(&clean), "");
    expect_shown(str_text(&page), "");
    expect_shown(quoted.data, "");
    expect_shown(err.text, "\n\t");
    expect_json(quoted.data);
    return 0;
}
