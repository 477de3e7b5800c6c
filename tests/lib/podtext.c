#include "tests/lib/podtext.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/base/mem.h"

char *pod_quoted(const char *text)
{
    char *copy = xstrdup(text);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

int pod_read_bytes(const char *json, size_t size, struct demand *d,
                   struct error *err)
{
    struct demand_config config;
    struct jscan s;
    demand_config_default(&config);
    jscan_init(&s, json, size);
    int rc = demand_read(&s, &config, d, err);
    if (rc == 0 || rc == -EDOM)
        cr_assert(jscan_end(&s), "cursor not behind the pod: %s", json);
    return rc;
}

struct demand pod_read_ok(const char *text)
{
    cleanup_free char *json = pod_quoted(text);
    struct demand d;
    struct error err = {0};
    memset(&d, 0xee, sizeof d);
    int rc = pod_read_bytes(json, strlen(json), &d, &err);
    cr_assert_eq(rc, 0, "%s\n%s", err.text, text);
    return d;
}

/* Refused with this code, with a text that contains `want`; the
 * out-parameter says no more than whose pod it is, or is not touched. */
void pod_refused(int code, const char *text, const char *want)
{
    cleanup_free char *json = pod_quoted(text);
    cleanup_free char *expected = pod_quoted(want);
    struct demand d, before;
    struct error err = {0};
    memset(&d, 0xee, sizeof d);
    before = d;
    int rc = pod_read_bytes(json, strlen(json), &d, &err);
    cr_assert_eq(rc, -code, "%d for %s: %s", rc, text, err.text);
    cr_assert_eq(err.code, code);
    cr_assert(strstr(err.text, expected), "\"%s\" is not in \"%s\"", expected,
              err.text);
    if (code == EDOM) { /* all but the names says nothing */
        memset(&before, 0, sizeof before);
        before.within = before.prefer_within = DEMAND_ANYWHERE;
        memcpy(before.name, d.name, sizeof d.name);
        memcpy(before.namespace, d.namespace, sizeof d.namespace);
        memcpy(before.uid, d.uid, sizeof d.uid);
    }
    cr_assert_eq(memcmp(&d, &before, sizeof d), 0);
}
