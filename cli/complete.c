#include "cli/complete.h"

#include <string.h>

#include "cli/base/names.h"
#include "cli/verb/card.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { TAKES_MAX = 64 };

struct completing {
    struct cli *cli;
    const struct conf_program *program;
    const struct verb *verb; /* NULL: none stands there yet */
    const char *args[2];     /* its first arguments */
    int n_args;
    bool ended;   /* behind "--" */
    bool unknown; /* no such command */
    const char *begun;
    const char *before; /* what stands before the value: "--output=" */
    size_t before_size;
    const char *space; /* the namespace that a name without one is of */
    bool whole;        /* names are to be "NAMESPACE/NAME" */
    const char *kind;  /* what stands before names: "job/ring"; "": nothing */
    struct str *out;
    bool files;
};

/* --- words ------------------------------------------------------------------ */

static void offer_n(struct completing *x, const char *word, size_t size,
                    const char *about)
{
    size_t begun = strlen(x->begun);
    cleanup_free char *text = xstrndup(word, size);
    if (size < begun || strncmp(word, x->begun, begun) != 0)
        return;
    str_add_n(x->out, x->before, x->before_size);
    text_clean(text, x->out);
    if (*about) {
        str_add_c(x->out, '\t');
        text_clean(about, x->out);
    }
    str_add_c(x->out, '\n');
}

static void offer(struct completing *x, const char *word, const char *about)
{
    cleanup_free char *whole = xasprintf("%s%s%s", x->kind, *x->kind ? "/" : "",
                                         word);
    offer_n(x, whole, strlen(whole), about);
}

/* "a|b|c", "a b c" */
static void offer_each(struct completing *x, const char *words, char between)
{
    for (const char *p = words; *p;) {
        const char *stop = strchr(p, between);
        size_t n = stop ? (size_t)(stop - p) : strlen(p);
        offer_n(x, p, n, "");
        p += n + (stop != NULL);
    }
}

/* A name of the namespace that is meant anyhow may be without it. */
static bool offer_name(void *ctx, const char *name, const char *about)
{
    struct completing *x = ctx;
    size_t n = strlen(x->space);
    bool here = strncmp(name, x->space, n) == 0 && name[n] == '/';
    if (x->whole)
        offer(x, name, about);
    else if (here)
        offer(x, name + n + 1, about);
    else if (!cli_namespace(x->cli))
        offer(x, name, about);
    return true;
}

/* What is begun of the name, behind the kind that stands before it. */
static const char *begun_name(const struct completing *x)
{
    size_t n = strlen(x->kind);
    if (n == 0)
        return x->begun;
    return strlen(x->begun) > n ? x->begun + n + 1 : "";
}

static void offer_names(struct completing *x, const char *kind)
{
    const char *own = cli_namespace(x->cli);
    bool spaced = strcmp(kind, "pod") == 0 || strcmp(kind, "job") == 0 ||
                  strcmp(kind, "host-pod") == 0 ||
                  strcmp(kind, "configmap") == 0 || strcmp(kind, "secret") == 0;
    x->space = own ? own : "default";
    x->whole = !spaced || strchr(begun_name(x), '/');
    names_of(x->cli, kind, offer_name, x);
}

/* --- options ---------------------------------------------------------------- */

static void offer_option(struct completing *x, const struct conf_setting *s)
{
    cleanup_free char *word = xasprintf("--%s", s->name);
    size_t end = strspn(s->help, "abcdefghijklmnopqrstuvwxyz, ");
    const char *help = s->help[end] == ':' ? s->help + end + 2 : s->help;
    const char *stop = strstr(help, ". ");
    size_t n = stop ? (size_t)(stop - help) : strlen(help);
    cleanup_free char *about = xstrndup(help, n - (n && help[n - 1] == '.'));
    offer(x, word, about);
}

static void offer_options(struct completing *x)
{
    const struct conf_program *p = x->program;
    for (size_t i = 0; i < p->n_settings; i++)
        if (!x->verb || options_have(x->verb->options, p->settings[i].name))
            offer_option(x, &p->settings[i]);
    offer(x, "--help", "Print the help of the command");
}

/* The setting of an option as it stands, without a value; NULL: none. */
static const struct conf_setting *find_option(const struct conf_program *p,
                                              const char *word, size_t size)
{
    for (size_t i = 0; i < p->n_settings; i++) {
        const struct conf_setting *s = &p->settings[i];
        bool is = size > 2 && word[1] == '-'
                      ? strlen(s->name) == size - 2 &&
                            strncmp(s->name, word + 2, size - 2) == 0
                      : size == 2 && word[1] == s->letter;
        if (is && word[0] == '-')
            return s;
    }
    return NULL;
}

static void offer_columns(struct completing *x)
{
    const struct verb_about *a = verb_about(x->verb ? x->verb->name : "");
    const struct listing *l = a->lists[0];
    if (x->verb && x->n_args > 0 && strcmp(x->verb->name, "top") == 0)
        l = top_listing(x->args[0]);
    for (size_t i = 0; l && i < l->n_columns; i++)
        offer_n(x, l->columns[i].title, strcspn(l->columns[i].title, "("),
                l->columns[i].means);
}

static void offer_values(struct completing *x, const struct conf_setting *s)
{
    const char *metavar = s->metavar ? s->metavar : "";
    if (s->type == CONF_CHOICE)
        offer_each(x, s->choices, '|');
    else if (s->type == CONF_FLAG)
        offer_each(x, "true|false", '|');
    else if (strcmp(s->name, "namespace") == 0 || strcmp(s->name, "job") == 0)
        offer_names(x, s->name);
    else if (strcmp(s->name, "sort-by") == 0)
        offer_columns(x);
    else if (strcmp(s->name, "for") == 0)
        offer_each(x, "placed|running|ready|done|deleted", '|');
    else if (strcmp(metavar, "FILE") == 0 || strcmp(metavar, "PATH") == 0)
        x->files = true;
}

/* --- arguments -------------------------------------------------------------- */

static void offer_verbs(struct completing *x)
{
    for (size_t i = 0; i < n_verbs; i++)
        offer(x, verbs[i].name, verbs[i].help);
}

static void offer_card_commands(struct completing *x)
{
    const char *last = "", *name;
    for (size_t i = 0; (name = card_command(i)); i++) {
        if (strcmp(name, last) != 0)
            offer(x, name, "");
        last = name;
    }
}

static void offer_deletable(struct completing *x)
{
    if (x->n_args > 0) {
        offer_names(x, x->args[0]);
        return;
    }
    offer_each(x, "pod job configmap secret", ' ');
    offer_names(x, "pod");
}

/* KIND/NAME of kinds with "|" between, as `biga … -o name` prints them. */
static void offer_kinds(struct completing *x, const char *kinds)
{
    size_t begun = strcspn(x->begun, "/");
    for (const char *p = kinds; *p;) {
        size_t n = strcspn(p, "|");
        cleanup_free char *kind = xstrndup(p, n);
        bool may = x->begun[begun] ? n == begun : n >= begun;
        p += n + (p[n] == '|');
        x->kind = kind;
        if (may && strncmp(kind, x->begun, begun) == 0)
            offer_names(x, kind);
        x->kind = "";
    }
}

/* Nodes, and the cards of the one that is meant. */
static void offer_places(struct completing *x)
{
    size_t before = x->out->size;
    offer_names(x, "node");
    const char *first = str_text(x->out) + before;
    const char *end = strchr(first, '\n');
    if (!end || !end[1])
        offer_names(x, "card");
}

static void offer_argument(struct completing *x, const char *takes)
{
    if (strcmp(takes, "file") == 0)
        x->files = true;
    else if (strcmp(takes, "command") == 0)
        offer_verbs(x);
    else if (strcmp(takes, "shell") == 0)
        offer_each(x, "bash zsh fish", ' ');
    else if (strcmp(takes, "place") == 0)
        offer_places(x);
    else if (strcmp(takes, "top-kind") == 0)
        offer_each(x, "nodes cards pods", ' ');
    else if (strcmp(takes, "card-command") == 0)
        offer_card_commands(x);
    else if (strcmp(takes, "deletable") == 0)
        offer_deletable(x);
    else if (strchr(takes, '|'))
        offer_kinds(x, takes);
    else if (*takes)
        offer_names(x, takes);
    if (*takes && x->verb && strcmp(x->verb->name, "logs") == 0)
        offer_kinds(x, "job");
}

static bool is_repeated(const char *takes)
{
    return takes[strcspn(takes, " +")] == '+';
}

/* The word of `takes` for the argument that is begun; "": any. */
static void find_takes(const struct completing *x, char ret_takes[TAKES_MAX])
{
    const char *p = verb_about(x->verb->name)->takes;
    ret_takes[0] = '\0';
    if (strcmp(p, "deletable") != 0)
        for (int i = 0; i < x->n_args && *p && !is_repeated(p); i++) {
            p += strcspn(p, " ");
            p += *p == ' ';
        }
    if (x->n_args < x->verb->args_max)
        (void)snprintf(ret_takes, TAKES_MAX, "%.*s", (int)strcspn(p, " +"), p);
}

/* --- the whole -------------------------------------------------------------- */

/* A command, or an argument of it. */
static void take_word(struct completing *x, const char *word)
{
    if (!x->verb) {
        x->verb = x->unknown ? NULL : verb_find(word);
        x->unknown = !x->verb;
        return;
    }
    if (x->n_args < (int)ARRAY_LEN(x->args))
        x->args[x->n_args] = word;
    x->n_args++;
    if (strcmp(x->verb->name, VERB_PASSES_ON) == 0)
        x->ended = true; /* the rest is another program's */
}

/* What stands before the word that is begun; the option whose value that is, or
 * NULL. */
static const struct conf_setting *walk(struct completing *x, int n,
                                       char **words)
{
    for (int i = 0; i < n - 1; i++) {
        const char *w = words[i];
        const struct conf_setting *s = find_option(x->program, w, strlen(w));
        if (!x->ended && strcmp(w, "--") == 0) {
            x->ended = true;
        } else if (x->ended || w[0] != '-' || !w[1]) {
            take_word(x, w);
        } else if (s && s->type != CONF_FLAG && ++i == n - 1) {
            return s;
        }
    }
    return NULL;
}

static bool asks_for_itself(int n, char **words)
{
    static const char *const own[] = {"--help", "-h", "--version", "-V",
                                      "--print-docs"};
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < ARRAY_LEN(own); k++)
            if (strcmp(words[i], own[k]) == 0)
                return true;
    return false;
}

/* The server, the namespace and so on that were named before; what is wrong
 * there is told when it is run.  False: a variable is wrong, so that there are
 * no settings. */
static bool read_settings(struct completing *x, int n, char **words)
{
    char name[] = "biga";
    cleanup_free char **argv = xcalloc((size_t)n + 2, sizeof(char *));
    struct error err = {0};
    int rest, argc = 0;
    argv[argc++] = name;
    for (int i = 0; i < n - 1; i++)
        argv[argc++] = words[i];
    return conf_read(x->program, argc, argv, &x->cli->set, &rest, &err) == 0 ||
           conf_read(x->program, 1, argv, &x->cli->set, &rest, &err) == 0;
}

static void complete_word(struct completing *x, int n, char **words)
{
    const struct conf_setting *s = walk(x, n, words);
    const char *equal = x->begun[0] == '-' ? strchr(x->begun, '=') : NULL;
    char takes[TAKES_MAX];
    if (equal && !s && !x->ended) {
        x->before = x->begun;
        x->before_size = (size_t)(equal - x->begun) + 1;
        x->begun = equal + 1;
        s = find_option(x->program, x->before, x->before_size - 1);
        if (!s)
            return;
    }
    if (s) {
        offer_values(x, s);
    } else if (x->begun[0] == '-' && !x->ended) {
        offer_options(x);
    } else if (x->ended) {
        x->files = true;
    } else if (!x->verb && !x->unknown) {
        offer_verbs(x);
    } else if (x->verb) {
        find_takes(x, takes);
        offer_argument(x, takes);
    }
}

void complete_argument(struct cli *c, const char *takes, const char *begun,
                       struct str *out)
{
    struct completing x = {
        .cli = c, .begun = begun, .before = "", .kind = "", .out = out};
    offer_argument(&x, takes);
}

void complete(struct cli *c, const struct conf_program *program, int n,
              char **words, struct str *out)
{
    struct completing x = {.cli = c,
                           .program = program,
                           .begun = n ? words[n - 1] : "",
                           .before = "",
                           .kind = "",
                           .out = out};
    if (!asks_for_itself(n - 1, words) && read_settings(&x, n, words))
        complete_word(&x, n, words);
    str_add(out, x.files ? ":files\n" : ":\n");
}
