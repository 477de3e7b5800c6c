/* The command line: suggestions, help, pictures of hosts, lists. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/settings.h"
#include "cli/verb/host.h"
#include "cli/verb/host_notes.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "tests/lib/hosttext.h"

static void assert_text(const struct str *got, const char *want)
{
    cr_assert_str_eq(str_text(got), want, "got:\n%s\nwant:\n%s", str_text(got),
                     want);
}

/* --- verbs ---------------------------------------------------------------- */

Test(verbs, every_verb_is_found_and_described)
{
    cleanup_str struct str out = STR_INIT(8192);
    verbs_describe(&out);
    cr_assert_eq(n_verbs, n_verbs_about);
    for (size_t i = 0; i < n_verbs; i++) {
        const struct verb_about *a = verb_about(verbs[i].name);
        cr_assert_eq(verb_find(verbs[i].name), &verbs[i]);
        cr_assert_str_eq(a->name, verbs[i].name, "nothing is told of %s",
                         verbs[i].name);
        cr_assert_not_null(strstr(str_text(&out), verbs[i].name));
        cr_assert_not_null(verbs[i].run);
        cr_assert_leq(verbs[i].args_min, verbs[i].args_max);
        cr_assert(a->kind && a->takes && a->see);
        cr_expect(strncmp(a->examples, "biga ", 5) == 0 ||
                      strcmp(a->name, "rsh") == 0,
                  "%s", a->name);
    }
    cr_assert_null(verb_find("node "));
    cr_assert_null(verb_find(""));
}

/* What others are named there are commands. */
Test(verbs, see_also_names_commands)
{
    for (size_t i = 0; i < n_verbs_about; i++) {
        cleanup_free char *see = xstrdup(verbs_about[i].see);
        char *rest = see;
        for (char *word; (word = strsep(&rest, " ")) && *word;)
            cr_expect(verb_find(word) && strcmp(word, verbs_about[i].name),
                      "%s: %s", verbs_about[i].name, word);
    }
}

static void assert_fits(const char *text, const char *of)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        cr_expect_leq(text_width_n(p, n), 80, "%s: %.*s", of, (int)n, p);
        p += n + (p[n] == '\n');
    }
}

Test(verbs, the_help_is_one_screen_of_80_columns)
{
    struct cli c = {.out = STR_INIT(65536)};
    size_t lines = 0;
    cr_assert_eq(verb_help(&c, 0, NULL), 0);
    for (const char *p = str_text(&c.out); *p; p++)
        lines += *p == '\n';
    cr_expect(lines >= 24 && lines <= 40, "%zu lines", lines);
    assert_fits(str_text(&c.out), "help");
    str_fini(&c.out);
}

Test(verbs, columns_and_examples_fit_80_columns)
{
    for (size_t i = 0; i < n_verbs_about; i++) {
        const struct verb_about *a = &verbs_about[i];
        cleanup_str struct str out = STR_INIT(65536);
        verb_describe_examples(a, "  ", &out);
        for (size_t k = 0; k < VERB_LISTS_MAX && a->lists[k]; k++) {
            const struct listing *l = a->lists[k];
            verb_describe_columns(l, &out);
            for (size_t j = 0; j < l->n_columns; j++)
                cr_expect(*l->columns[j].means &&
                              !strpbrk(l->columns[j].title, " ,"),
                          "%s: %s", a->name, l->columns[j].title);
        }
        assert_fits(str_text(&out), a->name);
    }
}

Test(listing, every_list_has_a_cell_for_each_column)
{
    cleanup_with(json) cJSON *nothing = cJSON_CreateObject();
    for (size_t i = 0; i < n_verbs_about; i++)
        for (size_t k = 0; k < VERB_LISTS_MAX && verbs_about[i].lists[k]; k++) {
            const struct listing *l = verbs_about[i].lists[k];
            struct table_column columns[TABLE_COLUMNS_MAX] = {0};
            cleanup_table struct table t;
            for (size_t j = 0; j < l->n_columns; j++)
                columns[j].title = "";
            table_init_columns(&t, columns, l->n_columns);
            l->add(&t, nothing);
            cr_expect_eq(t.n_cells, l->n_columns, "%s", verbs_about[i].name);
        }
}

Test(verbs, a_slip_is_understood)
{
    static const char *const cases[][2] = {
        {"ndoes", "nodes"},       {"node s", "nodes"}, {"crads", "cards"},
        {"alloc", "allocations"}, {"sim", "simulate"}, {"matirx", "matrix"},
        {"hlep", "help"},         {"wyh", "why"},      {"dmeo", "demo"},
        {"verison", "version"},   {"topoo", "topo"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct verb *v = verb_suggest(cases[i][0]);
        cr_assert_not_null(v, "%s", cases[i][0]);
        cr_assert_str_eq(v->name, cases[i][1], "%s", cases[i][0]);
    }
}

Test(verbs, what_is_far_off_is_not_guessed)
{
    cr_assert_null(verb_suggest("frobnicate"));
    cr_assert_null(verb_suggest("xyzzy"));
    cr_assert_null(verb_suggest(""));
}

/* The help of an option begins with the commands that take it, "logs, exec:
 * …", when not all do that ask a server; it is what the manual shows. */
Test(verbs, the_help_of_options_names_who_takes_them)
{
    size_t n;
    const struct conf_setting *all = cli_settings_table(&n);
    for (size_t i = 0; i < n; i++) {
        size_t end = strspn(all[i].help, "abcdefghijklmnopqrstuvwxyz, ");
        cleanup_free char *named = xstrndup(all[i].help, end);
        for (char *p = named; *p; p++)
            *p = *p == ',' ? ' ' : *p;
        if (all[i].help[end] != ':')
            continue;
        for (size_t v = 0; v < n_verbs; v++)
            cr_expect_eq(options_have(named, verbs[v].name),
                         options_have(verbs[v].options, all[i].name),
                         "--%s and %s", all[i].name, verbs[v].name);
    }
}

Test(verbs, every_option_that_a_command_takes_is_one)
{
    size_t n;
    const struct conf_setting *all = cli_settings_table(&n);
    for (size_t v = 0; v < n_verbs; v++) {
        size_t n_words = *verbs[v].options != '\0', n_known = 0;
        for (const char *p = verbs[v].options; *p; p++)
            n_words += *p == ' ';
        for (size_t i = 0; i < n; i++)
            n_known += options_have(verbs[v].options, all[i].name);
        cr_expect_eq(n_known, n_words, "%s", verbs[v].name);
    }
}

/* --- small things --------------------------------------------------------- */

Test(cli, a_pod_without_namespace_is_in_default)
{
    cleanup_str struct str a = STR_INIT(64), b = STR_INIT(64);
    cli_pod_key("web", &a);
    cli_pod_key("prod/web", &b);
    assert_text(&a, "default/web");
    assert_text(&b, "prod/web");
}

Test(cli, a_name_is_in_the_namespace_that_is_given)
{
    size_t n;
    const struct conf_setting *all = cli_settings_table(&n);
    cleanup_free bool *given = xcalloc(n, sizeof *given);
    struct cli c = {.set = {.namespace = ""}, .given = given};
    static const struct {
        const char *namespace, *name, *is;
        bool given;
    } cases[] = {
        {"", "web", "default/web", false}, {"lab", "web", "lab/web", true},
        {"lab", "web", "lab/web", false},  {"lab", "lab/web", "lab/web", true},
        {"lab", "a/web", "a/web", false}, /* by the environment */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[16], *arg = text;
        for (size_t k = 0; k < n; k++)
            given[k] = cases[i].given && !strcmp(all[k].name, "namespace");
        (void)snprintf(text, sizeof text, "%s", cases[i].name);
        c.set.namespace = cases[i].namespace;
        cr_expect_eq(cli_qualify(&c, "why", &arg), 0);
        cr_expect_str_eq(arg, cases[i].is);
    }
    free(c.name);
}

Test(cli, queries_are_encoded)
{
    cleanup_str struct str out = STR_INIT(64);
    cli_add_encoded(&out, "a/b c&d=\xc3\xa9-._~");
    assert_text(&out, "a%2Fb%20c%26d%3D%C3%A9-._~");
}

Test(cli, absent_members_have_defaults)
{
    cJSON *json = parse("{\"a\":1,\"b\":\"x\",\"c\":[],\"d\":true}");
    cr_assert_str_eq(json_text(json, "a"), "");
    cr_assert_str_eq(json_text(json, "b"), "x");
    cr_assert_str_eq(json_text(NULL, "b"), "");
    cr_assert_eq((int)json_number(json, "a"), 1);
    cr_assert_eq((int)json_number(json, "b"), -1);
    cr_assert_not_null(json_list(json, "c"));
    cr_assert_null(json_list(json, "a"));
    cr_assert(json_true(json, "d"));
    cr_assert_not(json_true(json, "a"));
    cJSON_Delete(json);
}

/* --- hosts ---------------------------------------------------------------- */

/* Two NUMA nodes, two cards and two GPUs; the order of the GPUs is against
 * that of the cards: card 0 is beside GPU 1. */
Test(host, relations_are_read)
{
    cleanup_host struct host h = {0};
    make_host(HOST("n1"), &h);
    cr_assert_eq(h.n, 6);
    cr_assert_eq(host_find(&h, "gpu-1"), 3);
    cr_assert_eq(host_find(&h, "gpu-9"), -1);
    cr_assert_eq(host_relation(&h, 0, 3), RELATION_PIX);
    cr_assert_eq(host_relation(&h, 1, 2), RELATION_PXB);
    cr_assert_eq(host_relation(&h, 0, 2), RELATION_SYS);
}

Test(host, a_wrong_topology_is_refused_with_the_reason)
{
    static const char *const wrong[][2] = {
        {"{}", "devices"},
        {"{\"devices\":[]}", "relations"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"gpux\"}],"
         "\"relations\":{}}",
         "gpux"},
        {"{\"devices\":[{\"id\":\"a\",\"kind\":\"gpu\"},"
         "{\"id\":\"b\",\"kind\":\"gpu\"}],"
         "\"relations\":{\"a\":{\"b\":\"NEAR\"}}}",
         "relations.a.b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct host h;
        struct error err = {0};
        cJSON *json = parse(wrong[i][0]);
        cr_assert_lt(host_read(json, &h, &err), 0);
        cr_assert_not_null(strstr(err.text, wrong[i][1]), "%s", err.text);
        cJSON_Delete(json);
    }
}

Test(host, tree)
{
    cleanup_host struct host h = {0};
    cleanup_str struct str out = STR_INIT(4096);
    const char *notes[6] = {[3] = "◀ here"};
    make_host(HOST("n1"), &h);
    host_tree(&h, notes, false, &out);
    assert_text(&out,
                "n1\n"
                "├─ NUMA node 0, 56 CPUs\n"
                "│  └─ PCIe switch\n"
                "│     ├─ card 0000:10:00.0  BlueField-3, 16 cores, 32 GiB\n"
                "│     └─ gpu  0000:11:00.0  ◀ here\n"
                "└─ NUMA node 1\n"
                "   └─ PCIe switch\n"
                "      ├─ card 0000:90:00.0\n"
                "      └─ gpu  0000:91:00.0\n");
}

Test(host, tree_of_devices_without_a_numa_node)
{
    cleanup_host struct host h = {0};
    cleanup_str struct str out = STR_INIT(4096);
    make_host("{\"node\":\"n\",\"devices\":[{\"id\":\"nic-0\",\"kind\":"
              "\"nic\",\"pci\":\"0000:01:00.0\",\"numa\":null},{\"id\":"
              "\"numa-0\",\"kind\":\"numa\",\"numa\":0}],\"relations\":{}}",
              &h);
    host_tree(&h, NULL, false, &out);
    assert_text(&out, "n\n├─ NUMA node 0\n└─ NUMA node unknown\n"
                      "   └─ nic  0000:01:00.0\n");
}

Test(host, names_hide_nothing)
{
    cleanup_host struct host h = {0};
    cleanup_str struct str tree = STR_INIT(4096), matrix = STR_INIT(4096);
    make_host(
        "{\"node\":\"n\\u202e\",\"devices\":[{\"id\":\"a\\u0085\",\"kind\":"
        "\"nic\",\"model\":\"m\\u009b\",\"pci\":null,\"numa\":null},{"
        "\"id\":\"b\\u2028\",\"kind\":\"gpu\",\"pci\":\"c\\u200b\",\"numa\":"
        "null}],\"relations\":{}}",
        &h);
    host_tree(&h, NULL, false, &tree);
    assert_text(&tree, "n?\n└─ NUMA node unknown\n"
                       "   ├─ nic  a?  m?\n   └─ gpu  c?\n");
    host_matrix(&h, false, &matrix);
    cr_expect(strstr(str_text(&matrix), " c?\n"), "%s", str_text(&matrix));
}

Test(host, matrix)
{
    cleanup_host struct host h = {0};
    cleanup_str struct str out = STR_INIT(8192);
    make_host(HOST("n1"), &h);
    host_matrix(&h, false, &out);
    const char *want =
        "        CARD0   CARD1   GPU0    GPU1    NUMA  PCI\n"
        "CARD0   X       SYS     SYS     PIX     0     0000:10:00.0\n"
        "CARD1   SYS     X       PXB     SYS     1     0000:90:00.0\n"
        "GPU0    SYS     PXB     X       SYS     1     0000:91:00.0\n"
        "GPU1    PIX     SYS     SYS     X       0     0000:11:00.0\n";
    cr_assert_eq(strncmp(str_text(&out), want, strlen(want)), 0, "%s",
                 str_text(&out));
}

/* What the pod's own cards are near to, and of older servers its pair's. */
Test(cli, relation_of_an_allocation)
{
    static const char *const cases[][2] = {
        {"{\"relation\":\"PIX\"}", "PIX"},
        {"{\"relation\":\"PIX\",\"alignment\":null}", "-"},
        {"{\"relation\":\"PIX\",\"alignment\":{\"relation\":\"NODE\"}}",
         "NODE"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cJSON *json = parse(cases[i][0]);
        cr_expect_str_eq(cli_relation(json), cases[i][1]);
        cJSON_Delete(json);
    }
}

/* Nothing new comes to a card that is drained or lost. */
Test(host, withdrawn_cards)
{
    cleanup_host struct host h = {0};
    cleanup_str struct str out = STR_INIT(8192);
    make_host(
        "{\"node\":\"n\",\"devices\":[{\"id\":\"a\",\"kind\":\"card\","
        "\"numa\":0,\"healthy\":false,\"health\":\"drained\"},{\"id\":"
        "\"b\",\"kind\":\"card\",\"numa\":0,\"healthy\":false,\"health\":"
        "\"\\u001b[2J\"},{\"id\":\"c\",\"kind\":\"card\",\"numa\":0,"
        "\"healthy\":true,\"health\":\"ready\"},{\"id\":\"numa-0\",\"kind\":"
        "\"numa\",\"numa\":0}],\"relations\":{}}",
        &h);
    host_tree(&h, NULL, false, &out);
    assert_text(&out, "n\n└─ NUMA node 0\n"
                      "   ├─ card a  drained\n"
                      "   ├─ card b  unhealthy\n"
                      "   └─ card c\n");
    str_reset(&out);
    host_matrix(&h, false, &out);
    cr_expect(strstr(str_text(&out), "CARD0   X       SYS     SYS     0     a  "
                                     "drained\n"),
              "%s", str_text(&out));
    cr_expect(strstr(str_text(&out), "0     c\n"), "%s", str_text(&out));
}

/* --- who has it ----------------------------------------------------------- */

struct noted {
    const char *node, *name, *role, *job;
    int pair;
    const char *rest; /* members, after a comma */
};

/* Each of them on card-0. */
static cJSON *noted(const struct noted *pods, size_t n)
{
    cleanup_str struct str text = STR_INIT(65536);
    str_add(&text, "{\"items\":[");
    for (size_t i = 0; i < n; i++)
        str_addf(&text,
                 "%s{\"node\":\"%s\",\"pod\":{\"namespace\":\"a\",\"name\":"
                 "\"%s\",\"role\":\"%s\",\"job\":\"%s\",\"pair\":%d},"
                 "\"cards\":[{\"id\":\"card-0\"}]%s}",
                 i ? "," : "", pods[i].node, pods[i].name, pods[i].role,
                 pods[i].job, pods[i].pair, pods[i].rest);
    str_add(&text, "]}");
    return parse(str_text(&text));
}

Test(notes, say_who_has_which_device)
{
    static const struct noted pods[] = {
        {"n1", "r-0", "host", "ring", 0,
         ",\"gpus\":[{\"id\":\"gpu-1\"}],\"alignment\":{\"relation\":\"PHB\"}"},
        {"n1", "x-0", "xpu", "ring", 0, ""},
        {"n1", "ring/1", "host", "ring", 1, ",\"held\":true"},
        {"n1", "alone", "host", "", 0, ""},
        {"n2", "other", "host", "", 0, ""},
    };
    cleanup_host struct host h = {0};
    cleanup_with(json) cJSON *json = noted(pods, ARRAY_LEN(pods));
    make_host(HOST("n1"), &h);
    struct host_notes n;
    host_notes_init(&n, &h, json, NULL);
    cr_expect_str_eq(n.texts[0], "◀ a/ring pair 0 xPU, kept for a/ring pair 1 "
                                 "host, a/alone");
    cr_expect_null(n.texts[1]);
    cr_expect_str_eq(n.texts[3], "◀ a/ring pair 0 host, PHB");
    host_notes_fini(&n);
    host_notes_init(&n, &h, json, "a/ring");
    cr_expect_str_eq(n.texts[0], "◀ pair 0 xPU, kept for pair 1 host, alone");
    host_notes_fini(&n);
    host_notes_init(&n, &h, json, "ab/ring");
    cr_expect_str_eq(n.texts[3], "◀ a/ring pair 0 host, PHB");
    host_notes_fini(&n);
}

Test(notes, are_not_endless)
{
    struct noted pods[9];
    cleanup_host struct host h = {0};
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        pods[i] = (struct noted){"n1", "p", "service", "", 0, ""};
    cleanup_with(json) cJSON *json = noted(pods, ARRAY_LEN(pods));
    make_host(HOST("n1"), &h);
    struct host_notes n;
    host_notes_init(&n, &h, json, NULL);
    cr_expect(strstr(n.texts[0], "a/p and 3 more"), "%s", n.texts[0]);
    host_notes_fini(&n);
}

/* --- allocations -------------------------------------------------------- */

#define HEAD(pod) \
    pod "ROLE  NODE  CARD  GPU  NUMA  RELATION  ACHIEVED  STATE  REASON\n"

Test(allocations, a_held_place_is_told_from_a_pod)
{
    cJSON *list = parse(
        "[{\"pod\":{\"namespace\":\"a\",\"name\":\"p\",\"role\":\"host\"},"
        "\"node\":\"n\",\"numa\":0,\"relation\":\"PIX\"},"
        "{\"pod\":{\"namespace\":\"a\",\"name\":\"j/1\",\"role\":\"host\"},"
        "\"held\":true,\"node\":\"n\",\"numa\":0,\"relation\":\"PIX\"}]");
    struct cli c = {.out = STR_INIT(4096)};
    cr_expect(listing_table(&c, list, &allocations_listing));
    assert_text(&c.out, HEAD("POD    ") "a/j/1  held  n     -     -       0  "
                                        "PIX       -         -      -\n"
                                        "a/p    host  n     -     -       0  "
                                        "PIX       -         -      -\n");
    str_fini(&c.out);
    cJSON_Delete(list);
}

Test(allocations, nics_and_jobs_are_in_the_wide_table)
{
    cJSON *list = parse(
        "[{\"pod\":{\"namespace\":\"a\",\"name\":\"p\",\"role\":\"host\"},"
        "\"node\":\"n\",\"nics\":[{\"id\":\"nic-0\"},{\"id\":\"nic-1\"}],"
        "\"numa\":0,\"relation\":\"PIX\"}]");
    struct cli c = {.form = OUTPUT_WIDE, .out = STR_INIT(4096)};
    cr_expect(listing_table(&c, list, &allocations_listing));
    assert_text(&c.out,
                "POD  ROLE  NODE  CARD  GPU  NUMA  RELATION  ACHIEVED  STATE  "
                "REASON  NIC          JOB  PAIR\n"
                "a/p  host  n     -     -       0  PIX       -         -      "
                "-       nic-0,nic-1  -       -\n");
    str_fini(&c.out);
    cJSON_Delete(list);
}

/* Its GPU is the promised one; how far that is from its cards is not known. */
Test(allocations, a_relation_that_is_not_known_is_not_shown_as_kept)
{
    cJSON *list = parse(
        "[{\"pod\":{\"namespace\":\"a\",\"name\":\"h\",\"role\":\"host\"},"
        "\"node\":\"n\",\"numa\":0,\"relation\":\"PIX\","
        "\"achieved\":{\"state\":\"kept\",\"relation\":null}},"
        "{\"pod\":{\"namespace\":\"a\",\"name\":\"i\",\"role\":\"host\"},"
        "\"node\":\"n\",\"numa\":0,\"relation\":\"PIX\","
        "\"achieved\":{\"state\":\"kept\",\"relation\":\"PIX\"}},"
        "{\"pod\":{\"namespace\":\"a\",\"name\":\"s\",\"role\":\"service\"},"
        "\"node\":\"n\",\"numa\":0,\"relation\":\"PIX\","
        "\"achieved\":{\"state\":\"kept\",\"relation\":null}}]");
    struct cli c = {.out = STR_INIT(4096)};
    cr_expect(listing_table(&c, list, &allocations_listing));
    assert_text(&c.out,
                "POD  ROLE     NODE  CARD  GPU  NUMA  RELATION  ACHIEVED  "
                "STATE  REASON\n"
                "a/h  host     n     -     -       0  PIX       unknown   -    "
                "  -\n"
                "a/i  host     n     -     -       0  PIX       PIX       -    "
                "  -\n"
                "a/s  service  n     -     -       0  PIX       kept      -    "
                "  -\n");
    str_fini(&c.out);
    cJSON_Delete(list);
}

Test(jobs, a_job_that_waits_is_listed_with_what_for)
{
    cJSON *list = parse(
        "[{\"namespace\":\"a\",\"name\":\"j\",\"size\":4,\"state\":\"Pending\","
        "\"reason\":\"NoPlace: fits none of 3 nodes\",\"placed\":0,"
        "\"running\":0,\"relation\":null,\"nodes\":0,\"pairs\":{\"held\":0,"
        "\"missing\":4},\"score\":{\"unaligned\":0,\"tier\":null,"
        "\"leaves\":0,\"crossings\":0}}]");
    struct cli c = {.out = STR_INIT(4096)};
    cr_expect(listing_table(&c, list, &jobs_listing));
    assert_text(&c.out,
                "JOB  STATE    PAIRS  PLACED  RUNNING  NODES  LEAVES  "
                "UNALIGNED  RELATION  WITHIN  AGE  REASON\n"
                "a/j  Pending      4       0        0      0       0          "
                "0  -         -       -    NoPlace: fits none of 3 nodes\n");
    str_fini(&c.out);
    cJSON_Delete(list);
}

/* --- leaves --------------------------------------------------------------- */

Test(jobs, leaves_are_in_the_order_of_their_numbers)
{
    cJSON *pairs = parse("[{\"rank\":0,\"leaf\":\"leaf10\",\"node\":\"n2\"},"
                         "{\"rank\":1,\"leaf\":\"leaf6\",\"node\":\"n10\"},"
                         "{\"rank\":2,\"leaf\":\"leaf6\",\"node\":\"n9\"}]");
    cleanup_str struct str out = STR_INIT(4096);
    leaves_draw(pairs, &out);
    cr_expect_str_eq(str_text(&out), "leaf6  2 pairs\n"
                                     "  ├─ n9  2\n"
                                     "  └─ n10  1\n"
                                     "leaf10  1 pair\n"
                                     "  └─ n2  0\n");
    cJSON_Delete(pairs);
}

Test(jobs, leaves_are_drawn)
{
    cJSON *pairs = parse("[{\"rank\":0,\"leaf\":\"b\",\"node\":\"n2\"},"
                         "{\"rank\":1,\"leaf\":\"b\",\"node\":\"n2\"},"
                         "{\"rank\":2,\"leaf\":\"a\",\"node\":\"n1\"},"
                         "{\"rank\":3,\"leaf\":\"b\",\"node\":\"n3\"},"
                         "{\"rank\":4,\"leaf\":\"b\",\"node\":\"n2\"},"
                         "{\"rank\":5,\"leaf\":null,\"node\":\"n9\"}]");
    cleanup_str struct str out = STR_INIT(4096);
    leaves_draw(pairs, &out);
    cr_expect_str_eq(str_text(&out), "(no known leaf)  1 pair\n"
                                     "  └─ n9  5\n"
                                     "a  1 pair\n"
                                     "  └─ n1  2\n"
                                     "b  4 pairs\n"
                                     "  ├─ n2  0-1,4\n"
                                     "  └─ n3  3\n");
    cJSON_Delete(pairs);
}
