#include "model/claim/claim_cel.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_cel_private.h"

/* The grammar is that of github.com/google/cel-spec (doc/langdef.md), of which
 * it has the part that the header names. */

/* --- what stands alone --------------------------------------------------- */

static int parse_word(struct parser *p, int32_t *ret)
{
    struct token word = p->lexer.token;
    bool truth = cel_word_is(&word, "true");
    int rc;
    if (truth || cel_word_is(&word, "false")) {
        rc = cel_new_node(p, NODE_BOOL, &word, ret);
        if (rc == 0)
            cel_node_at(p, *ret)->number = truth;
        return rc < 0 ? rc : cel_lex(&p->lexer);
    }
    for (size_t i = p->n_variables; i-- > 0;)
        if (p->variables[i].size == word.size &&
            memcmp(p->variables[i].data, word.data, word.size) == 0) {
            rc = cel_new_node(p, NODE_VARIABLE, &word, ret);
            if (rc == 0)
                cel_node_at(p, *ret)->number = (int64_t)i;
            return rc < 0 ? rc : cel_lex(&p->lexer);
        }
    if (cel_word_is(&word, "device")) {
        rc = cel_new_node(p, NODE_DEVICE, &word, ret);
        return rc < 0 ? rc : cel_lex(&p->lexer);
    }
    struct lexer before = p->lexer;
    rc = cel_lex(&p->lexer);
    if (rc < 0)
        return rc;
    bool in_cel = cel_word_is(&word, "cel") && cel_token_is(&p->lexer, ".");
    if (!in_cel && !cel_token_is(&p->lexer, "(")) {
        p->lexer = before;
        return cel_refuse(&p->lexer, ENOTSUP, CEL_NOT_READ);
    }
    rc = cel_lex(&p->lexer);
    if (rc < 0)
        return rc;
    if (in_cel) {
        if (!cel_token_is(&p->lexer, "bind"))
            return cel_refuse(&p->lexer, ENOTSUP, CEL_NOT_READ);
        rc = cel_lex(&p->lexer);
        if (rc == 0)
            rc = cel_expect(p, "(");
        return rc < 0 ? rc : cel_parse_bind(p, &word, ret);
    }
    return cel_word_is(&word, "has") ? cel_parse_has(p, ret)
                                     : cel_parse_call(p, &word, CEL_NONE, ret);
}

static int parse_literal(struct parser *p, int32_t *ret)
{
    struct token t = p->lexer.token;
    bool text = t.kind == TOKEN_TEXT;
    if (!text && t.number > INT64_MAX)
        return cel_refuse(&p->lexer, EINVAL, "does not fit 64 bits");
    int rc = cel_new_node(p, text ? NODE_TEXT : NODE_INT, &t, ret);
    if (rc < 0)
        return rc;
    cel_node_at(p, *ret)->text = text ? t.data : "";
    cel_node_at(p, *ret)->size = t.size;
    cel_node_at(p, *ret)->number = text ? 0 : (int64_t)t.number;
    return cel_lex(&p->lexer);
}

static int parse_primary(struct parser *p, int32_t *ret)
{
    struct lexer *l = &p->lexer;
    int rc;
    if (l->token.kind == TOKEN_TEXT || l->token.kind == TOKEN_INT)
        return parse_literal(p, ret);
    if (cel_token_is(l, "(")) {
        rc = cel_lex(l);
        if (rc == 0)
            rc = cel_parse_expression(p, ret);
        return rc < 0 ? rc : cel_expect(p, ")");
    }
    if (cel_token_is(l, "in"))
        return cel_refuse(l, EINVAL, "must have something before it");
    if (l->token.kind == TOKEN_WORD)
        return parse_word(p, ret);
    if (cel_token_is(l, "[") || cel_token_is(l, "{") || cel_token_is(l, "."))
        return cel_refuse(l, ENOTSUP, CEL_NOT_READ);
    return cel_refuse(l, EINVAL, "must be a value");
}

int cel_parse_expression(struct parser *p, int32_t *ret)
{
    if (p->depth == CLAIM_CEL_DEPTH_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is nested too deep");
    p->depth++;
    int rc = parse_primary(p, ret);
    p->depth--;
    return rc;
}

/* --- the whole ----------------------------------------------------------- */

int claim_cel_compile(const char *text, size_t size, struct claim_cel **ret_cel,
                      struct error *err)
{
    if (size > CLAIM_CEL_MAX)
        return error_set(err, EINVAL, "has %zu bytes, allowed are %d", size,
                         CLAIM_CEL_MAX);
    if (memchr(text, '\0', size))
        return error_set(err, EINVAL, "has a NUL");
    cleanup_with(claim_cel) struct claim_cel *cel = xcalloc(1, sizeof *cel);
    cel->source = xstrndup(text, size);
    struct parser p = {
        .lexer = {.begin = cel->source,
                  .p = cel->source,
                  .end = cel->source + size,
                  .store = arena_alloc(&cel->arena, size + 1),
                  .err = err},
        .cel = cel,
    };
    int rc = cel_lex(&p.lexer);
    if (rc == 0)
        rc = cel_parse_expression(&p, &cel->root);
    if (rc == 0 && p.lexer.token.kind != TOKEN_END)
        rc = cel_refuse(&p.lexer, EINVAL, "must be an operator or the end");
    if (rc < 0)
        return rc;
    *ret_cel = steal(&cel);
    return 0;
}

void claim_cel_destroy(struct claim_cel *cel)
{
    if (!cel)
        return;
    for (size_t i = 0; i < cel->n_regexes; i++)
        claim_regex_destroy(cel->regexes[i]);
    free(cel->regexes);
    free(cel->nodes);
    free(cel->source);
    arena_fini(&cel->arena);
    free(cel);
}

const char *claim_cel_text(const struct claim_cel *cel)
{
    return cel->source;
}
