#include "cli/base/names.h"

#include <string.h>

#include "cli/base/host_socket.h"
#include "cli/base/output.h"
#include "lib/base/mem.h"
#include "lib/base/nearest_word.h"
#include "lib/base/strmap.h"

/* A kind, where it is listed, and the member that is told with each. */
struct source {
    const char *kind, *path, *about;
    const char *only; /* the "kind" that is meant; NULL: all */
};

static const struct source of_server[] = {
    {"node", "/v1/nodes?limit=100000", "status", NULL},
    {"card", "/v1/cards?limit=100000", "model", NULL},
    {"place", "/v1/nodes?limit=100000", "status", NULL},
    {"place", "/v1/cards?limit=100000", "model", NULL},
    {"pod", "/v1/pods?limit=100000", "state", NULL},
    /* those that were not applied */
    {"pod", "/v1/allocations?limit=100000", "node", NULL},
    {"job", "/v1/jobs?limit=100000", "state", NULL},
    {"configmap", "/v1/configs?limit=100000", "kind", "ConfigMap"},
    {"secret", "/v1/configs?limit=100000", "kind", "Secret"},
};
static const struct source of_host[] = {
    {"host-card", "/v1/cards", "health", NULL},
    {"host-pod", "/v1/pods", "state", NULL},
};

/* --- each once -------------------------------------------------------------- */

struct once {
    struct strmap known;
    names_f *each;
    void *ctx;
    bool ended;
};

static void once_more(struct once *o, const char *name, const char *about)
{
    if (o->ended || strmap_get(&o->known, name))
        return;
    char *own = xstrdup(name);
    (void)strmap_put(&o->known, own, own);
    o->ended = !o->each(o->ctx, name, about);
}

static void once_fini(struct once *o)
{
    strmap_fini_with(&o->known, free);
}

static void tell(const struct source *s, const cJSON *json, struct once *o)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, json_list(json, "items"))
    {
        cleanup_str struct str name = STR_INIT(4096);
        if (s->only && strcmp(json_text(x, "kind"), s->only) != 0)
            continue;
        if (strcmp(s->kind, "host-card") == 0 && *json_text(x, "pci"))
            str_add(&name, json_text(x, "pci"));
        else if (!output_name(x, &name))
            continue;
        once_more(o, str_text(&name), json_text(x, s->about));
    }
}

/* --- namespaces ------------------------------------------------------------- */

static bool add_space(void *ctx, const char *name, const char *about)
{
    struct once *o = ctx;
    const char *slash = strchr(name, '/');
    (void)about;
    if (slash) {
        cleanup_free char *space = xstrndup(name, (size_t)(slash - name));
        once_more(o, space, "");
    }
    return !o->ended;
}

/* --- kinds ------------------------------------------------------------------ */

static const struct asked {
    int (*peek)(struct cli *c, const char *path, unsigned timeout_ms,
                cJSON **ret_json);
    const struct source *sources;
    size_t n;
} asked[] = {{cli_peek, of_server, ARRAY_LEN(of_server)},
             {host_socket_peek, of_host, ARRAY_LEN(of_host)}};

static void names_from(struct cli *c, const struct asked *a, const char *kind,
                       struct once *o)
{
    for (const struct source *s = a->sources; s < a->sources + a->n; s++) {
        cleanup_with(json) cJSON *json = NULL;
        if (!o->ended && strcmp(s->kind, kind) == 0 &&
            a->peek(c, s->path, NAMES_WAIT_MS, &json) == 0)
            tell(s, json, o);
    }
}

void names_of(struct cli *c, const char *kind, names_f *each, void *ctx)
{
    struct once o = {.each = each, .ctx = ctx};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        names_from(c, &asked[i], kind, &o);
    if (strcmp(kind, "namespace") == 0)
        names_of(c, "pod", add_space, &o);
    if (strcmp(kind, "namespace") == 0 && !o.ended)
        names_of(c, "job", add_space, &o);
    once_fini(&o);
}

/* --- guesses ---------------------------------------------------------------- */

enum { ELSEWHERE = 3 }; /* so far is the same name in any other namespace */

struct guess {
    const char *word;
    bool of_node; /* the same on any other node is not meant */
    size_t least;
    struct str *name;
};

/* The bytes of its namespace (or node) with the slash. */
static size_t space_of(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* How far two names are that are the same but for those. */
static size_t guess_space(const struct guess *g, size_t a, const char *name,
                          size_t b)
{
    cleanup_free char *meant = xstrndup(g->word, a ? a - 1 : 0);
    cleanup_free char *space = xstrndup(name, b ? b - 1 : 0);
    size_t far = nearest_word_guess(meant, space);
    return far == NEAREST_WORD_NOT && !g->of_node ? ELSEWHERE : far;
}

/* With a slip in the name, too. */
static size_t guess_elsewhere(const struct guess *g, size_t a, const char *name,
                              size_t b)
{
    size_t far = nearest_word_guess(g->word, name);
    if (far != NEAREST_WORD_NOT || g->of_node)
        return far;
    far = nearest_word_guess(g->word + a, name + b);
    return far == NEAREST_WORD_NOT ? far : far + ELSEWHERE;
}

static bool consider(void *ctx, const char *name, const char *about)
{
    struct guess *g = ctx;
    size_t a = space_of(g->word), b = space_of(name), far;
    bool same_space = a == b && strncmp(g->word, name, a) == 0;
    (void)about;
    if (strcmp(g->word + a, name + b) == 0)
        far = same_space ? 0 : guess_space(g, a, name, b);
    else
        far = same_space ? nearest_word_guess(g->word + a, name + b)
                         : guess_elsewhere(g, a, name, b);
    if (far >= g->least)
        return true;
    g->least = far;
    str_reset(g->name);
    str_add(g->name, name);
    return true;
}

bool names_guess(struct cli *c, const char *kind, const char *word,
                 struct str *ret_name)
{
    struct guess g = {.word = word,
                      .of_node = strcmp(kind, "card") == 0 ||
                                 strcmp(kind, "place") == 0,
                      .least = NEAREST_WORD_NOT,
                      .name = ret_name};
    names_of(c, kind, consider, &g);
    return g.least < NEAREST_WORD_NOT;
}

void names_hint(struct cli *c, const char *kind, const char *word)
{
    cleanup_str struct str name = STR_INIT(4096);
    const char *what = kind;
    if (!names_guess(c, kind, word, &name) ||
        strcmp(str_text(&name), word) == 0)
        return;
    if (strcmp(kind, "place") == 0)
        what = strchr(str_text(&name), '/') ? "card" : "node";
    fprintf(stderr, "Did you mean %s \"%s\"?\n", what, str_text(&name));
}
