#include "lib/io/yaml_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "lib/base/mem.h"

enum { NUMBER_MAX = 32 };

/* Does it read as a text without quotes, whoever reads it? */
static bool is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    if (!strchr(safe, *text) || strspn(text, safe) != strlen(text) ||
        strchr("0123456789-.", *text)) /* also "" */
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    return true;
}

static int take(void *ctx, unsigned char *data, size_t size)
{
    str_add_n(ctx, (const char *)data, size);
    return 1;
}

/* All that it can fail by is memory. */
static void emit(yaml_emitter_t *e, yaml_event_t *event, int made)
{
    if (!made || !yaml_emitter_emit(e, event))
        abort(); /* as x*alloc does */
}

static void scalar(yaml_emitter_t *e, const char *text,
                   yaml_scalar_style_t style)
{
    yaml_event_t event;
    emit(e, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL,
                                      (const yaml_char_t *)text,
                                      (int)strlen(text), 1, 1, style));
}

static void text(yaml_emitter_t *e, const char *text)
{
    scalar(e, text,
           is_plain(text)       ? YAML_PLAIN_SCALAR_STYLE
           : strchr(text, '\n') ? YAML_LITERAL_SCALAR_STYLE
                                : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static void number(yaml_emitter_t *e, double value)
{
    char digits[NUMBER_MAX];
    bool whole = fabs(value) < 1e15 && trunc(value) == value;
    (void)snprintf(digits, sizeof digits, whole ? "%.0f" : "%.15g", value);
    if (strtod(digits, NULL) != value) /* 0.1 needs not all digits */
        (void)snprintf(digits, sizeof digits, "%.17g", value);
    scalar(e, digits, YAML_PLAIN_SCALAR_STYLE);
}

static void begin(yaml_emitter_t *e, const cJSON *json)
{
    yaml_event_t event;
    bool flow = !json->child; /* "[]", "{}" */
    if (cJSON_IsObject(json))
        emit(e, &event,
             yaml_mapping_start_event_initialize(
                 &event, NULL, NULL, 1,
                 flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE));
    else
        emit(e, &event,
             yaml_sequence_start_event_initialize(
                 &event, NULL, NULL, 1,
                 flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
}

static void end(yaml_emitter_t *e, const cJSON *json)
{
    yaml_event_t event;
    emit(e, &event,
         cJSON_IsObject(json) ? yaml_mapping_end_event_initialize(&event)
                              : yaml_sequence_end_event_initialize(&event));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as json_parse() lets in */
static void value(yaml_emitter_t *e, const cJSON *json)
{
    const cJSON *x;
    if (cJSON_IsString(json)) {
        text(e, json->valuestring);
    } else if (cJSON_IsNumber(json)) {
        number(e, json->valuedouble);
    } else if (cJSON_IsBool(json)) {
        scalar(e, cJSON_IsTrue(json) ? "true" : "false",
               YAML_PLAIN_SCALAR_STYLE);
    } else if (cJSON_IsNull(json)) {
        scalar(e, "null", YAML_PLAIN_SCALAR_STYLE);
    } else {
        begin(e, json);
        cJSON_ArrayForEach(x, json)
        {
            if (cJSON_IsObject(json))
                text(e, x->string);
            value(e, x);
        }
        end(e, json);
    }
}

void yaml_write(const cJSON *json, struct str *out)
{
    yaml_emitter_t e;
    yaml_event_t event;
    if (!yaml_emitter_initialize(&e))
        abort();
    yaml_emitter_set_output(&e, take, out);
    yaml_emitter_set_unicode(&e, 0); /* what is hidden there is escaped */
    yaml_emitter_set_width(&e, -1);
    emit(&e, &event,
         yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(&e, &event,
         yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    value(&e, json);
    emit(&e, &event, yaml_document_end_event_initialize(&event, 1));
    emit(&e, &event, yaml_stream_end_event_initialize(&event));
    yaml_emitter_delete(&e);
}
