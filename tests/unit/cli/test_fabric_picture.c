/* biga fabric: folding names, the tree, the graph and the drawing. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/verb/fabric.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"

static void assert_text(const struct str *got, const char *want)
{
    cr_assert_str_eq(str_text(got), want, "got:\n%s\nwant:\n%s", str_text(got),
                     want);
}

static int add(struct picture *p, const char *text, struct error *err)
{
    cleanup_with(json) cJSON *json = NULL;
    cr_assert_eq(json_parse(text, strlen(text), &json, err), 0, "%s",
                 err->text);
    return picture_add(p, json, err);
}

static void fold(const char *const *names, size_t n, struct str *out)
{
    struct picture_host hosts[16];
    for (size_t i = 0; i < n; i++)
        hosts[i] = (struct picture_host){.name = (char *)(uintptr_t)names[i]};
    picture_fold(hosts, n, out);
}

#define FOLDS(want, ...)                                  \
    do {                                                  \
        static const char *const names[] = {__VA_ARGS__}; \
        cleanup_str struct str out = STR_INIT(4096);      \
        fold(names, sizeof names / sizeof *names, &out);  \
        assert_text(&out, want);                          \
    } while (0)

Test(picture, names_fold_around_one_number)
{
    FOLDS("host[001-003]", "host001", "host002", "host003");
    FOLDS("host[001-002,004]", "host001", "host002", "host004");
    FOLDS("n[1-2].site, n[10-11].site", "n1.site", "n2.site", "n10.site",
          "n11.site");
    FOLDS("host001", "host001");
    FOLDS("a, b", "a", "b");
    FOLDS("a1, b1", "a1", "b1");
    FOLDS("r2n[08-09]", "r2n08", "r2n09");
    FOLDS("x?[1-2]", "x\0331", "x\0332");
}

static const char page[] =
    "{\"domains\":["
    "{\"name\":\"l0\",\"tier\":\"leaf\",\"parent\":2,\"hosts\":2,"
    "\"cards\":{\"total\":16,\"idle\":9}},"
    "{\"name\":\"l\\\"1<\",\"tier\":\"leaf\",\"parent\":2,\"hosts\":1,"
    "\"cards\":{\"total\":0,\"idle\":0}},"
    "{\"name\":\"s\",\"tier\":\"spine\",\"parent\":null,\"hosts\":3,"
    "\"cards\":{\"total\":16,\"idle\":9}}],\"items\":["
    "{\"name\":\"h1\",\"leaf\":0,\"cards\":{\"total\":8,\"idle\":8}},"
    "{\"name\":\"h2\",\"leaf\":0,\"cards\":{\"total\":8,\"idle\":1}},"
    "{\"name\":\"h3\",\"leaf\":1},";
static const char page_end[] =
    "{\"name\":\"z\",\"leaf\":null,\"cards\":{\"total\":2,\"idle\":0}}]}";

static void load(struct picture *p)
{
    cleanup_str struct str text = STR_INIT(65536);
    struct error err = {0};
    picture_init(p);
    str_addf(&text, "%s%s", page, page_end);
    cr_assert_eq(add(p, str_text(&text), &err), 0, "%s", err.text);
    picture_finish(p);
}

Test(picture, the_tree_has_tiers_hosts_and_the_unknown)
{
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(65536);
    load(&p);
    picture_tree(&p, &out);
    assert_text(&out, "spine s: 3 hosts, 9 of 16 cards idle\n"
                      "├─ leaf l\"1<: 1 host\n"
                      "│     h3\n"
                      "└─ leaf l0: 2 hosts, 9 of 16 cards idle\n"
                      "      h[1-2]\n"
                      "unknown place: 1 host, near to none\n"
                      "   z\n");
}

/* Numbers count as numbers: of roots, leaves and hosts. */
Test(picture, the_tree_is_in_the_order_of_names)
{
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(65536);
    struct error err = {0};
    picture_init(&p);
    cr_assert_eq(
        add(&p,
            "{\"domains\":[{\"name\":\"leaf10\",\"tier\":\"leaf\",\"parent\":3}"
            ","
            "{\"name\":\"leaf6\",\"tier\":\"leaf\",\"parent\":3},"
            "{\"name\":\"s10\",\"tier\":\"spine\",\"parent\":null},"
            "{\"name\":\"s9\",\"tier\":\"spine\",\"parent\":null}],\"items\":["
            "{\"name\":\"a10x\",\"leaf\":0},{\"name\":\"a10\",\"leaf\":0},"
            "{\"name\":\"a9x\",\"leaf\":0}]}",
            &err),
        0, "%s", err.text);
    picture_finish(&p);
    picture_tree(&p, &out);
    assert_text(&out, "spine s9: 0 hosts\n"
                      "├─ leaf leaf6: 0 hosts\n"
                      "└─ leaf leaf10: 0 hosts\n"
                      "      a9x, a10, a10x\n"
                      "spine s10: 0 hosts\n");
    str_reset(&out);
    picture_svg(&p, &out);
    const char *svg = str_text(&out);
    cr_expect_lt(strstr(svg, "leaf6"), strstr(svg, "leaf10"));
    cr_expect_lt(strstr(svg, "s9"), strstr(svg, "s10"));
}

Test(picture, the_graph_quotes_names)
{
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(65536);
    load(&p);
    picture_dot(&p, &out);
    cr_expect(strstr(str_text(&out), "label=\"leaf l\\\"1<\\n1 host\"]"));
    cr_expect(strstr(str_text(&out), "d2 -- d0;"));
    cr_expect(strstr(str_text(&out), "label=\"h[1-2]\"]"));
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

Test(picture, the_drawing_has_a_square_for_every_host)
{
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(1 << 20);
    load(&p);
    picture_svg(&p, &out);
    const char *svg = str_text(&out);
    cr_expect_eq(count(svg, "<title>h1: 8 of 8 cards idle</title>"), 1);
    cr_expect_eq(count(svg, "<title>h3: has not published</title>"), 1);
    cr_expect_eq(count(svg, "<title>z: 0 of 2 cards idle</title>"), 1);
    cr_expect(strstr(svg, "l&quot;1&lt;"));
    cr_expect_null(strstr(svg, "l\"1<"));
    cr_expect_eq(count(svg, "<rect"),
                 count(svg, "</rect>") + count(svg, "\"/>"));
    cr_expect_eq(count(svg, "<svg"), 1);
    cr_expect_eq(count(svg, "</svg>"), 1);
}

Test(picture, a_host_without_cards_is_not_called_silent)
{
    static const char text[] =
        "{\"domains\":[],\"items\":["
        "{\"name\":\"n\",\"leaf\":null,\"cards\":{\"total\":0,\"idle\":0}}]}";
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(1 << 20);
    struct error err = {0};
    picture_init(&p);
    cr_assert_eq(add(&p, text, &err), 0, "%s", err.text);
    picture_finish(&p);
    picture_svg(&p, &out);
    cr_expect_eq(count(str_text(&out), "<title>n: no card</title>"), 1);
    cr_expect_eq(count(str_text(&out), "class=\"z\""), 2); /* and legend */
}

Test(picture, a_page_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"domains\":[{\"name\":\"a\",\"tier\":\"leaf\",\"parent\":0}]}",
         "domains[0].parent: its tier is not higher"},
        {"{\"domains\":[{\"name\":\"a\",\"tier\":\"leaf\",\"parent\":1}]}",
         "domains[0].parent: is 1 of 1"},
        {"{\"items\":[{\"name\":\"a\",\"leaf\":0}]}",
         "items[0].leaf: is 0, no leaf"},
        {"{\"domains\":[{\"name\":\"a\",\"tier\":\"spine\",\"parent\":null}],"
         "\"items\":[{\"name\":\"a\",\"leaf\":0}]}",
         "items[0].leaf: is 0, no leaf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_picture struct picture p;
        struct error err = {0};
        picture_init(&p);
        cr_expect_eq(add(&p, cases[i].text, &err), -EINVAL);
        cr_expect_str_eq(err.text, cases[i].error);
    }
}

Test(picture, no_fabric_and_no_node_is_said)
{
    cleanup_picture struct picture p;
    cleanup_str struct str out = STR_INIT(65536);
    picture_init(&p);
    picture_finish(&p);
    picture_tree(&p, &out);
    cr_expect(strstr(str_text(&out), "No fabric is known"));
    str_reset(&out);
    picture_svg(&p, &out);
    cr_expect(strstr(str_text(&out), "</svg>"));
}
