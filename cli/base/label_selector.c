#include "cli/base/label_selector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum operator{ OP_EXISTS, OP_NOT_EXISTS, OP_IN, OP_NOT_IN, OP_MORE, OP_LESS };

struct require {
    enum operator op;
    char *key;
    char **values;
    size_t n_values, cap;
    double number; /* of OP_MORE and OP_LESS */
};

struct label_selector {
    struct require *requires;
    size_t n, cap;
};

void label_selector_destroy(struct label_selector *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        for (size_t k = 0; k < s->requires[i].n_values; k++)
            free(s->requires[i].values[k]);
        free(s->requires[i].values);
        free(s->requires[i].key);
    }
    if (s)
        free(s->requires);
    free(s);
}

/* --- reading ---------------------------------------------------------------- */

struct cursor {
    const char *text, *p;
    struct error *err;
};

static int fail(const struct cursor *c, const char *what)
{
    return error_set(c->err, EINVAL,
                     "\"%.80s\": byte %zu: %s; must be as \"a=b,c!=d,e in "
                     "(f,g),!h\"",
                     c->text, (size_t)(c->p - c->text) + 1, what);
}

static void skip_space(struct cursor *c)
{
    c->p += strspn(c->p, " \t");
}

/* Consumes `word`, behind spaces. */
static bool take(struct cursor *c, const char *word)
{
    skip_space(c);
    size_t n = strlen(word);
    if (strncmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A word of letters that ends there: "in" of "in (a)", not of "inner". */
static bool take_word(struct cursor *c, const char *word)
{
    const char *before = c->p;
    if (take(c, word) && (*c->p == '(' || *c->p == ' ' || *c->p == '\t'))
        return true;
    c->p = before;
    return false;
}

/* What stands there up to one of `stops`, without spaces around. */
static char *take_until(struct cursor *c, const char *stops)
{
    skip_space(c);
    size_t n = strcspn(c->p, stops), size = n;
    while (size > 0 && (c->p[size - 1] == ' ' || c->p[size - 1] == '\t'))
        size--;
    char *text = xstrndup(c->p, size);
    c->p += n;
    return text;
}

static int read_key(struct cursor *c, struct require *r)
{
    r->key = take_until(c, " \t!=<>(),");
    return *r->key ? 0 : fail(c, "a key is missing");
}

static void add_value(struct require *r, char *value)
{
    r->values = xgrow(r->values, r->n_values, &r->cap, sizeof *r->values);
    r->values[r->n_values++] = value;
}

static int read_set(struct cursor *c, struct require *r)
{
    if (!take(c, "("))
        return fail(c, "\"(\" is missing");
    do {
        if (r->n_values == LABEL_SELECTOR_VALUES_MAX)
            return fail(c, "over 256 values");
        add_value(r, take_until(c, ",()=!<>"));
    } while (take(c, ","));
    return take(c, ")") ? 0 : fail(c, "\")\" is missing");
}

static int read_number(struct cursor *c, struct require *r)
{
    char *end = NULL;
    cleanup_free char *text = take_until(c, ",()=!<>");
    r->number = strtod(text, &end);
    return *text && !*end && isfinite(r->number) ? 0 : fail(c, "is no number");
}

static int read_rest(struct cursor *c, struct require *r)
{
    bool differs = take(c, "!=");
    if (differs || take(c, "==") || take(c, "=")) {
        r->op = differs ? OP_NOT_IN : OP_IN;
        add_value(r, take_until(c, ",()=!<>"));
        return 0;
    }
    if (take(c, ">") || take(c, "<")) {
        r->op = c->p[-1] == '>' ? OP_MORE : OP_LESS;
        return read_number(c, r);
    }
    bool none = take_word(c, "notin");
    if (none || take_word(c, "in")) {
        r->op = none ? OP_NOT_IN : OP_IN;
        return read_set(c, r);
    }
    r->op = OP_EXISTS;
    return 0;
}

static int read_all(struct cursor *c, struct label_selector *s)
{
    skip_space(c);
    if (!*c->p)
        return 0;
    do {
        if (s->n == LABEL_SELECTOR_REQUIRES_MAX)
            return fail(c, "over 64 requirements");
        s->requires = xgrow(s->requires, s->n, &s->cap, sizeof *s->requires);
        struct require *r = &s->requires[s->n++];
        *r = (struct require){.op = OP_NOT_EXISTS};
        bool none = take(c, "!");
        int rc = read_key(c, r);
        if (rc == 0 && !none)
            rc = read_rest(c, r);
        if (rc < 0)
            return rc;
    } while (take(c, ","));
    return *c->p ? fail(c, "\",\" is missing") : 0;
}

int label_selector_parse(const char *text, struct label_selector **ret_selector,
                         struct error *err)
{
    cleanup_with(label_selector) struct label_selector *s = xcalloc(1,
                                                                    sizeof *s);
    struct cursor c = {.text = text, .p = text, .err = err};
    if (strlen(text) > LABEL_SELECTOR_SIZE_MAX)
        return error_set(err, EINVAL, "has over %d bytes",
                         LABEL_SELECTOR_SIZE_MAX);
    int rc = read_all(&c, s);
    if (rc == 0)
        *ret_selector = steal(&s);
    return rc;
}

/* --- matching --------------------------------------------------------------- */

static bool has_value(const struct require *r, const char *value)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (strcmp(r->values[i], value) == 0)
            return true;
    return false;
}

static bool holds(const struct require *r, const char *value)
{
    char *end = NULL;
    double number;
    switch (r->op) {
    case OP_EXISTS:
        return value;
    case OP_NOT_EXISTS:
        return !value;
    case OP_IN:
        return value && has_value(r, value);
    case OP_NOT_IN:
        return !value || !has_value(r, value);
    case OP_MORE:
    case OP_LESS:
        break;
    }
    if (!value || !*value)
        return false;
    number = strtod(value, &end);
    return !*end &&
           (r->op == OP_MORE ? number > r->number : number < r->number);
}

bool label_selector_matches(const struct label_selector *s,
                            label_value_f *value, void *ctx)
{
    for (size_t i = 0; i < s->n; i++)
        if (!holds(&s->requires[i], value(ctx, s->requires[i].key)))
            return false;
    return true;
}
