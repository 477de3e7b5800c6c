/* biga - the command line. */
#include <string.h>

#include "cli/base/names.h"
#include "cli/base/output.h"
#include "cli/base/say.h"
#include "cli/base/watch.h"
#include "cli/complete.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"

/* Of a pod with its namespace, as the server lists them. */
static char *whole_name(const struct cli *c, const char *kind, const char *name)
{
    const char *own = cli_namespace(c);
    if (strcmp(kind, "pod") != 0 || strchr(name, '/'))
        return xstrdup(name);
    return xasprintf("%s/%s", own ? own : "default", name);
}

/* What the server does not know: is there something with such a name? */
static void suggest_names(struct cli *c, const char *takes, int argc,
                          char **argv)
{
    for (int i = 0; i < argc && *takes; i++) {
        size_t n = strcspn(takes, " ");
        bool named = i + 1 < argc; /* biga delete KIND NAME */
        cleanup_free char *kind = strcmp(takes, "deletable") != 0
                                      ? xstrndup(takes, n)
                                  : named ? xstrdup(argv[i++])
                                          : xstrdup("pod");
        cleanup_free char *word = whole_name(c, kind, argv[i]);
        takes += n + (takes[n] == ' ');
        names_hint(c, kind, word);
    }
}

struct running {
    const struct verb *verb;
    int argc;
    char **argv;
    char *last; /* what was shown; NULL: nothing yet */
};

static int run(struct cli *c, const struct running *r)
{
    int rc = r->verb->run(c, r->argc, r->argv);
    return rc ? rc : output_finish(c);
}

/* What is no list is shown whole, when it is different. */
static int run_again(struct cli *c, void *ctx)
{
    struct running *r = ctx;
    int rc = run(c, r);
    if (rc || listing_seen_any(c->seen))
        return rc;
    if (r->last && strcmp(r->last, str_text(&c->out)) == 0) {
        str_reset(&c->out);
        return 0;
    }
    if (r->last && !c->set.json) /* YAML has its "---" already */
        fputs("\n", stdout);
    free(r->last);
    r->last = xstrdup(str_text(&c->out));
    return 0;
}

static int watch(struct cli *c, struct running *r)
{
    c->seen = listing_seen_create();
    bool untold = strcmp(r->verb->name, VERB_UNTOLD) == 0;
    bool told = options_have(r->verb->options, "server");
    int rc = told ? watch_run(c, run_again, r, untold)
                  : watch_again(c, run_again, r);
    listing_seen_destroy(steal(&c->seen));
    free(r->last);
    return rc;
}

static int dispatch(struct cli *c, int argc, char **argv)
{
    if (argc == 0) {
        (void)verb_help(c, 0, NULL);
        return CLI_USAGE;
    }
    const struct verb *v = verb_find(argv[0]);
    if (!v)
        return verb_complain(argv[0]);
    argc--;
    argv++;
    int rc = options_check(c, v->name, v->options);
    if (rc == 0 && options_have(v->options, "output"))
        rc = output_choose(c);
    else
        c->set.json = false; /* BIGA_JSON is for others */
    if (rc == 0 && c->set.all_namespaces && cli_is_given(c, "namespace"))
        rc = cli_usage("--all-namespaces: --namespace is given, too");
    if (rc)
        return rc;
    if (argc < v->args_min || argc > v->args_max)
        return cli_usage("usage: biga %s%s%s", v->name, *v->args ? " " : "",
                         v->args);
    if (v->named != NAMED_NONE && argc > 0)
        rc = cli_qualify(c, v->name, &argv[0]);
    if (rc)
        return rc;
    c->kind = verb_about(v->name)->kind;
    struct running r = {.verb = v, .argc = argc, .argv = argv};
    bool again = c->set.watch && options_have(v->options, "watch") &&
                 !options_have(VERB_WATCHES, v->name);
    rc = again ? watch(c, &r) : run(c, &r);
    if (rc && c->status == 404)
        suggest_names(c, verb_about(v->name)->takes, argc, argv);
    if (rc == 0 && c->nothing && !c->set.watch && cli_namespace(c) &&
        options_have(v->options, "server"))
        names_hint(c, "namespace", cli_namespace(c));
    return rc;
}

/* Is the next argument the value of this option? */
static bool takes_next(const struct conf_program *p, const char *option)
{
    if (strcmp(option, "--config") == 0 || strcmp(option, "--print-docs") == 0)
        return true;
    for (size_t i = 0; i < p->n_settings; i++) {
        const struct conf_setting *s = &p->settings[i];
        bool named = option[1] == '-'
                         ? strcmp(option + 2, s->name) == 0
                         : option[1] == s->letter && option[2] == '\0';
        if (named)
            return s->type != CONF_FLAG;
    }
    return false;
}

/* The first argument from `at` on that is no option and no option's value;
 * argc when there is none before a "--". */
static int next_word(const struct conf_program *p, int at, int argc,
                     char **argv)
{
    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        if (strcmp(argv[at], "--") == 0)
            return argc;
        at += takes_next(p, argv[at]) ? 2 : 1;
    }
    return at < argc ? at : argc;
}

/* Ours lists the commands, which conf does not know; `biga COMMAND --help` is
 * about that one.  `*ret_at`: where that is; argc for none. */
static bool asks_help(const struct conf_program *p, int argc, char **argv,
                      int *ret_at)
{
    int at = next_word(p, 1, argc, argv), end = argc;
    if (at < argc && strcmp(argv[at], VERB_PASSES_ON) == 0)
        end = next_word(p, at + 1, argc, argv); /* the rest is another's */
    *ret_at = at < argc && verb_find(argv[at]) ? at : argc;
    for (int i = 1; i < end && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* How many arguments stand behind the "--"; -1: there is none. */
static int count_behind(const struct conf_program *p, int argc, char **argv)
{
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0)
        at += argv[at][0] == '-' && takes_next(p, argv[at]) ? 2 : 1;
    return at < argc ? argc - at - 1 : -1;
}

/* What a verb has for stdout; the exit code, of which what was not written
 * makes a failure. */
static int print_out(const struct cli *c, int rc)
{
    bool written = fwrite(str_text(&c->out), 1, c->out.size, stdout) ==
                       c->out.size &&
                   fflush(stdout) == 0 && !ferror(stdout);
    if (written || rc) /* what is wrong was told */
        return rc;
    perror("biga: standard output");
    return CLI_FAILED;
}

static int finish(struct cli *c, const struct conf_program *program, int rc)
{
    str_fini(&c->out);
    free(c->name);
    conf_fini(program, &c->set);
    return rc;
}

int main(int argc, char **argv)
{
    cleanup_manual struct cli_manual manual;
    struct cli c = {.out = STR_INIT(STR_MAX_DEFAULT)};
    struct error err = {0};
    int first = 1;
    cli_manual_init(&manual);
    if (argc > 1 && strcmp(argv[1], "replay") == 0) /* has its own options */
        return verb_replay(&c, argc - 2, argv + 2);
    struct conf_program program = manual.program;
    cleanup_free bool *given = xcalloc(program.n_settings, sizeof *given);
    if (argc > 1 && strcmp(argv[1], COMPLETE_COMMAND) == 0) {
        complete(&c, &program, argc - 2, argv + 2, &c.out);
        return finish(&c, &program, print_out(&c, 0));
    }
    program.given = given;
    c.given = given;
    /* before it puts options first */
    cleanup_free char **words = xmemdup(argv + 1, (size_t)argc * sizeof *argv);
    c.words = words;
    int about = argc;
    if (asks_help(&program, argc, argv, &about))
        return print_out(&c, verb_help(&c, about < argc, argv + about));
    c.n_behind = count_behind(&program, argc, argv);
    int rc = conf_read(&program, argc, argv, &c.set, &first, &err);
    if (rc < 0)
        return cli_usage("%s", err.text);
    if (rc > 0)
        return 0;
    const char *no_color = getenv("NO_COLOR");
    c.colours = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    rc = dispatch(&c, argc - first, argv + first);
    return finish(&c, &program, print_out(&c, rc));
}
