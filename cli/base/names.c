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
    {"pod", "/v1/pods?limit=100000", "state", NULL},
    {"job", "/v1/jobs?limit=100000", "state", NULL},
    {"configmap", "/v1/configs?limit=100000", "kind", "ConfigMap"},
    {"secret", "/v1/configs?limit=100000", "kind", "Secret"},
};
static const struct source of_host[] = {
    {"host-card", "/v1/cards", "health", NULL},
    {"host-pod", "/v1/pods", "state", NULL},
};

static const struct source *find(const struct source *all, size_t n,
                                 const char *kind)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].kind, kind) == 0)
            return &all[i];
    return NULL;
}

static void tell(const struct source *s, const cJSON *json, names_f *each,
                 void *ctx)
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
        if (!each(ctx, str_text(&name), json_text(x, s->about)))
            return;
    }
}

/* --- namespaces ------------------------------------------------------------- */

struct spaces {
    struct strmap known;
    names_f *each;
    void *ctx;
    bool ended;
};

static bool add_space(void *ctx, const char *name, const char *about)
{
    struct spaces *s = ctx;
    const char *slash = strchr(name, '/');
    (void)about;
    if (!slash)
        return true;
    char *space = xstrndup(name, (size_t)(slash - name));
    if (strmap_get(&s->known, space)) {
        free(space);
        return true;
    }
    (void)strmap_put(&s->known, space, space);
    s->ended = !s->each(s->ctx, space, "");
    return !s->ended;
}

static void namespaces(struct cli *c, names_f *each, void *ctx)
{
    struct spaces s = {.each = each, .ctx = ctx};
    names_of(c, "pod", add_space, &s);
    if (!s.ended)
        names_of(c, "job", add_space, &s);
    strmap_fini_with(&s.known, free);
}

/* --- kinds ------------------------------------------------------------------ */

void names_of(struct cli *c, const char *kind, names_f *each, void *ctx)
{
    const struct source *s = find(of_server, ARRAY_LEN(of_server), kind);
    cleanup_with(json) cJSON *json = NULL;
    if (s) {
        if (cli_peek(c, s->path, NAMES_WAIT_MS, &json) == 0)
            tell(s, json, each, ctx);
    } else if ((s = find(of_host, ARRAY_LEN(of_host), kind))) {
        if (host_socket_peek(c, s->path, NAMES_WAIT_MS, &json) == 0)
            tell(s, json, each, ctx);
    } else if (strcmp(kind, "namespace") == 0) {
        namespaces(c, each, ctx);
    }
}

/* --- guesses ---------------------------------------------------------------- */

struct guess {
    const char *word;
    size_t least;
    struct str *name;
};

/* The bytes of its namespace (or node) with the slash. */
static size_t space_of(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

static bool consider(void *ctx, const char *name, const char *about)
{
    struct guess *g = ctx;
    size_t a = space_of(g->word), b = space_of(name), far;
    bool same_space = a == b && strncmp(g->word, name, a) == 0;
    (void)about;
    if (strcmp(g->word + a, name + b) == 0)
        far = 0;
    else
        far = same_space ? nearest_word_guess(g->word + a, name + b)
                         : nearest_word_guess(g->word, name);
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
    struct guess g = {
        .word = word, .least = NEAREST_WORD_NOT, .name = ret_name};
    names_of(c, kind, consider, &g);
    return g.least < NEAREST_WORD_NOT;
}
