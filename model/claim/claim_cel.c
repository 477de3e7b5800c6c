#include "model/claim/claim_cel.h"

#include <stdlib.h>
#include <string.h>

#include "model/claim/claim_cel_private.h"

/* The grammar is that of github.com/google/cel-spec (doc/langdef.md), of which
 * it has the part that the header names. */

static int parse_unary(struct parser *p, int32_t *ret);

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

/* The list on the right of `in`. */
static int parse_list(struct parser *p, int32_t *ret)
{
    int32_t list, element;
    int rc = cel_new_node(p, NODE_LIST, &p->lexer.token, &list);
    if (rc == 0)
        rc = cel_lex(&p->lexer);
    while (rc == 0 && !cel_token_is(&p->lexer, "]")) {
        rc = cel_parse_expression(p, &element);
        if (rc == 0)
            rc = cel_add_child(p, list, element);
        if (rc == 0 && !cel_token_is(&p->lexer, "]"))
            rc = cel_expect(p, ","); /* one may stand at the end */
    }
    *ret = list;
    return rc < 0 ? rc : cel_lex(&p->lexer);
}

/* --- what binds tightest first ------------------------------------------- */

/* .name .?name .name(…), the cursor behind the dot */
static int parse_dot(struct parser *p, int32_t of, int32_t *ret)
{
    struct lexer *l = &p->lexer;
    bool optional = cel_token_is(l, "?");
    int rc = optional ? cel_lex(l) : 0;
    if (rc < 0)
        return rc;
    struct token name = l->token;
    if (name.kind != TOKEN_WORD)
        return cel_refuse(l, EINVAL, "must be a name");
    rc = cel_lex(l);
    if (rc < 0)
        return rc;
    if (cel_token_is(l, "(")) {
        rc = cel_lex(l);
        return rc < 0 ? rc : cel_parse_call(p, &name, of, ret);
    }
    if (cel_node_at(p, of)->kind == NODE_DEVICE &&
        !cel_word_is(&name, "driver") && !cel_word_is(&name, "attributes") &&
        !cel_word_is(&name, "capacity") &&
        !cel_word_is(&name, "allowMultipleAllocations"))
        return error_set(
            l->err, ENOTSUP,
            "at %zu: \"%.*s\": Biga knows no such member of device",
            name.at + 1, (int)(name.size < 40 ? name.size : 40), name.data);
    rc = cel_new_node(p, NODE_SELECT, &name, ret);
    if (rc < 0)
        return rc;
    cel_node_at(p, *ret)->text = arena_strndup(&p->cel->arena, name.data,
                                               name.size);
    cel_node_at(p, *ret)->size = name.size;
    cel_node_at(p, *ret)->optional = optional;
    return cel_add_child(p, *ret, of);
}

/* [key] [?key], the cursor on the bracket */
static int parse_index(struct parser *p, int32_t of, int32_t *ret)
{
    int32_t key;
    int rc = cel_new_node(p, NODE_INDEX, &p->lexer.token, ret);
    if (rc == 0)
        rc = cel_lex(&p->lexer);
    if (rc == 0 && cel_token_is(&p->lexer, "?")) {
        cel_node_at(p, *ret)->optional = true;
        rc = cel_lex(&p->lexer);
    }
    if (rc == 0)
        rc = cel_parse_expression(p, &key);
    if (rc == 0)
        rc = cel_add_child(p, *ret, of);
    if (rc == 0)
        rc = cel_add_child(p, *ret, key);
    return rc < 0 ? rc : cel_expect(p, "]");
}

static int parse_member(struct parser *p, int32_t *ret)
{
    int rc = parse_primary(p, ret);
    while (rc == 0) {
        int32_t of = *ret;
        if (cel_token_is(&p->lexer, ".")) {
            rc = cel_lex(&p->lexer);
            if (rc == 0)
                rc = parse_dot(p, of, ret);
        } else if (cel_token_is(&p->lexer, "[")) {
            rc = parse_index(p, of, ret);
        } else {
            break;
        }
    }
    return rc;
}

/* -9223372036854775808 is a number of its own. */
static int parse_minus(struct parser *p, int32_t *ret)
{
    struct token minus = p->lexer.token;
    int32_t of;
    int rc = cel_lex(&p->lexer);
    if (rc < 0)
        return rc;
    struct token t = p->lexer.token;
    if (t.kind == TOKEN_INT && t.number <= (uint64_t)INT64_MAX + 1) {
        rc = cel_new_node(p, NODE_INT, &minus, ret);
        if (rc < 0)
            return rc;
        cel_node_at(p, *ret)->number = (int64_t)(0 - t.number);
        return cel_lex(&p->lexer);
    }
    rc = parse_unary(p, &of);
    if (rc == 0)
        rc = cel_new_node(p, NODE_NEGATE, &minus, ret);
    return rc < 0 ? rc : cel_add_child(p, *ret, of);
}

static int parse_unary(struct parser *p, int32_t *ret)
{
    struct token t = p->lexer.token;
    int32_t of;
    int rc;
    if (!cel_token_is(&p->lexer, "!") && !cel_token_is(&p->lexer, "-"))
        return parse_member(p, ret);
    if (p->depth == CLAIM_CEL_DEPTH_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is nested too deep");
    p->depth++;
    if (cel_token_is(&p->lexer, "-")) {
        rc = parse_minus(p, ret);
    } else {
        rc = cel_lex(&p->lexer);
        if (rc == 0)
            rc = parse_unary(p, &of);
        if (rc == 0)
            rc = cel_new_node(p, NODE_NOT, &t, ret);
        if (rc == 0)
            rc = cel_add_child(p, *ret, of);
    }
    p->depth--;
    return rc;
}

static int parse_compare(struct parser *p, int32_t *ret)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">=", "in"};
    struct lexer *l = &p->lexer;
    int rc = parse_unary(p, ret);
    while (rc == 0) {
        int32_t left = *ret, right;
        size_t sign = 0;
        struct token t = l->token;
        while (sign < ARRAY_LEN(signs) && !cel_token_is(l, signs[sign]))
            sign++;
        if (sign == ARRAY_LEN(signs))
            break;
        bool in = sign == ARRAY_LEN(signs) - 1;
        rc = cel_lex(l);
        if (rc == 0)
            rc = in && cel_token_is(l, "[") ? parse_list(p, &right)
                                            : parse_unary(p, &right);
        if (rc == 0)
            rc = cel_new_node(p, in ? NODE_IN : NODE_COMPARE, &t, ret);
        if (rc < 0)
            break;
        cel_node_at(p, *ret)->number = (int64_t)sign;
        rc = cel_add_child(p, *ret, left);
        if (rc == 0)
            rc = cel_add_child(p, *ret, right);
    }
    if (rc == 0 && l->token.kind == TOKEN_SIGN && l->token.size == 1 &&
        strchr("+-*/%", *l->token.data))
        return cel_refuse(l, ENOTSUP, CEL_NOT_READ);
    return rc;
}

/* All that one operator joins are children of one node. */
static int parse_joined(struct parser *p, bool or, int32_t *ret)
{
    int32_t next, join = CEL_NONE;
    int rc = or ? parse_joined(p, false, ret) : parse_compare(p, ret);
    while (rc == 0 && cel_token_is(&p->lexer, or ? "||" : "&&")) {
        if (join == CEL_NONE) {
            rc = cel_new_node(p, or ? NODE_OR : NODE_AND, &p->lexer.token,
                              &join);
            if (rc == 0)
                rc = cel_add_child(p, join, *ret);
            *ret = join;
        }
        if (rc == 0)
            rc = cel_lex(&p->lexer);
        if (rc == 0)
            rc = or ? parse_joined(p, false, &next) : parse_compare(p, &next);
        if (rc == 0)
            rc = cel_add_child(p, join, next);
    }
    return rc;
}

static int parse_if(struct parser *p, int32_t *ret)
{
    struct token t = p->lexer.token;
    int32_t condition = *ret, yes = CEL_NONE, no = CEL_NONE;
    int rc = cel_lex(&p->lexer);
    if (rc == 0)
        rc = parse_joined(p, true, &yes);
    if (rc == 0)
        rc = cel_expect(p, ":");
    if (rc == 0)
        rc = cel_parse_expression(p, &no);
    if (rc == 0)
        rc = cel_new_node(p, NODE_IF, &t, ret);
    if (rc == 0)
        rc = cel_add_child(p, *ret, condition);
    if (rc == 0)
        rc = cel_add_child(p, *ret, yes);
    return rc < 0 ? rc : cel_add_child(p, *ret, no);
}

int cel_parse_expression(struct parser *p, int32_t *ret)
{
    if (p->depth == CLAIM_CEL_DEPTH_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is nested too deep");
    p->depth++;
    int rc = parse_joined(p, true, ret);
    if (rc == 0 && cel_token_is(&p->lexer, "?"))
        rc = parse_if(p, ret);
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
