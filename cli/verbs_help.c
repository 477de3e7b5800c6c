/* What `biga` says about itself on a terminal of 80 columns: one screen of all
 * commands, and each of them whole. */
#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum { WIDTH = 79, NAMES_WIDTH = 24, COLUMN_INDENT = 22 };

/* Its name and arguments, without what may be left out of a name. */
static void add_synopsis(const struct verb *v, struct str *out)
{
    static const char optional[] = "[NAMESPACE/]";
    str_addf(out, "%s%s", v->name, *v->args ? " " : "");
    for (const char *p = v->args; *p;) {
        size_t n = strncmp(p, optional, sizeof optional - 1) == 0
                       ? sizeof optional - 1
                       : 0;
        p += n;
        if (*p)
            str_add_c(out, *p++);
    }
}

static void add_brief(const struct verb *v, const char *brief, struct str *out)
{
    cleanup_str struct str synopsis = STR_INIT(256);
    add_synopsis(v, &synopsis);
    size_t width = text_width(str_text(&synopsis));
    str_addf(out, "  %s%*s%s\n", str_text(&synopsis),
             (int)(width < NAMES_WIDTH ? NAMES_WIDTH - width : 1), "", brief);
}

static void add_group(enum verb_group group, const char *title, struct str *out)
{
    cleanup_str struct str also = STR_INIT(1024);
    str_addf(out, "%s\n", title);
    for (size_t i = 0; i < n_verbs; i++) {
        const struct verb_about *a = verb_about(verbs[i].name);
        if (a->group == group && a->brief)
            add_brief(&verbs[i], a->brief, out);
        else if (a->group == group)
            str_addf(&also, "%s%s", also.size ? ", " : "", verbs[i].name);
    }
    if (!also.size)
        return;
    str_add(out, "  also: ");
    text_wrap(str_text(&also), 8, 8, WIDTH, out);
    str_add_c(out, '\n');
}

void verbs_describe(struct str *out)
{
    static const char *const titles[N_GROUPS] = {
        [GROUP_LOOK] = "Look:",
        [GROUP_JOBS] = "Jobs and pods:",
        [GROUP_ACT] = "Act:",
        [GROUP_HOST] = "On a host with cards:",
        [GROUP_DEVELOP] = "For developers and shells:",
    };
    for (int g = 0; g < N_GROUPS; g++)
        add_group((enum verb_group)g, titles[g], out);
}

/* --- one command ------------------------------------------------------------ */

void verb_describe_columns(const struct listing *l, struct str *out)
{
    for (size_t i = 0; i < l->n_columns; i++) {
        const struct listing_column *column = &l->columns[i];
        cleanup_free char *means =
            xasprintf("%s%s", column->means,
                      column->flags & LISTING_WIDE ? " (-o wide)" : "");
        str_addf(out, "  %-*s", COLUMN_INDENT - 2, column->title);
        if (strlen(column->title) > COLUMN_INDENT - 4)
            str_addf(out, "\n%*s", COLUMN_INDENT, "");
        text_wrap(means, COLUMN_INDENT, COLUMN_INDENT, WIDTH, out);
        str_add_c(out, '\n');
    }
}

void verb_describe_examples(const struct verb_about *a, const char *indent,
                            struct str *out)
{
    for (const char *p = a->examples; *p;) {
        size_t n = strcspn(p, "\n");
        str_addf(out, "%s%.*s\n", indent, (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void add_usage(const struct verb *v, struct str *out)
{
    bool own = strstr(v->args, "OPTION");
    bool last = !own && !strstr(v->args, " -- "); /* else they are another's */
    str_addf(out, "Usage: biga %s%s%s%s%s\n", v->name,
             own || last ? "" : " [OPTION]…", *v->args ? " " : "", v->args,
             last ? " [OPTION]…" : "");
    text_wrap(v->help, 0, 0, WIDTH, out);
    str_add_c(out, '\n');
}

static void add_rest(const struct verb_about *a, struct str *out)
{
    for (size_t i = 0; i < VERB_LISTS_MAX && a->lists[i]; i++) {
        str_add(out, i ? "\n" : "\nColumns:\n");
        verb_describe_columns(a->lists[i], out);
    }
    if (*a->examples)
        str_add(out, "\nExamples:\n");
    verb_describe_examples(a, "  ", out);
    if (*a->see)
        str_addf(out, "\nSee also: %s\n", a->see);
}

static int help_verb(const char *name)
{
    size_t n;
    const struct conf_setting *settings = cli_settings_table(&n);
    cleanup_free struct conf_setting *some = xcalloc(n, sizeof *some);
    cleanup_str struct str head = STR_INIT(8192), rest = STR_INIT(65536);
    struct conf_program program = {.name = "biga", .settings = some};
    const struct verb *v = verb_find(name);
    if (!v)
        return verb_complain(name);
    for (size_t i = 0; i < n; i++)
        if (options_have(v->options, settings[i].name))
            some[program.n_settings++] = settings[i];
    add_usage(v, &head);
    fputs(str_text(&head), stdout);
    if (program.n_settings)
        fputs("\nOptions:\n", stdout);
    conf_print_options(&program, stdout);
    add_rest(verb_about(name), &rest);
    fputs(str_text(&rest), stdout);
    return 0;
}

int verb_help(struct cli *c, int argc, char **argv)
{
    if (argc == 1)
        return help_verb(argv[0]);
    str_add(&c->out,
            "Usage: biga COMMAND [ARGUMENT]… [OPTION]…\n"
            "Look into a Biga extender: nodes, cards, jobs, and why pods are "
            "where they are.\n\n");
    verbs_describe(&c->out);
    str_add(&c->out,
            "Most commands take -s URL (or BIGA_SERVER), -n NAMESPACE, -o "
            "FORM; lists also\n"
            "-l SELECTOR, --sort-by COLUMN. `biga help COMMAND` tells more, "
            "`man biga` all.\n");
    return 0;
}
