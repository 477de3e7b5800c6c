#include "lib/kube/jsplit.h"

#include <criterion/criterion.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "tests/lib/badjson.h"

enum { OBJECT_MAX = 4096 };

/* What came out: the objects, one a line; the rest; and how it ended. */
struct outcome {
    struct str objects, rest;
    struct error err;
    uint64_t n_bytes;
    size_t held;    /* bytes of memory at the end */
    size_t stop_at; /* the object that the receiver refuses; 0: none */
    size_t n;
};

static void outcome_fini(struct outcome *o)
{
    str_fini(&o->objects);
    str_fini(&o->rest);
}
#define cleanup_outcome __attribute__((__cleanup__(outcome_fini)))
#define OUTCOME_INIT \
    ((struct outcome){.objects = STR_INIT(1 << 24), .rest = STR_INIT(1 << 20)})

static int visit(void *ctx, const char *json, size_t size)
{
    struct outcome *o = ctx;
    str_add_n(&o->objects, json, size);
    str_add_c(&o->objects, '\n');
    return ++o->n == o->stop_at ? -ECANCELED : 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

/* Feed `text` in pieces of `first` bytes, then of `piece`; 0 for either:
 * random ones. */
static void split(enum jsplit_kind kind, const char *text, size_t size,
                  const size_t pieces[2], struct outcome *o)
{
    struct jsplit s;
    uint64_t random = size * 2 + 1;
    int r = 0;
    jsplit_init(&s, kind, OBJECT_MAX, visit, o);
    for (size_t at = 0, i = 0; at < size && r == 0; i++) {
        size_t n = pieces[i > 0];
        if (n == 0)
            n = next_random(&random) % 40;
        if (n > size - at)
            n = size - at;
        /* a copy of just that size, so that a sanitizer sees its end */
        cleanup_free char *piece = xmemdup(text + at, n);
        r = jsplit_feed(&s, piece, n, &o->err);
        at += n;
    }
    int end = jsplit_end(&s, &o->err);
    cr_expect(r == 0 || end == r);
    cr_expect_eq(end, -o->err.code);
    str_add_n(&o->rest, str_text(&s.rest), s.rest.size);
    o->n_bytes = s.n_bytes;
    o->held = s.object.cap + s.rest.cap;
    cr_expect_eq(s.n_objects, o->n);
    jsplit_fini(&s);
}

static void split_whole(enum jsplit_kind kind, const char *text, size_t size,
                        struct outcome *o)
{
    split(kind, text, size, (size_t[]){size ? size : 1, 1}, o);
}

static void expect_same(const struct outcome *a, const struct outcome *b,
                        const char *text, size_t first)
{
    cr_expect_str_eq(str_text(&a->objects), str_text(&b->objects), "%s at %zu",
                     text, first);
    cr_expect_eq(a->objects.size, b->objects.size);
    cr_expect_str_eq(str_text(&a->rest), str_text(&b->rest), "%s at %zu", text,
                     first);
    cr_expect_str_eq(a->err.text, b->err.text, "%s at %zu", text, first);
    cr_expect_eq(a->n_bytes, b->n_bytes, "%s at %zu", text, first);
}

/* All at once, in two at every place of a short text, byte by byte and at
 * random. */
static void split_everywhere(enum jsplit_kind kind, const char *text,
                             size_t size, struct outcome *o)
{
    split_whole(kind, text, size, o);
    for (size_t first = 1; first < size && size < 500; first++) {
        cleanup_outcome struct outcome other = OUTCOME_INIT;
        other.stop_at = o->stop_at;
        split(kind, text, size, (size_t[]){first, size}, &other);
        expect_same(o, &other, text, first);
    }
    for (size_t piece = 0; piece < 2; piece++) {
        cleanup_outcome struct outcome other = OUTCOME_INIT;
        other.stop_at = o->stop_at;
        split(kind, text, size, (size_t[]){piece, piece}, &other);
        expect_same(o, &other, text, piece);
    }
}

static const struct {
    enum jsplit_kind kind;
    const char *text, *objects, *rest;
} good[] = {
    {JSPLIT_LIST, "{\"items\":[]}", "", "{\"items\":[]}"},
    {JSPLIT_LIST, "{\"items\":null}", "", "{\"items\":null}"},
    {JSPLIT_LIST, "{}", "", "{}"},
    {JSPLIT_LIST,
     "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"12\","
     "\"continue\":\"a\\\"]}\"},\"items\":[{\"a\":1},{\"b\":[{},{\"c\":\"}]\"}]"
     "}]}\n",
     "{\"a\":1}\n{\"b\":[{},{\"c\":\"}]\"}]}\n",
     "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"12\","
     "\"continue\":\"a\\\"]}\"},\"items\":[]}\n"},
    {JSPLIT_LIST,
     " { \"items\" : [ { \"a\" : \"\\\\\" } , {} ] , \"n\" : -1.5e3 , "
     "\"t\":true,\"items2\":[{}], \"x\" : \"items\" }  ",
     "{ \"a\" : \"\\\\\" }\n{}\n",
     " { \"items\": [] , \"n\": -1.5e3 , \"t\":true,\"items2\":[{}], \"x\": "
     "\"items\" }  "},
    {JSPLIT_LIST,
     "{\"items\":[{\"\\u0022\":\"\xe2\x82\xac\\n\"}],\"metadata\":{\"items\":"
     "[{\"no\":1}]},\"k\\\"\":[[\"]\"],[]]}",
     "{\"\\u0022\":\"\xe2\x82\xac\\n\"}\n",
     "{\"items\":[],\"metadata\":{\"items\":[{\"no\":1}]},\"k\\\"\":[[\"]\"],["
     "]]}"},
    {JSPLIT_STREAM, "", "", ""},
    {JSPLIT_STREAM, " \r\n\t", "", ""},
    {JSPLIT_STREAM,
     "{\"type\":\"ADDED\",\"object\":{\"a\":\"{[\\\"\\\\\"}}\n{\"b\":[1,2,{}]}"
     "{}\n\n {\"c\":\"\\\\\\\"}\"}",
     "{\"type\":\"ADDED\",\"object\":{\"a\":\"{[\\\"\\\\\"}}\n{\"b\":[1,2,{}]}"
     "\n{}\n{\"c\":\"\\\\\\\"}\"}\n",
     ""},
};

Test(jsplit, cuts_the_same_however_the_bytes_come)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        cleanup_outcome struct outcome o = OUTCOME_INIT;
        split_everywhere(good[i].kind, good[i].text, strlen(good[i].text), &o);
        cr_expect_eq(o.err.code, 0, "%s: %s", good[i].text, o.err.text);
        cr_expect_str_eq(str_text(&o.objects), good[i].objects);
        cr_expect_str_eq(str_text(&o.rest), good[i].rest);
        cr_expect_eq(o.n_bytes, strlen(good[i].text));
    }
}

static const struct {
    enum jsplit_kind kind;
    const char *text, *error;
} bad[] = {
    {JSPLIT_LIST, "", "cut off after 0 bytes"},
    {JSPLIT_LIST, "[]", "expected a list at byte 0"},
    {JSPLIT_LIST, "{\"items\":[{},]}", "expected an object at byte 13"},
    {JSPLIT_LIST, "{\"items\":[,{}]}", "expected an object at byte 10"},
    {JSPLIT_LIST, "{\"items\":[1]}", "expected an object at byte 10"},
    {JSPLIT_LIST, "{\"items\":[null]}", "expected an object at byte 10"},
    {JSPLIT_LIST, "{\"items\":[[]]}", "expected an object at byte 10"},
    {JSPLIT_LIST, "{\"items\":[{}{}]}",
     "expected ',' or ']' in the items of a list at byte 12"},
    {JSPLIT_LIST, "{\"items\":[{}}",
     "expected ',' or ']' in the items of a "
     "list at byte 12"},
    {JSPLIT_LIST, "{\"items\":{}}",
     "\"items\" of a list is no array at byte 9"},
    {JSPLIT_LIST, "{\"items\":[],\"items\":[]}",
     "second \"items\" of a list at byte 20"},
    {JSPLIT_LIST, "{\"items\" []}", "expected ':' in a list at byte 9"},
    {JSPLIT_LIST, "{\"a\":1 2}", "expected ',' or '}' in a list at byte 7"},
    {JSPLIT_LIST, "{\"a\":}", "unexpected character in a list at byte 5"},
    {JSPLIT_LIST, "{a:1}", "expected a key of a list at byte 1"},
    {JSPLIT_LIST, "{\"a\":1,}", "expected a key of a list at byte 7"},
    {JSPLIT_LIST, "{\"a\":[}]}", "bracket that closes none at byte 6"},
    {JSPLIT_LIST, "{\"items\":[{\"a\":[}]}",
     "bracket that closes none at byte 16"},
    {JSPLIT_LIST, "{}{}", "more text behind a list at byte 2"},
    {JSPLIT_LIST, "{\"items\":[{\"a\":\"", "cut off after 16 bytes"},
    {JSPLIT_LIST, "{\"items\":[{}]", "cut off after 13 bytes"},
    {JSPLIT_STREAM, "{} ]", "expected an object at byte 3"},
    {JSPLIT_STREAM, "{},{}", "expected an object at byte 2"},
    {JSPLIT_STREAM, "{}{]", "bracket that closes none at byte 3"},
    {JSPLIT_STREAM, "{}{\"a\":\"}", "cut off after 9 bytes"},
};

Test(jsplit, says_where_it_is_no_list_or_stream)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_outcome struct outcome o = OUTCOME_INIT;
        split_everywhere(bad[i].kind, bad[i].text, strlen(bad[i].text), &o);
        cr_expect_eq(o.err.code, EINVAL, "%s", bad[i].text);
        cr_expect_str_eq(o.err.text, bad[i].error, "%s", bad[i].text);
    }
}

static bool scans(const char *data, size_t size)
{
    struct error err;
    return json_check(data, size, &err) == 0;
}

/* Is every line of the objects, and the rest, JSON?  Only for texts without
 * line breaks in objects. */
static bool parts_scan(const struct outcome *o)
{
    const char *p = str_text(&o->objects), *end = p + o->objects.size;
    for (const char *line; p < end; p = line + 1) {
        line = memchr(p, '\n', (size_t)(end - p));
        if (!scans(p, (size_t)(line - p)))
            return false;
    }
    return scans(str_text(&o->rest), o->rest.size);
}

/* What is no JSON is refused by the splitter or by who checks its parts. */
Test(jsplit, lets_nothing_wrong_through)
{
    static const char *const around[][2] = {
        {"", ""},
        {"{\"items\":[", "]}"},
        {"{\"items\":[{},", "]}"},
        {"{\"items\":[{\"a\":", "}]}"},
        {"{\"metadata\":", ",\"items\":[]}"},
        {"{\"metadata\":{\"a\":", "},\"items\":[]}"},
    };
    size_t n;
    const struct badjson *list = badjson_syntax(&n);
    cr_assert_geq(n, 188);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ARRAY_LEN(around); k++) {
            cleanup_outcome struct outcome o = OUTCOME_INIT, p = OUTCOME_INIT;
            cleanup_str struct str text = STR_INIT(1 << 20);
            str_add(&text, around[k][0]);
            str_add_n(&text, list[i].data, list[i].size);
            str_add(&text, around[k][1]);
            split_everywhere(JSPLIT_LIST, text.data ? text.data : "", text.size,
                             &o);
            split_everywhere(JSPLIT_STREAM, text.data ? text.data : "",
                             text.size, &p);
            if (!scans(str_text(&text), text.size))
                cr_expect(o.err.code ||
                              memchr(list[i].data, '\n', list[i].size) ||
                              !parts_scan(&o),
                          "%s in %s", list[i].name, around[k][0]);
        }
}

static void add_value(struct str *out, uint64_t *random, unsigned depth);

static void add_object(struct str *out, uint64_t *random, unsigned depth)
{
    size_t n = next_random(random) % 4;
    str_add_c(out, '{');
    for (size_t i = 0; i < n; i++) {
        str_addf(out, "%s\"k%zu\\\"\":%s", i ? "," : "", i,
                 next_random(random) % 2 ? " " : "");
        add_value(out, random, depth + 1);
    }
    str_add_c(out, '}');
}

static void add_value(struct str *out, uint64_t *random, unsigned depth)
{
    static const char *const scalars[] = {
        "1",        "-0.5e-3", "true",           "null",
        "\"\"",     "\"]}\"",  "\"\\\"{[\\\\\"", "\"\\ud83d\\ude00\"",
        "\"items\""};
    uint64_t what = next_random(random) % (depth < 8 ? 12 : 9);
    if (what < ARRAY_LEN(scalars)) {
        str_add(out, scalars[what]);
    } else if (what == 11) {
        str_add_c(out, '[');
        for (size_t i = 0, n = next_random(random) % 4; i < n; i++) {
            str_add(out, i ? " , " : "");
            add_value(out, random, depth + 1);
        }
        str_add_c(out, ']');
    } else {
        add_object(out, random, depth);
    }
}

static void add_list(struct str *out, uint64_t *random)
{
    size_t before = next_random(random) % 3, items = next_random(random) % 9;
    str_add_c(out, '{');
    for (size_t i = 0; i < before; i++) {
        str_addf(out, "\"before%zu\":", i);
        add_value(out, random, 1);
        str_add_c(out, ',');
    }
    str_add(out, "\"items\":[");
    for (size_t i = 0; i < items; i++) {
        str_add(out, i ? ", " : "");
        add_object(out, random, 2);
    }
    str_add(out, "],\"metadata\":");
    add_object(out, random, 1);
    str_add_c(out, '}');
}

/* What a tree of the whole list has. */
static void expected(const struct str *text, struct str *objects,
                     struct str *rest)
{
    struct error err = {0};
    cleanup_with(json) cJSON *json = NULL;
    cr_assert_eq(json_parse(text->data, text->size, &json, &err), 0, "%s: %s",
                 text->data, err.text);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "items"))
    {
        cleanup_free char *one = cJSON_PrintUnformatted(item);
        str_addf(objects, "%s\n", one);
    }
    (void)cJSON_ReplaceItemInObjectCaseSensitive(json, "items",
                                                 cJSON_CreateArray());
    cleanup_free char *left = cJSON_PrintUnformatted(json);
    str_add(rest, left);
}

static void add_printed(const char *data, size_t size, struct str *out)
{
    struct error err = {0};
    cleanup_with(json) cJSON *json = NULL;
    cr_assert_eq(json_parse(data, size, &json, &err), 0, "%s", err.text);
    cleanup_free char *text = cJSON_PrintUnformatted(json);
    str_add(out, text);
}

static int visit_printed(void *ctx, const char *json, size_t size)
{
    struct str *out = ctx;
    add_printed(json, size, out);
    str_add_c(out, '\n');
    return 0;
}

Test(jsplit, agrees_with_a_tree_on_random_lists)
{
    uint64_t random = 7;
    for (unsigned i = 0; i < 3000; i++) {
        cleanup_str struct str text = STR_INIT(1 << 22),
                               want = STR_INIT(1 << 22),
                               want_rest = STR_INIT(1 << 22),
                               got = STR_INIT(1 << 22),
                               got_rest = STR_INIT(1 << 22);
        struct error err = {0};
        struct jsplit s;
        add_list(&text, &random);
        expected(&text, &want, &want_rest);
        jsplit_init(&s, JSPLIT_LIST, 1 << 20, visit_printed, &got);
        for (size_t at = 0; at < text.size;) {
            size_t n = 1 + next_random(&random) % 64;
            if (n > text.size - at)
                n = text.size - at;
            cr_assert_eq(jsplit_feed(&s, text.data + at, n, &err), 0, "%s: %s",
                         text.data, err.text);
            at += n;
        }
        cr_assert_eq(jsplit_end(&s, &err), 0, "%s: %s", text.data, err.text);
        add_printed(s.rest.data, s.rest.size, &got_rest);
        cr_assert_str_eq(str_text(&got), str_text(&want));
        cr_assert_str_eq(got_rest.data, want_rest.data);
        jsplit_fini(&s);
    }
}

/* {"a":"xxx…"} of just that many bytes */
static void add_sized(struct str *out, size_t size)
{
    str_add(out, "{\"a\":\"");
    while (size-- > 8)
        str_add_c(out, 'x');
    str_add(out, "\"}");
}

Test(jsplit, an_object_has_a_cap)
{
    cleanup_str struct str text = STR_INIT(1 << 20);
    cleanup_outcome struct outcome fits = OUTCOME_INIT, over = OUTCOME_INIT;
    str_add(&text, "{\"items\":[{},");
    add_sized(&text, OBJECT_MAX);
    str_add(&text, "]}");
    split_everywhere(JSPLIT_LIST, text.data, text.size, &fits);
    cr_expect_eq(fits.err.code, 0, "%s", fits.err.text);
    cr_expect_eq(fits.n, 2);

    str_reset(&text);
    str_add(&text, "{} ");
    add_sized(&text, OBJECT_MAX + 1);
    /* wrong, too, but behind the cap */
    text.data[text.size - 1] = ']';
    split_everywhere(JSPLIT_STREAM, text.data, text.size, &over);
    cr_expect_eq(over.err.code, E2BIG);
    cr_expect_str_eq(over.err.text,
                     "the object at byte 3 has more than 4096 bytes");
    cr_expect_eq(over.n, 1);
}

Test(jsplit, endless_objects_take_no_more_memory)
{
    cleanup_outcome struct outcome o = OUTCOME_INIT;
    cleanup_free char *text = xmalloc(1 << 20);
    memset(text, '[', 1 << 20);
    memcpy(text, "{\"a\":\"", 6);
    split(JSPLIT_STREAM, text, 1 << 20, (size_t[]){1, 1000}, &o);
    cr_expect_eq(o.err.code, E2BIG);
    cr_expect_leq(o.held, 2 * (OBJECT_MAX + 1));
}

Test(jsplit, the_rest_has_a_cap)
{
    for (size_t k = 0; k < 3; k++) {
        static const char *const begins[] = {"{\"", "{\"a\":\"", "{\"a\":[\""};
        cleanup_outcome struct outcome o = OUTCOME_INIT, p = OUTCOME_INIT;
        cleanup_str struct str text = STR_INIT(1 << 20);
        str_add(&text, begins[k]);
        for (size_t i = 0; i < JSPLIT_REST_MAX; i++)
            str_add_c(&text, 'x');
        split_whole(JSPLIT_LIST, text.data, text.size, &o);
        cr_expect_eq(o.err.code, E2BIG);
        cr_expect_str_eq(o.err.text,
                         "the list has more than 65536 bytes beside its items");
        split(JSPLIT_LIST, text.data, text.size, (size_t[]){1, 777}, &p);
        expect_same(&o, &p, begins[k], 1);
        cr_expect_eq(o.rest.size, JSPLIT_REST_MAX);
    }
}

Test(jsplit, depth_63_is_the_last_one_taken)
{
    for (unsigned depth = JSPLIT_DEPTH_MAX; depth < JSPLIT_DEPTH_MAX + 2;
         depth++) {
        cleanup_outcome struct outcome o = OUTCOME_INIT;
        cleanup_str struct str text = STR_INIT(4096);
        str_add(&text, "{\"a\":");
        for (unsigned i = 1; i < depth; i++)
            str_add_c(&text, '[');
        for (unsigned i = 1; i < depth; i++)
            str_add_c(&text, ']');
        str_add(&text, "}");
        split_everywhere(JSPLIT_STREAM, text.data, text.size, &o);
        cr_expect_eq(o.err.code, depth > JSPLIT_DEPTH_MAX ? EINVAL : 0);
        if (o.err.code)
            cr_expect_str_eq(o.err.text, "nested too deep at byte 67");
    }
}

Test(jsplit, ends_when_the_receiver_wants_no_more)
{
    cleanup_outcome struct outcome o = OUTCOME_INIT;
    o.stop_at = 2;
    split_everywhere(JSPLIT_STREAM, "{\"a\":1} {\"b\":2} {\"c\":3} ]", 26, &o);
    cr_expect_eq(o.err.code, ECANCELED);
    cr_expect_str_eq(str_text(&o.objects), "{\"a\":1}\n{\"b\":2}\n");
    cr_expect_eq(o.n_bytes, 15);
}
