/* Traces of jobs: both forms, what is wrong with them, and those made from a
 * seed. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "bench/replay/trace.h"
#include "lib/base/str.h"
#include "tests/lib/testdata.h"

#define cleanup_trace __attribute__((__cleanup__(trace_cleanup_p)))

static int read_text(const char *text, struct trace *t, struct error *err)
{
    return trace_read("t", text, strlen(text), TRACE_AUTO, t, err);
}

static void assert_refused(const char *text, const char *why)
{
    struct trace t = {0};
    struct error err = {0};
    cr_assert_lt(read_text(text, &t, &err), 0, "accepted: %s", text);
    cr_assert_str_eq(err.text, why);
    cr_assert_null(t.jobs);
    cr_assert_eq(t.n, 0);
}

static void assert_job(const struct trace *t, size_t i, double arrival_s,
                       double duration_s, unsigned pairs, unsigned cards)
{
    const struct replay_job *j = &t->jobs[i];
    cr_assert_eq(j->arrival_us, (int64_t)(arrival_s * 1e6), "job %zu", i);
    cr_assert_eq(j->duration_us, (int64_t)(duration_s * 1e6), "job %zu", i);
    cr_assert_eq(j->pairs, pairs, "job %zu has %u pairs", i, j->pairs);
    cr_assert_eq(j->cards, cards, "job %zu has %u cards", i, j->cards);
}

#define SWF(n, submit, run, alloc, request)            \
    n " " submit " 0 " run " " alloc " -1 -1 " request \
      " -1 -1 1 1 1 1 1 1 -1 -1"

/* --- JSON lines --------------------------------------------------------- */

Test(trace, a_json_line_is_nodes_times_ranks_pairs)
{
    cleanup_trace struct trace t = {0};
    struct error err = {0};
    cr_assert_eq(read_text("{\"arrival_s\":1.5,\"duration_s\":2,\"nodes\":3,"
                           "\"ranks_per_node\":4,\"devices_per_rank\":2,"
                           "\"profile\":\"x\",\"assumed\":[]}\n"
                           "\n"
                           "{\"arrival_s\":0,\"duration_s\":10}\r\n"
                           "{\"arrival_s\":3,\"duration_s\":1,"
                           "\"devices_per_rank\":0}\n"
                           "{\"arrival_s\":4,\"duration_s\":0}",
                           &t, &err),
                 0, "%s", err.text);
    cr_assert_eq(t.n, 2);
    assert_job(&t, 0, 0, 10, 1, 1);
    assert_job(&t, 1, 1.5, 2, 12, 2);
    cr_assert_eq(t.n_no_card, 1);
    cr_assert_eq(t.n_no_time, 1);
}

static void assert_needs(const struct replay_job *j, unsigned cpu_milli,
                         unsigned memory_mib, unsigned card_cores,
                         unsigned card_memory_mib)
{
    cr_assert_eq(j->cpu_milli, cpu_milli);
    cr_assert_eq(j->memory_mib, memory_mib);
    cr_assert_eq(j->card_cores, card_cores);
    cr_assert_eq(j->card_memory_mib, card_memory_mib);
}

Test(trace, what_a_pair_asks_is_in_the_trace_or_given)
{
    cleanup_trace struct trace t = {0};
    struct error err = {0};
    cr_assert_eq(read_text("{\"arrival_s\":0,\"duration_s\":1}\n"
                           "{\"arrival_s\":1,\"duration_s\":1,"
                           "\"cpu_milli\":500,\"card_cores\":2}\n"
                           "{\"arrival_s\":2,\"duration_s\":1,"
                           "\"memory_mib\":64,\"card_memory_mib\":32}\n"
                           "{\"arrival_s\":3,\"duration_s\":1,\"nodes\":2,"
                           "\"ranks_per_node\":8,\"cpu_milli\":88000,"
                           "\"memory_mib\":9,\"card_cores\":1}\n",
                           &t, &err),
                 0, "%s", err.text);
    assert_needs(&t.jobs[0], 0, 0, 0, 0);
    cr_assert(trace_asks_hosts(&t));
    cr_assert_eq(trace_need("memory=7,card-cores=3,card-memory=5", &t, &err), 0,
                 "%s", err.text);
    assert_needs(&t.jobs[0], 0, 7, 3, 5);
    assert_needs(&t.jobs[1], 500, 7, 2, 0);
    assert_needs(&t.jobs[2], 0, 64, 0, 32);
    assert_needs(&t.jobs[3], 11000, 2, 1, 0); /* of each node's eight */
}

Test(trace, wrong_needs_are_named)
{
    static const char *const wrong[][2] = {
        {"cpu=1,gpu=2", "gpu=2"},
        {"", ""},
        {"cpu", "cpu"},
        {"cpu=", "cpu="},
        {"cpu=-1", "cpu=-1"},
        {"cpu=1x", "cpu=1x"},
        {"card-cores=65536", "card-cores=65536"},
        {"memory=99999999999999999999", "memory=99999999999999999999"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct replay_job job = {.pairs = 1, .cards = 1};
        struct trace t = {.jobs = &job, .n = 1};
        struct error err = {0};
        cleanup_free char *why = xasprintf(
            "--need: has \"%s\", may have cpu=THOUSANDTHS (at most "
            "1000000000), memory=MIB, card-cores=N (65535), card-memory=MIB "
            "(1073741824)",
            wrong[i][1]);
        cr_assert_lt(trace_need(wrong[i][0], &t, &err), 0);
        cr_assert_str_eq(err.text, why);
        assert_needs(&job, 0, 0, 0, 0);
    }
}

Test(trace, equal_arrivals_keep_their_order)
{
    cleanup_trace struct trace t = {0};
    cleanup_str struct str text = STR_INIT(1 << 20);
    struct error err = {0};
    for (int i = 0; i < 300; i++)
        str_addf(&text, "{\"arrival_s\":%d,\"duration_s\":1,\"nodes\":%d}\n",
                 (i * 7) % 10, i + 1);
    cr_assert_eq(read_text(str_text(&text), &t, &err), 0, "%s", err.text);
    cr_assert_eq(t.n, 300);
    for (size_t i = 1; i < t.n; i++) {
        const struct replay_job *a = &t.jobs[i - 1], *b = &t.jobs[i];
        cr_assert_leq(a->arrival_us, b->arrival_us);
        if (a->arrival_us == b->arrival_us)
            cr_assert_lt(a->pairs, b->pairs);
    }
}

Test(trace, errors_name_the_line_and_the_member)
{
    assert_refused("{\"arrival_s\":0,\"duration_s\":1}\n{\"arrival_s\":0}",
                   "t:2: duration_s: required member missing");
    assert_refused("{\"arrival_s\":-1,\"duration_s\":1}",
                   "t:1: arrival_s: must be a number of seconds, 0 to "
                   "10000000000");
    assert_refused("{\"arrival_s\":0,\"duration_s\":1,\"nodes\":1000,"
                   "\"ranks_per_node\":100}",
                   "t:1: nodes: is 1000, with ranks_per_node 100 that are "
                   "100000 pairs; a job may have 65536");
    assert_refused("{\"arrival_s\":0,\"duration_s\":1,\"card_cores\":65536}",
                   "t:1: card_cores: is 65536, must be 0 to 65535");
    assert_refused("", "t: has no job that takes a card");
}

/* --- SWF ---------------------------------------------------------------- */

Test(trace, processors_of_swf_are_pairs)
{
    cleanup_trace struct trace t = {0};
    struct error err = {0};
    cr_assert_eq(read_text("; Version: 2.2\n"
                           ";\n" SWF("1", "0", "100", "8", "16") "\n" SWF(
                               "2", "5", "50", "4",
                               "-1") "\n" SWF("3", "6", "-1", "4",
                                              "4") "\n" SWF("4", "7", "20",
                                                            "-1", "-1") "\n",
                           &t, &err),
                 0, "%s", err.text);
    cr_assert_eq(t.n, 2);
    assert_job(&t, 0, 0, 100, 16, 1); /* as requested */
    assert_job(&t, 1, 5, 50, 4, 1);   /* as allocated, none was requested */
    cr_assert_eq(t.n_no_time, 1);
    cr_assert_eq(t.n_no_card, 1);
}

Test(trace, errors_of_swf_name_the_line_and_the_field)
{
    assert_refused("; x\n1 2 3\n", "t:2: has 3 fields, must have 18");
    assert_refused(SWF("1", "0", "abc", "8", "16"),
                   "t:1: field 4: is \"abc\", must "
                   "be a number");
    assert_refused(SWF("1", "0", "1", "8", "70000"),
                   "t:1: field 8: is 70000 processors, must be a whole number "
                   "of at most 65536");
}

Test(trace, swf_says_how_large_the_machine_was)
{
    static const struct {
        const char *header;
        uint32_t procs;
    } cases[] = {
        {"; MaxNodes: 64\n;  MaxProcs:  512\n", 512},
        {";maxprocs: 8 (of 9)\n", 8},
        {"; MaxProcs: unknown\n", 0},
        {"; MaxProcs: -5\n", 0},
        {"; MaxProcs: 99999999999\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_trace struct trace t = {0};
        struct error err = {0};
        cleanup_free char *text = xasprintf("%s%s\n", cases[i].header,
                                            SWF("1", "0", "5", "2", "2"));
        cr_assert_eq(read_text(text, &t, &err), 0, "%s", err.text);
        cr_expect_eq(t.max_procs, cases[i].procs, "%s", cases[i].header);
    }
}

/* --- real ones ---------------------------------------------------------- */

static void read_real(const char *name, struct trace *t)
{
    struct error err = {0};
    size_t size = 0;
    if (!testdata_dir())
        cr_skip_test("no shared data: %s is not read", name);
    cleanup_free char *path = xasprintf("%s/traces/%s", testdata_dir(), name);
    cleanup_free char *text = testdata_read(path, &size);
    cr_assert_eq(trace_read(path, text, size, TRACE_AUTO, t, &err), 0, "%s",
                 err.text);
}

Test(trace, kalos_is_read)
{
    cleanup_trace struct trace t = {0};
    uint64_t pairs = 0;
    read_real("kalos/kalos.replay.jsonl", &t);
    cr_assert_eq(t.n, 319);
    for (size_t i = 0; i < t.n; i++)
        pairs += t.jobs[i].pairs;
    cr_assert_eq(pairs, 99711);
}

Test(trace, openb_is_read)
{
    cleanup_trace struct trace t = {0};
    read_real("openb/openb.replay.jsonl", &t);
    cr_assert_eq(t.n, 7064);
    cr_assert_eq(t.n_no_card, 1088);
}

/* --- made from a seed --------------------------------------------------- */

static void generate(const char *spec, uint64_t seed, struct trace *t)
{
    struct error err = {0};
    cr_assert_eq(trace_generate(spec, seed, 800, t, &err), 0, "%s", err.text);
}

Test(generate, offers_the_load_that_is_asked_for)
{
    cleanup_trace struct trace t = {0};
    double work = 0;
    generate("poisson:load=0.5,jobs=20000,mean=100,sizes=1:1,4:3", 3, &t);
    cr_assert_eq(t.n, 20000);
    unsigned four = 0;
    for (size_t i = 0; i < t.n; i++) {
        work += (double)t.jobs[i].duration_us * t.jobs[i].cards;
        four += t.jobs[i].cards == 4;
        cr_assert_eq(t.jobs[i].pairs, 1);
    }
    double load = work / (double)t.jobs[t.n - 1].arrival_us / 800;
    cr_assert_float_eq(load, 0.5, 0.02, "load is %g", load);
    cr_assert_float_eq(four / 20000.0, 0.75, 0.01);
}

Test(generate, the_same_seed_gives_the_same_trace)
{
    cleanup_trace struct trace a = {0}, b = {0}, c = {0};
    generate("mpi:jobs=50", 7, &a);
    generate("mpi:jobs=50", 7, &b);
    generate("mpi:jobs=50", 8, &c);
    cr_assert_eq(a.n, 50);
    cr_assert_arr_eq(a.jobs, b.jobs, a.n * sizeof *a.jobs);
    cr_assert_arr_neq(a.jobs, c.jobs, a.n * sizeof *a.jobs);
}

Test(generate, refuses_what_it_does_not_know)
{
    static const char *const wrong[] = {
        "",
        "mpi:",
        "mpi:load=0",
        "poisson:jobs=x",
        "gauss",
        "mpi:jobs=1.5",
        "poisson:sizes=1",
        "mpi:sizes=2:0",
        "mpi:pi=3",
        "poisson:sizes=17:1",
        "mpi:load=0.5,,",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        cleanup_trace struct trace t = {0};
        struct error err = {0};
        cr_assert_lt(trace_generate(wrong[i], 1, 8, &t, &err), 0, "%s",
                     wrong[i]);
        cr_assert(strstr(err.text, "--generate: has \""), "%s", err.text);
    }
}

Test(trace, limits_and_compresses)
{
    cleanup_trace struct trace t = {0};
    struct error err = {0};
    cr_assert_eq(read_text("{\"arrival_s\":10,\"duration_s\":1}\n"
                           "{\"arrival_s\":12,\"duration_s\":1}\n"
                           "{\"arrival_s\":30,\"duration_s\":1}\n",
                           &t, &err),
                 0);
    trace_limit(&t, 2000000);
    cr_assert_eq(t.n, 2);
    cr_assert_eq(t.n_late, 1);
    trace_compress(&t, 4);
    assert_job(&t, 1, 3, 1, 1, 1);
}
