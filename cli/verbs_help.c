/* What `biga` says about itself. */
#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"

static const char about[] =
    "Asks a Biga extender what it knows: nodes, their cards and how close "
    "everything in them is, which pod was given what, and why. The commands "
    "card, pods, logs and exec ask the advertiser of this host instead, over "
    "its unix socket, as root or its own user.\n\n"
    "A name without a namespace is one of --namespace, else of \"default\". "
    "Colours are "
    "used on a terminal only, and not when NO_COLOR is set. The exit code is 1 "
    "when the server says no or cannot be reached, 2 for a wrong command "
    "line.";

void cli_program(struct conf_program *ret_program, struct str *commands,
                 const char *extra[CLI_EXTRA])
{
    size_t n_settings;
    const struct conf_setting *settings = cli_settings_table(&n_settings);
    for (size_t i = 0; i < n_verbs; i++) /* a paragraph each */
        str_addf(commands, "%s%s%s%s: %s.", i ? "\n\n" : "", verbs[i].name,
                 *verbs[i].args ? " " : "", verbs[i].args, verbs[i].help);
    extra[0] = "Commands";
    extra[1] = str_text(commands);
    extra[2] = NULL;
    *ret_program = (struct conf_program){
        .name = "biga",
        .summary = "look into a Biga extender",
        .usage = "COMMAND [ARGUMENT]… [OPTION]…",
        .text = about,
        .settings = settings,
        .n_settings = n_settings,
        .extra = extra,
    };
}

static int help_verb(const char *name)
{
    size_t n;
    const struct conf_setting *settings = cli_settings_table(&n);
    cleanup_free struct conf_setting *some = xcalloc(n, sizeof *some);
    const struct verb *v = verb_find(name);
    if (!v)
        return cli_usage("%s: no such command; see biga help", name);
    bool own = strstr(v->args, "OPTION");
    bool last = !own && !strstr(v->args, " -- "); /* else they are another's */
    cleanup_free char *usage =
        xasprintf("%s%s%s%s%s", v->name, own || last ? "" : " [OPTION]…",
                  *v->args ? " " : "", v->args, last ? " [OPTION]…" : "");
    struct conf_program program = {
        .name = "biga", .summary = v->help, .usage = usage, .settings = some};
    for (size_t i = 0; i < n; i++)
        if (options_have(v->options, settings[i].name))
            some[program.n_settings++] = settings[i];
    conf_print_help(&program, stdout);
    return 0;
}

int verb_help(struct cli *c, int argc, char **argv)
{
    cleanup_str struct str commands = STR_INIT(8192);
    cleanup_str struct str summary = STR_INIT(16384);
    cleanup_str struct str list = STR_INIT(8192);
    const char *extra[CLI_EXTRA];
    struct conf_program program;
    (void)c;
    if (argc == 1)
        return help_verb(argv[0]);
    cli_program(&program, &commands, extra);
    verbs_describe(&list);
    str_addf(&summary, "%s\n\nCommands:\n%.*s", program.summary,
             (int)list.size - 1, str_text(&list));
    program.summary = str_text(&summary);
    conf_print_help(&program, stdout);
    return 0;
}
