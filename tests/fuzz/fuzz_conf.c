/* The parser of configuration files: what it takes obeys the table. */
#include "lib/io/conf.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct settings {
    const char *text, *choice, *list;
    bool flag;
    int64_t number, time;
};

#define AT(member) offsetof(struct settings, member)
static const struct conf_setting table[] = {
    {.name = "text", .offset = AT(text), .help = "t"},
    {.name = "choice",
     .type = CONF_CHOICE,
     .offset = AT(choice),
     .otherwise = "a",
     .choices = "a|bb|ccc",
     .help = "c"},
    {.name = "list", .type = CONF_LIST, .offset = AT(list), .help = "l"},
    {.name = "flag", .type = CONF_FLAG, .offset = AT(flag), .help = "f"},
    {.name = "number",
     .type = CONF_INT,
     .offset = AT(number),
     .min = -9,
     .max = 99,
     .help = "n"},
    {.name = "time",
     .type = CONF_DURATION,
     .offset = AT(time),
     .min = 0,
     .max = 60000,
     .help = "d"},
};
static const struct conf_program program = {
    .name = "fuzz",
    .settings = table,
    .n_settings = ARRAY_LEN(table),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings s = {0};
    struct error err = {0};
    int rc = conf_read_text(&program, "fuzz", (const char *)data, size, &s,
                            &err);
    if (rc < 0) {
        assert(rc == -EINVAL && strncmp(err.text, "fuzz:", 5) == 0);
        assert(!s.choice);
        return 0;
    }
    assert(strcmp(s.choice, "a") == 0 || strcmp(s.choice, "bb") == 0 ||
           strcmp(s.choice, "ccc") == 0);
    assert(s.number >= -9 && s.number <= 99);
    assert(s.time >= 0 && s.time <= 60000);
    assert(!s.text || strlen(s.text) <= 4096);
    conf_fini(&program, &s);
    return 0;
}
