/* The manual of `biga`: its settings, and all that its tables tell of its
 * commands. */
#include "cli/base/settings.h"
#include "cli/verb/verb.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"

static const char about[] =
    "Asks a Biga extender what it knows: nodes, their cards and how close "
    "everything in them is, which pod was given what, and why. The commands "
    "card, pods and rsh ask the advertiser of this host instead, over its unix "
    "socket, as root or its own user; so do logs and exec where --socket is "
    "given, or where that can be read and --server is not given.\n\n"
    "A name without a namespace is one of --namespace, else of \"default\". "
    "A card is called by its PCI address. "
    "Colours are "
    "used on a terminal only, and not when NO_COLOR is set. The exit code is 1 "
    "when the server says no or cannot be reached, 2 for a wrong command "
    "line.";

/* A paragraph each. */
static void add_commands(struct str *out)
{
    for (size_t i = 0; i < n_verbs; i++) {
        const struct verb_about *a = verb_about(verbs[i].name);
        str_addf(out, "%s%s%s%s: %s.", i ? "\n\n" : "", verbs[i].name,
                 *verbs[i].args ? " " : "", verbs[i].args, verbs[i].help);
        if (*a->see)
            str_addf(out, " See also: %s.", a->see);
    }
}

/* Those of a list once, below all commands that show it. */
static void add_columns(struct str *out)
{
    const struct listing *told[64];
    size_t n = 0;
    for (size_t i = 0; i < n_verbs_about; i++)
        for (size_t k = 0; k < VERB_LISTS_MAX; k++) {
            const struct listing *l = verbs_about[i].lists[k];
            bool known = !l || n == ARRAY_LEN(told);
            for (size_t j = 0; j < n; j++)
                known = known || told[j] == l;
            if (known)
                continue;
            told[n++] = l;
            str_addf(out, "%sbiga %s\n\n", out->size ? "\n" : "",
                     verbs_about[i].name);
            verb_describe_columns(l, out);
        }
}

/* Lines that begin with a space are set as they stand. */
static void add_examples(struct str *out)
{
    for (size_t i = 0; i < n_verbs; i++)
        verb_describe_examples(verb_about(verbs[i].name), "    ", out);
}

void cli_manual_init(struct cli_manual *m)
{
    size_t n_settings;
    const struct conf_setting *settings = cli_settings_table(&n_settings);
    *m = (struct cli_manual){.commands = STR_INIT(65536),
                             .columns = STR_INIT(65536),
                             .examples = STR_INIT(65536)};
    add_commands(&m->commands);
    add_columns(&m->columns);
    add_examples(&m->examples);
    const char *const extra[] = {"COMMANDS",
                                 str_text(&m->commands),
                                 "COLUMNS",
                                 str_text(&m->columns),
                                 "EXAMPLES",
                                 str_text(&m->examples),
                                 "SEE ALSO",
                                 "biga-extender(1), biga-advertiser(1), "
                                 "biga-replay(1), kubectl(1)",
                                 NULL};
    memcpy(m->extra, extra, sizeof extra);
    m->program = (struct conf_program){
        .name = "biga",
        .summary = "look into a Biga extender",
        .usage = "COMMAND [ARGUMENT]… [OPTION]…",
        .text = about,
        .settings = settings,
        .n_settings = n_settings,
        .extra = m->extra,
        .passes_on = VERB_PASSES_ON,
    };
}

void cli_manual_fini(struct cli_manual *m)
{
    str_fini(&m->commands);
    str_fini(&m->columns);
    str_fini(&m->examples);
}
