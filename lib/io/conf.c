#include "lib/io/conf.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/utf8.h"
#include "lib/io/conf_private.h"

enum {
    FILE_SIZE_MAX = 65536,
    VALUE_SIZE_MAX = 4096,
    SOURCE_MAX = 300,
};

/* Where a value came from; a later one overrides an earlier one. */
enum layer { LAYER_DEFAULT, LAYER_FILE, LAYER_ENV, LAYER_ARGV, N_LAYERS };

const struct conf_setting conf_own[CONF_N_OWN] = {
    [CONF_OWN_CONFIG] = {.name = "config",
                         .metavar = "FILE",
                         .help = "Read settings from FILE: lines \"name = "
                                 "value\", and comments that start with #."},
    [CONF_OWN_HELP] = {.name = "help",
                       .letter = 'h',
                       .type = CONF_FLAG,
                       .help = "Print this help and exit."},
    [CONF_OWN_VERSION] = {.name = "version",
                          .letter = 'V',
                          .type = CONF_FLAG,
                          .help = "Print the version and exit."},
    [CONF_OWN_DOCS] = {.name = "print-docs",
                       .type = CONF_CHOICE,
                       .choices = "man|markdown|completion",
                       .metavar = "FORM",
                       .help = "Print the manual in this form and exit."},
};

/* --- one value ----------------------------------------------------------- */

union value {
    int64_t number;
    bool flag;
};

static bool parse_int(const char *text, int64_t *ret_value)
{
    char *end;
    const char *digits = text + (*text == '-');
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end)
        return false;
    *ret_value = value;
    return true;
}

static bool parse_duration(const char *text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char number[24];
    size_t n = strspn(text, "0123456789");
    int64_t value;
    if (n == 0 || n >= sizeof number)
        return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!parse_int(number, &value))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + n, units[i].name) == 0)
            return !__builtin_mul_overflow(value, units[i].ms, ret_ms);
    *ret_ms = 0;
    return text[n] == '\0' && value == 0; /* nothing needs no unit */
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (n == len && memcmp(p, text, n) == 0)
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

static bool is_clean(const char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t n = utf8_sequence(text + i, size - i);
        if (n == 0 || (unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
        i += n;
    }
    return true;
}

static bool is_number(const struct conf_setting *s)
{
    return s->type == CONF_INT || s->type == CONF_DURATION;
}

static bool parse_value(const struct conf_setting *s, const char *text,
                        union value *ret)
{
    switch (s->type) {
    case CONF_FLAG:
        ret->flag = strcmp(text, "true") == 0;
        return ret->flag || strcmp(text, "false") == 0;
    case CONF_INT:
    case CONF_DURATION:
        return (s->type == CONF_INT ? parse_int(text, &ret->number)
                                    : parse_duration(text, &ret->number)) &&
               ret->number >= s->min && ret->number <= s->max;
    case CONF_CHOICE:
        return is_choice(s->choices, text);
    case CONF_TEXT:
    case CONF_LIST:
        return true;
    }
    return false;
}

static int check_value(const struct conf_setting *s, const char *source,
                       const char *text, struct error *err)
{
    union value ignored;
    char allowed[CONF_ALLOWED_MAX];
    size_t size = strlen(text);
    if (size > VALUE_SIZE_MAX)
        return error_set(err, EINVAL, "%s: has %zu bytes, the limit is %d",
                         source, size, VALUE_SIZE_MAX);
    if (!is_clean(text, size))
        return error_set(err, EINVAL,
                         "%s: holds a control character or is not UTF-8",
                         source);
    if (parse_value(s, text, &ignored))
        return 0;
    conf_allowed(s, allowed);
    return error_set(err, EINVAL, "%s: \"%.80s\" is not allowed; must be %s",
                     source, text, allowed);
}

/* --- what was read so far ------------------------------------------------ */

struct cell {
    char *text;
    unsigned line; /* of the file, from 1 */
};

struct reading {
    const struct conf_program *program;
    struct cell *cells; /* [layer * n_settings + setting] */
};

static void reading_init(struct reading *r, const struct conf_program *p)
{
    r->program = p;
    r->cells = xcalloc(N_LAYERS * p->n_settings, sizeof *r->cells);
}

static void reading_fini(struct reading *r)
{
    for (size_t i = 0; r->cells && i < N_LAYERS * r->program->n_settings; i++)
        free(r->cells[i].text);
    free(r->cells);
}
#define cleanup_reading __attribute__((__cleanup__(reading_fini)))

static struct cell *cell_at(struct reading *r, enum layer layer,
                            const struct conf_setting *s)
{
    size_t index = (size_t)(s - r->program->settings);
    return &r->cells[(size_t)layer * r->program->n_settings + index];
}

/* A list grows with every mention, anything else is replaced. */
static int put(struct reading *r, enum layer layer,
               const struct conf_setting *s, const char *source,
               const char *text, struct error *err)
{
    struct cell *c = cell_at(r, layer, s);
    cleanup_free char *joined = NULL;
    if (s->type == CONF_LIST && c->text && *c->text)
        joined = xasprintf("%s,%s", c->text, text);
    else
        joined = xstrdup(text);
    int rc = check_value(s, source, joined, err);
    if (rc < 0)
        return rc;
    free(c->text);
    c->text = steal(&joined);
    return 0;
}

static const struct conf_setting *find(const struct conf_program *p,
                                       const char *name, size_t len)
{
    for (size_t i = 0; i < p->n_settings; i++)
        if (strlen(p->settings[i].name) == len &&
            memcmp(p->settings[i].name, name, len) == 0)
            return &p->settings[i];
    return NULL;
}

/* --- the command line ----------------------------------------------------- */

struct argv_walk {
    char **argv;
    int argc, at;
    const char *letters; /* of "-itn…" at `at` that are still to be read, or
                          * NULL */
    const char *own[CONF_N_OWN]; /* values of our own options */
};

static const struct conf_setting *find_option(const struct conf_program *p,
                                              const char *name, size_t len)
{
    const struct conf_setting *s = find(p, name, len);
    for (size_t i = 0; !s && i < CONF_N_OWN; i++)
        if (strlen(conf_own[i].name) == len &&
            memcmp(conf_own[i].name, name, len) == 0)
            s = &conf_own[i];
    return s;
}

static const struct conf_setting *find_letter(const struct conf_program *p,
                                              char letter)
{
    for (size_t i = 0; i < p->n_settings; i++)
        if (p->settings[i].letter == letter)
            return &p->settings[i];
    for (size_t i = 0; i < CONF_N_OWN; i++)
        if (conf_own[i].letter == letter)
            return &conf_own[i];
    return NULL;
}

/* "-n", "-nvalue", and flags in one word, "-it". */
static int split_letters(const struct conf_program *p, struct argv_walk *w,
                         const struct conf_setting **ret_s,
                         const char **ret_value, struct error *err)
{
    const char *at = w->letters ? w->letters : w->argv[w->at] + 1;
    const char *rest = at[1] ? at + 1 : NULL;
    const struct conf_setting *s = find_letter(p, *at);
    if (!s)
        return error_set(err, EINVAL, "-%c: no such option; see %s --help", *at,
                         p->name);
    w->letters = s->type == CONF_FLAG ? rest : NULL;
    *ret_value = s->type == CONF_FLAG ? NULL : rest;
    *ret_s = s;
    return 0;
}

static int complain_option(const struct conf_program *p, const char *arg,
                           int len, struct error *err)
{
    const char *meant = conf_meant(p, arg + 2, (size_t)len - 2);
    return meant ? error_set(err, EINVAL,
                             "%.*s: no such option; did you mean --%s?", len,
                             arg, meant)
                 : error_set(err, EINVAL, "%.*s: no such option; see %s --help",
                             len, arg, p->name);
}

/* The option at the cursor; also "--name", "--name=value". */
static int split_option(const struct conf_program *p, struct argv_walk *w,
                        const struct conf_setting **ret_s,
                        const char **ret_value, struct error *err)
{
    const char *arg = w->argv[w->at];
    int len = (int)strcspn(arg, "=");
    if (arg[1] != '-')
        return split_letters(p, w, ret_s, ret_value, err);
    const struct conf_setting *s = find_option(p, arg + 2, (size_t)len - 2);
    if (!s)
        return complain_option(p, arg, len, err);
    *ret_s = s;
    *ret_value = arg[len] == '=' ? arg + len + 1 : NULL;
    return 0;
}

static int read_option(struct reading *r, struct argv_walk *w,
                       struct error *err)
{
    const struct conf_setting *s = NULL;
    const char *value = NULL;
    char source[SOURCE_MAX], allowed[CONF_ALLOWED_MAX];
    int rc = split_option(r->program, w, &s, &value, err);
    if (rc < 0)
        return rc;
    (void)snprintf(source, sizeof source, "--%s", s->name);
    if (!value && s->type == CONF_FLAG) {
        value = "true";
    } else if (!value) {
        if (w->at + 1 == w->argc) {
            conf_allowed(s, allowed);
            return error_set(err, EINVAL, "%s: needs a value: %s", source,
                             allowed);
        }
        value = w->argv[++w->at];
    }
    if (!w->letters)
        w->at++;
    if (s < conf_own || s >= conf_own + CONF_N_OWN)
        return put(r, LAYER_ARGV, s, source, value, err);
    w->own[s - conf_own] = value;
    return check_value(s, source, value, err);
}

static bool is_passed_on(const struct conf_program *p, char *const *rest,
                         size_t n_rest)
{
    return p->passes_on && n_rest == 2 && strcmp(rest[0], p->passes_on) == 0;
}

/* Reads options up to "--", or to what is passed on, and moves what is none
 * behind them. */
static int read_argv(struct reading *r, struct argv_walk *w, int *ret_rest,
                     struct error *err)
{
    size_t n_rest = 0, n_argv = (size_t)w->argc;
    cleanup_free char **rest = xcalloc(n_argv, sizeof *rest);
    cleanup_free char **options = xcalloc(n_argv, sizeof *options);
    size_t n_options = 0;

    w->at = 1;
    while (w->at < w->argc) {
        char *arg = w->argv[w->at];
        int from = w->at;
        if (arg[0] != '-' || !arg[1]) {
            rest[n_rest++] = arg;
            w->at++;
            if (is_passed_on(r->program, rest, n_rest))
                while (w->at < w->argc)
                    rest[n_rest++] = w->argv[w->at++];
            continue;
        }
        bool end = strcmp(arg, "--") == 0;
        int rc = 0;
        do
            rc = end ? 0 : read_option(r, w, err);
        while (rc == 0 && w->letters);
        if (rc < 0)
            return rc;
        if (end)
            w->at++;
        for (int i = from; i < w->at; i++)
            options[n_options++] = w->argv[i];
        while (end && w->at < w->argc)
            rest[n_rest++] = w->argv[w->at++];
    }
    for (size_t i = 1; i < n_argv; i++)
        w->argv[i] = i <= n_options ? options[i - 1] : rest[i - 1 - n_options];
    *ret_rest = (int)n_options + 1;
    return 0;
}

/* --- environment, file, defaults ------------------------------------------ */

static int read_env(struct reading *r, struct error *err)
{
    char name[CONF_NAME_MAX + 8];
    for (size_t i = 0; i < r->program->n_settings; i++) {
        const struct conf_setting *s = &r->program->settings[i];
        conf_env_name(s, name);
        const char *value = getenv(name + 1);
        int rc = value && *value ? put(r, LAYER_ENV, s, name, value, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **p, const char **end)
{
    while (*p < *end && is_space(**p))
        (*p)++;
    while (*p < *end && is_space((*end)[-1]))
        (*end)--;
}

/* One line of a file, without its line break. */
static int read_line(struct reading *r, const char *origin, unsigned line,
                     const char *p, const char *end, struct error *err)
{
    char source[SOURCE_MAX];
    trim(&p, &end);
    if (p == end || *p == '#')
        return 0;
    const char *equal = memchr(p, '=', (size_t)(end - p));
    if (!equal)
        return error_set(err, EINVAL, "%.200s:%u: is not \"name = value\"",
                         origin, line);
    const char *name_end = equal, *value = equal + 1;
    trim(&p, &name_end);
    trim(&value, &end);
    const struct conf_setting *s = find(r->program, p, (size_t)(name_end - p));
    if (!s)
        return error_set(err, EINVAL, "%.200s:%u: \"%.*s\" is no setting of %s",
                         origin, line,
                         (int)(name_end - p > 64 ? 64 : name_end - p), p,
                         r->program->name);
    (void)snprintf(source, sizeof source, "%.200s:%u: %.64s", origin, line,
                   s->name);
    if (memchr(value, '\0', (size_t)(end - value)))
        return error_set(err, EINVAL, "%s: holds a NUL byte", source);
    struct cell *c = cell_at(r, LAYER_FILE, s);
    if (c->text && s->type != CONF_LIST)
        return error_set(err, EINVAL, "%s: already set in line %u", source,
                         c->line);
    c->line = line;
    cleanup_free char *text = xstrndup(value, (size_t)(end - value));
    return put(r, LAYER_FILE, s, source, text, err);
}

static int read_text(struct reading *r, const char *origin, const char *data,
                     size_t size, struct error *err)
{
    const char *p = data, *end = data + size;
    if (size > FILE_SIZE_MAX)
        return error_set(err, EINVAL, "%.200s: is larger than %d bytes", origin,
                         FILE_SIZE_MAX);
    for (unsigned line = 1; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        int rc = read_line(r, origin, line, p, stop, err);
        if (rc < 0)
            return rc;
        p = stop < end ? stop + 1 : end;
    }
    return 0;
}

static int read_file(struct reading *r, const char *path, struct error *err)
{
    cleanup_file FILE *f = fopen(path, "re");
    cleanup_free char *data = xmalloc(FILE_SIZE_MAX + 1);
    if (!f)
        return error_errno(err, errno, "--config: %.200s", path);
    size_t size = fread(data, 1, FILE_SIZE_MAX + 1, f);
    if (ferror(f))
        return error_errno(err, errno ? errno : EIO, "--config: %.200s", path);
    return read_text(r, path, data, size, err);
}

static int read_defaults(struct reading *r, struct error *err)
{
    char source[SOURCE_MAX];
    for (size_t i = 0; i < r->program->n_settings; i++) {
        const struct conf_setting *s = &r->program->settings[i];
        (void)snprintf(source, sizeof source, "default of --%s", s->name);
        int rc = s->otherwise
                     ? put(r, LAYER_DEFAULT, s, source, s->otherwise, err)
                     : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void assign(struct reading *r, const struct conf_setting *s,
                   void *target)
{
    void *member = (char *)target + s->offset;
    cleanup_free char *text = NULL;
    for (int layer = N_LAYERS; !text && layer-- > 0;)
        text = steal(&cell_at(r, (enum layer)layer, s)->text);

    union value value = {0};
    bool valid = !text || parse_value(s, text, &value);
    assert(valid); /* checked when it was put */
    (void)valid;
    if (s->type == CONF_FLAG)
        *(bool *)member = value.flag;
    else if (is_number(s))
        *(int64_t *)member = value.number;
    else
        *(char **)member = steal(&text);
}

static void assign_all(struct reading *r, void *target)
{
    for (size_t i = 0; i < r->program->n_settings; i++)
        assign(r, &r->program->settings[i], target);
}

/* --- the whole ---------------------------------------------------------- */

static void print_docs(const struct conf_program *program, const char *form)
{
    if (strcmp(form, "man") == 0)
        conf_print_man(program, stdout);
    else if (strcmp(form, "markdown") == 0)
        conf_print_markdown(program, stdout);
    else
        conf_print_completion(program, stdout);
}

static bool is_set(const char *flag)
{
    return flag && strcmp(flag, "true") == 0;
}

/* 1 when what was asked for was printed, all of it; 0 when that was nothing. */
static int print_own(const struct conf_program *program,
                     const char *const own[CONF_N_OWN], struct error *err)
{
    if (is_set(own[CONF_OWN_HELP]))
        conf_print_help(program, stdout);
    else if (is_set(own[CONF_OWN_VERSION]))
        printf("%s %s\n", program->name, BIGA_VERSION);
    else if (own[CONF_OWN_DOCS])
        print_docs(program, own[CONF_OWN_DOCS]);
    else
        return 0;
    return fflush(stdout) == 0 && !ferror(stdout)
               ? 1
               : error_errno(err, errno ? errno : EIO, "standard output");
}

int conf_read(const struct conf_program *program, int argc, char **argv,
              void *target, int *ret_rest, struct error *err)
{
    cleanup_reading struct reading r = {0};
    struct argv_walk w = {.argv = argv, .argc = argc};
    int rest, rc;

    reading_init(&r, program);
    rc = read_argv(&r, &w, &rest, err);
    if (rc == 0)
        rc = print_own(program, w.own, err);
    if (rc != 0)
        return rc;
    if ((rc = read_defaults(&r, err)) < 0 ||
        (w.own[CONF_OWN_CONFIG] &&
         (rc = read_file(&r, w.own[CONF_OWN_CONFIG], err)) < 0) ||
        (rc = read_env(&r, err)) < 0)
        return rc;
    for (size_t i = 0; program->given && i < program->n_settings; i++)
        program->given[i] =
            cell_at(&r, LAYER_ARGV, &program->settings[i])->text != NULL;
    assign_all(&r, target);
    *ret_rest = rest;
    return 0;
}

/* Whether the setting has the value of this (valid) text. */
static bool is_value(const struct conf_setting *s, const void *target,
                     const char *wanted)
{
    const void *member = (const char *)target + s->offset;
    const char *text;
    union value value = {0};
    bool valid = !*wanted || parse_value(s, wanted, &value);
    assert(valid);
    (void)valid;
    if (s->type == CONF_FLAG)
        return *(const bool *)member == value.flag;
    if (is_number(s))
        return *(const int64_t *)member == value.number;
    memcpy(&text, member, sizeof text);
    return strcmp(text ? text : "", wanted) == 0;
}

/* A variable may be meant for another program of Biga's. */
static bool is_by_environment(const struct conf_setting *s, const void *target)
{
    char name[CONF_NAME_MAX + 8];
    conf_env_name(s, name);
    const char *text = getenv(name + 1);
    return text && *text && is_value(s, target, text);
}

int conf_check_needs(const struct conf_program *program, const void *target,
                     const struct conf_need *needs, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < program->n_settings; k++) {
            const struct conf_setting *s = &program->settings[k];
            if (needs[i].met || strcmp(s->name, needs[i].setting) != 0 ||
                is_value(s, target, s->otherwise ? s->otherwise : "") ||
                is_by_environment(s, target))
                continue;
            return error_set(err, EINVAL, "--%s: %s", s->name, needs[i].text);
        }
    return 0;
}

int conf_read_text(const struct conf_program *program, const char *origin,
                   const char *data, size_t size, void *target,
                   struct error *err)
{
    cleanup_reading struct reading r = {0};
    int rc;
    reading_init(&r, program);
    if ((rc = read_defaults(&r, err)) < 0 ||
        (rc = read_text(&r, origin, data, size, err)) < 0)
        return rc;
    assign_all(&r, target);
    return 0;
}

void conf_fini(const struct conf_program *program, void *target)
{
    for (size_t i = 0; i < program->n_settings; i++) {
        const struct conf_setting *s = &program->settings[i];
        char **text = (char **)(void *)((char *)target + s->offset);
        if (s->type == CONF_TEXT || s->type == CONF_CHOICE ||
            s->type == CONF_LIST)
            free(steal(text));
    }
}
