#include "model/pod/pod_keys.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

static struct error err;

static int check(const char *json)
{
    struct jscan s;
    err = (struct error){0};
    jscan_init(&s, json, strlen(json));
    return pod_keys_check(&s, &err);
}

#define LABELS(keys) "{\"metadata\":{\"name\":\"p\",\"labels\":{" keys "}}}"
#define NOTES(keys) "{\"metadata\":{\"annotations\":{" keys "}}}"
#define REQUESTS(keys)                                                         \
    "{\"spec\":{\"containers\":[{},{\"resources\":{\"requests\":{" keys "}}}]" \
    "}}"

#define GATE(key) \
    "{\"spec\":{\"readinessGates\":[{\"conditionType\":\"" key "\"}]}}"

#define SCHEDULING_GATE(key)                                                   \
    "{\"spec\":{\"schedulingGates\":[{\"name\":\"x\"},{\"name\":\"" key "\"}]" \
    "}}"

static void refuse(const char *json, const char *text)
{
    cr_expect_eq(check(json), -EDOM, "%s", json);
    cr_expect_str_eq(err.text, text);
}

/* Said by a resource or an annotation. */
static bool twice(const char *key)
{
    return strncmp(key, "biga.dev/card", 13) == 0 &&
           (key[13] == '\0' || strcmp(key, "biga.dev/card-cores") == 0 ||
            strcmp(key, "biga.dev/card-memory-mib") == 0);
}

static bool note(enum word_place place)
{
    return place == WORD_ANNOTATION || place == WORD_RESOURCE;
}

Test(pod_keys, every_word_at_its_place_passes_and_nowhere_else)
{
    static const char *const forms[WORD_PLACES] = {
        LABELS("\"%s\":\"1\""), NOTES("\"%s\":\"1\""), REQUESTS("\"%s\":\"1\""),
        GATE("%s"), SCHEDULING_GATE("%s")};
    struct word w;
    char json[512];
    size_t n = 0;
    for (; pod_keys_get(n, &w); n++)
        for (unsigned p = 0; p < WORD_PLACES; p++) {
            bool foreign = strncmp(w.key, "biga.dev/", 9) != 0;
            cleanup_str struct str text = STR_INIT(512);
            char *at = strstr(forms[p], "%s");
            str_addf(&text, "%.*s%s%s", (int)(at - forms[p]), forms[p], w.key,
                     at + 2);
            (void)snprintf(json, sizeof json, "%s", str_text(&text));
            bool right = foreign || p == w.place || (twice(w.key) && note(p));
            cr_expect_eq(check(json), right ? 0 : -EDOM, "%s", json);
        }
    cr_expect_geq(n, 23);
}

Test(pod_keys, a_misspelt_key_is_told_with_what_was_meant)
{
    refuse(NOTES("\"a\":\"b\",\"biga.dev/aling\":\"pix\""),
           "metadata.annotations[\"biga.dev/aling\"]: is no key of Biga; did "
           "you mean biga.dev/align?");
    refuse(LABELS("\"biga.dev/rol\":\"host\""),
           "metadata.labels[\"biga.dev/rol\"]: is no key of Biga; did you mean "
           "biga.dev/role?");
    refuse(REQUESTS("\"biga.dev/card-core\":\"1\""),
           "spec.containers[1].resources.requests[\"biga.dev/card-core\"]: is "
           "no key of Biga; did you mean biga.dev/card-cores?");
    refuse("{\"spec\":{\"initContainers\":[{\"resources\":{\"limits\":{"
           "\"biga.dev/crad\":1}}}]}}",
           "spec.initContainers[0].resources.limits[\"biga.dev/crad\"]: is no "
           "key of Biga; did you mean biga.dev/card?");
    refuse(NOTES("\"biga.dev/colour\":\"red\""),
           "metadata.annotations[\"biga.dev/colour\"]: is no key of Biga; "
           "schema/pod.md has them all");
    refuse(NOTES("\"Biga.dev/Align\":\"pix\""),
           "metadata.annotations[\"Biga.dev/Align\"]: is no key of Biga; did "
           "you mean biga.dev/align?");
    refuse(NOTES("\"biga.dev/\":\"\""),
           "metadata.annotations[\"biga.dev/\"]: is no key of Biga; "
           "schema/pod.md has them all");
}

Test(pod_keys, a_word_at_the_wrong_place_is_told_where_it_belongs)
{
    refuse(
        LABELS("\"biga.dev/align\":\"pix\""),
        "metadata.labels[\"biga.dev/align\"]: is an annotation, not a label");
    refuse(NOTES("\"biga.dev/role\":\"host\""),
           "metadata.annotations[\"biga.dev/role\"]: is a label, not an "
           "annotation");
    refuse(REQUESTS("\"biga.dev/cards\":\"1\""),
           "spec.containers[1].resources.requests[\"biga.dev/cards\"]: is an "
           "annotation, not a resource");
    refuse(LABELS("\"biga.dev/aling\":\"pix\""),
           "metadata.labels[\"biga.dev/aling\"]: is no key of Biga; did you "
           "mean biga.dev/align, an annotation?");
    refuse(GATE("biga.dev/XpuRedy"),
           "spec.readinessGates[\"biga.dev/XpuRedy\"]: is no key of Biga; did "
           "you mean biga.dev/XpuReady?");
    refuse(SCHEDULING_GATE("biga.dev/plase"),
           "spec.schedulingGates[\"biga.dev/plase\"]: is no key of Biga; did "
           "you mean biga.dev/place?");
    refuse(NOTES("\"biga.dev/place\":\"\""),
           "metadata.annotations[\"biga.dev/place\"]: is a scheduling gate, "
           "not an annotation");
}

Test(pod_keys, of_two_that_are_as_near_the_one_of_the_place_is_meant)
{
    /* biga.dev/card is a resource and an annotation, biga.dev/cards only an
     * annotation */
    refuse(NOTES("\"biga.dev/cardss\":\"1\""),
           "metadata.annotations[\"biga.dev/cardss\"]: is no key of Biga; did "
           "you mean biga.dev/cards?");
    refuse(REQUESTS("\"biga.dev/cardz\":\"1\""),
           "spec.containers[1].resources.requests[\"biga.dev/cardz\"]: is no "
           "key of Biga; did you mean biga.dev/card?");
    refuse(REQUESTS("\"biga.dev/cards\":\"1\""),
           "spec.containers[1].resources.requests[\"biga.dev/cards\"]: is an "
           "annotation, not a resource");
}

Test(pod_keys, what_others_write_is_theirs)
{
    cr_expect_eq(
        check(NOTES("\"example.biga.dev/aling\":\"x\",\"biga.device/x"
                    "\":\"y\",\"xpu.biga.dev/z\":\"\",\"aling\":\"\"")),
        0);
    cr_expect_eq(check(NOTES("\"biga.dev/allocation\":\"{}\"")), 0);
    cr_expect_eq(check("{\"metadata\":{\"labels\":null,\"annotations\":[]},"
                       "\"spec\":{\"containers\":{}}}"),
                 0);
    cr_expect_eq(check("[]"), 0);
}

Test(pod_keys, escapes_and_long_keys_are_seen_through)
{
    cleanup_str struct str json = STR_INIT(8192);
    cr_expect_eq(check(NOTES("\"biga.dev\\/align\":\"pix\"")), 0);
    cr_expect_eq(check(NOTES("\"biga.dev/al\\u0069ng\":\"pix\"")), -EDOM);
    str_add(&json, "{\"metadata\":{\"annotations\":{\"biga.dev/");
    for (int i = 0; i < 1000; i++)
        str_add(&json, "é");
    str_add(&json, "\":\"\"}}}");
    cr_expect_eq(check(str_text(&json)), -EDOM);
    cr_expect(strstr(err.text, "é…\"]: is no key of Biga"), "%s", err.text);
    cr_expect_eq(check("{\"metadata\":{\"labels\":{\"biga.dev/x\":1}}"),
                 -EINVAL);
}

/* --- the document ----------------------------------------------------------- */

/* Every key of the first table in schema/pod.md is a word, and every word stands
 * there; what is written by Biga needs no row. */
Test(pod_keys, the_document_and_the_table_have_the_same_words)
{
    static const char *const kinds[WORD_PLACES] = {"label", "annotation",
                                                   "resource"};
    cleanup_file FILE *f = fopen("schema/pod.md", "re");
    cleanup_str struct str rows = STR_INIT(1 << 16);
    char line[2048], want[128];
    struct word w;
    size_t n_ours = 0, n_rows = 0;
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f) && strncmp(line, "## ", 3) != 0) {
        char *cell = line[0] == '|' ? strchr(line + 1, '|') : NULL;
        if (cell && strstr(cell, " `biga.dev/") == strchr(cell + 2, ' ')) {
            n_rows++;
            str_add(&rows, cell);
        }
    }
    for (size_t i = 0; pod_keys_get(i, &w); i++) {
        if (strncmp(w.key, "biga.dev/", 9) != 0 || w.place == WORD_GATE ||
            w.place == WORD_SCHEDULING_GATE ||
            strcmp(w.key, "biga.dev/allocation") == 0)
            continue;
        n_ours++;
        (void)snprintf(want, sizeof want, "| %s `%s` |", kinds[w.place], w.key);
        cr_expect(strstr(str_text(&rows), want), "no row %s", want);
    }
    cr_expect_eq(n_rows, n_ours);
}
