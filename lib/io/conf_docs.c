#include "lib/io/conf.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/nearest_word.h"
#include "lib/base/str.h"
#include "lib/base/text.h"
#include "lib/io/conf_private.h"

enum { HELP_INDENT = 26, HELP_WIDTH = 79, HEAD_MAX = 160 };

void conf_env_name(const struct conf_setting *s,
                   char ret_name[CONF_NAME_MAX + 8])
{
    int n = snprintf(ret_name, CONF_NAME_MAX + 8, "$BIGA_%.*s", CONF_NAME_MAX,
                     s->name);
    for (int i = 6; i < n; i++)
        ret_name[i] = ret_name[i] == '-'
                          ? '_'
                          : (char)toupper((unsigned char)ret_name[i]);
}

static void add_duration(struct str *out, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;
    while (ms % units[i].ms != 0 || (ms == 0 && units[i].ms > 1))
        i++;
    str_addf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}

void conf_allowed(const struct conf_setting *s, char ret_text[CONF_ALLOWED_MAX])
{
    cleanup_str struct str out = STR_INIT(CONF_ALLOWED_MAX - 1);
    switch (s->type) {
    case CONF_FLAG:
        str_add(&out, "true or false");
        break;
    case CONF_INT:
        str_addf(&out, "a number from %" PRId64 " to %" PRId64, s->min, s->max);
        break;
    case CONF_DURATION:
        str_add(&out, "a time from ");
        add_duration(&out, s->min);
        str_add(&out, " to ");
        add_duration(&out, s->max);
        str_add(&out, ", with the unit ms, s, m or h");
        break;
    case CONF_CHOICE:
        str_add(&out, "one of ");
        for (const char *p = s->choices; *p; p++)
            if (*p == '|')
                str_add(&out, ", ");
            else
                str_add_c(&out, *p);
        break;
    case CONF_TEXT:
    case CONF_LIST:
        str_addf(&out, "%s", s->metavar ? s->metavar : "TEXT");
        break;
    }
    (void)snprintf(ret_text, CONF_ALLOWED_MAX, "%s", str_text(&out));
}

const char *conf_meant(const struct conf_program *p, const char *name,
                       size_t len)
{
    cleanup_free char *word = xstrndup(name, len);
    const char *best = NULL;
    size_t least = NEAREST_WORD_NOT;
    for (size_t i = 0; i < p->n_settings; i++) {
        size_t far = nearest_word_guess(word, p->settings[i].name);
        if (far >= least)
            continue;
        least = far;
        best = p->settings[i].name;
    }
    return best;
}

static const char *metavar(const struct conf_setting *s)
{
    static const char *const by_type[] = {
        [CONF_TEXT] = "TEXT", [CONF_INT] = "N",      [CONF_DURATION] = "TIME",
        [CONF_CHOICE] = "",   [CONF_LIST] = "A,B,…",
    };
    if (s->metavar)
        return s->metavar;
    return s->type == CONF_CHOICE ? s->choices : by_type[s->type];
}

/* Calls `each` with all settings of the program, then with our own. */
static void for_each(const struct conf_program *p,
                     void (*each)(const struct conf_setting *s, bool own,
                                  FILE *out),
                     FILE *out)
{
    for (size_t i = 0; i < p->n_settings; i++)
        each(&p->settings[i], false, out);
    for (size_t i = 0; i < CONF_N_OWN; i++)
        each(&conf_own[i], true, out);
}

static bool has_default(const struct conf_setting *s)
{
    return s->otherwise && *s->otherwise &&
           !(s->type == CONF_FLAG && strcmp(s->otherwise, "false") == 0);
}

/* --- help --------------------------------------------------------------- */

static void print_help_of(const struct conf_setting *s, bool own, FILE *out)
{
    (void)own;
    char head[HEAD_MAX];
    cleanup_str struct str text = STR_INIT(8192), wrapped = STR_INIT(16384);
    int n = s->letter
                ? snprintf(head, sizeof head, "  -%c, --%s", s->letter, s->name)
                : snprintf(head, sizeof head, "      --%s", s->name);
    if (s->type != CONF_FLAG)
        (void)snprintf(head + n, sizeof head - (size_t)n, " %s", metavar(s));
    size_t width = text_width(head);
    if (width + 2 > HELP_INDENT)
        fprintf(out, "%s\n%*s", head, HELP_INDENT, "");
    else
        fprintf(out, "%s%*s", head, (int)(HELP_INDENT - width), "");
    str_add(&text, s->help);
    if (has_default(s))
        str_addf(&text, " Default: %s.", s->otherwise);
    text_wrap(str_text(&text), HELP_INDENT, HELP_INDENT, HELP_WIDTH, &wrapped);
    fprintf(out, "%s\n", str_text(&wrapped));
}

void conf_print_options(const struct conf_program *program, FILE *out)
{
    for (size_t i = 0; i < program->n_settings; i++)
        print_help_of(&program->settings[i], false, out);
}

void conf_print_help(const struct conf_program *program, FILE *out)
{
    fprintf(out, "Usage: %s %s\n%s\n\nOptions:\n", program->name,
            program->usage, program->summary);
    for_each(program, print_help_of, out);
    if (program->n_settings) {
        char name[CONF_NAME_MAX + 8];
        conf_env_name(&program->settings[0], name);
        fprintf(out,
                "\nAn option may also be set in the file given with --config, "
                "or in the\nenvironment: --%s as %s.\n",
                program->settings[0].name, name + 1);
    }
}

/* --- man ---------------------------------------------------------------- */

/* Text for roff: its escape character doubled, a hyphen that may be copied
 * from a command line kept a hyphen, and no line that reads as a request. */
static void print_roff(const char *text, FILE *out)
{
    bool start = true;
    for (const char *p = text; *p; p++) {
        if (start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        start = *p == '\n';
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else
            fputc(*p, out);
    }
}

static void print_roff_text(const char *text, FILE *out)
{
    cleanup_str struct str part = STR_INIT(65536);
    for (const char *p = text; *p;) {
        const char *stop = strstr(p, "\n\n");
        size_t n = stop ? (size_t)(stop - p) : strlen(p);
        bool literal = *p == ' ';
        str_reset(&part);
        str_add_n(&part, p, n);
        fputs(literal ? ".PP\n.nf\n" : ".PP\n", out);
        print_roff(str_text(&part), out);
        fputs(literal ? "\n.fi\n" : "\n", out);
        p += n + (stop ? 2 : 0);
    }
}

static void print_man_of(const struct conf_setting *s, bool own, FILE *out)
{
    char env[CONF_NAME_MAX + 8], allowed[CONF_ALLOWED_MAX];
    fputs(".TP\n", out);
    if (s->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", s->letter);
    fputs("\\fB\\-\\-", out);
    print_roff(s->name, out);
    fputs("\\fR", out);
    if (s->type != CONF_FLAG) {
        fputs(" \\fI", out);
        print_roff(metavar(s), out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    print_roff(s->help, out);
    fputc('\n', out);
    if (own)
        return;
    if (s->type == CONF_INT || s->type == CONF_DURATION) {
        conf_allowed(s, allowed);
        fputs("Allowed is ", out);
        print_roff(allowed, out);
        fputs(".\n", out);
    }
    if (s->otherwise && *s->otherwise) {
        fputs("The default is ", out);
        print_roff(s->otherwise, out);
        fputs(".\n", out);
    }
    conf_env_name(s, env);
    fprintf(out, "Environment: \\fB%s\\fR.\n", env + 1);
}

void conf_print_man(const struct conf_program *program, FILE *out)
{
    fputs(".TH \"", out);
    for (const char *p = program->name; *p; p++)
        fputc(toupper((unsigned char)*p), out);
    fprintf(out, "\" 1 \"\" \"Biga %s\" \"Biga\"\n.SH NAME\n", BIGA_VERSION);
    print_roff(program->name, out);
    fputs(" \\- ", out);
    print_roff(program->summary, out);
    fprintf(out, "\n.SH SYNOPSIS\n.B %s\n", program->name);
    print_roff(program->usage, out);
    fputs("\n.SH DESCRIPTION\n", out);
    print_roff_text(program->text, out);
    fputs(".SH OPTIONS\n", out);
    for_each(program, print_man_of, out);
    fputs(".SH FILES\nThe file given with \\fB\\-\\-config\\fR has lines "
          "\\(dqname = value\\(dq, where\na name is that of an option "
          "without its dashes, and lines that start with #.\nThe command "
          "line overrides the environment, which overrides the file.\n",
          out);
    for (const char *const *e = program->extra; e && e[0] && e[1]; e += 2) {
        fputs(".SH ", out);
        print_roff(e[0], out);
        fputc('\n', out);
        print_roff_text(e[1], out);
    }
}

/* --- markdown and completion -------------------------------------------- */

/* Text for a cell of a table. */
static void print_cell(const char *text, FILE *out)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|' || *p == '<' || *p == '*' || *p == '_')
            fputc('\\', out);
        fputc(*p, out);
    }
}

static void print_markdown_of(const struct conf_setting *s, bool own, FILE *out)
{
    char allowed[CONF_ALLOWED_MAX];
    if (own)
        return;
    fprintf(out, "| `--%s`", s->name);
    if (s->letter)
        fprintf(out, ", `-%c`", s->letter);
    fputs(" | ", out);
    if (s->otherwise && *s->otherwise)
        fprintf(out, "`%s`", s->otherwise);
    fputs(" | ", out);
    conf_allowed(s, allowed);
    print_cell(allowed, out);
    fputs(" | ", out);
    print_cell(s->help, out);
    fputs(" |\n", out);
}

void conf_print_markdown(const struct conf_program *program, FILE *out)
{
    fprintf(out,
            "## %s\n\n%s\n\n"
            "| setting | default | allowed | meaning |\n"
            "| --- | --- | --- | --- |\n",
            program->name, program->summary);
    for_each(program, print_markdown_of, out);
}

static void print_word(const struct conf_setting *s, bool own, FILE *out)
{
    (void)own;
    fprintf(out, " --%s", s->name);
}

void conf_print_completion(const struct conf_program *program, FILE *out)
{
    fprintf(out, "complete -o default -W '");
    for_each(program, print_word, out);
    fprintf(out, "' %s\n", program->name);
}
