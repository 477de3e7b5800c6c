#include <string.h>

#include "model/claim/claim_cel_private.h"

/* --- making nodes -------------------------------------------------------- */

int cel_new_node(struct parser *p, enum node_kind kind, const struct token *at,
                 int32_t *ret)
{
    struct claim_cel *cel = p->cel;
    if (cel->n_nodes == CLAIM_CEL_NODES_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is one operator too many");
    cel->nodes = xgrow(cel->nodes, cel->n_nodes, &cel->cap_nodes,
                       sizeof *cel->nodes);
    cel->nodes[cel->n_nodes] = (struct node){
        .kind = kind,
        .depth = 1,
        .at = (uint32_t)at->at,
        .first = CEL_NONE,
        .next = CEL_NONE,
        .text = "",
    };
    *ret = (int32_t)cel->n_nodes++;
    return 0;
}

/* Put `child` behind the children that there are. */
int cel_add_child(struct parser *p, int32_t parent, int32_t child)
{
    int32_t *slot = &cel_node_at(p, parent)->first;
    while (*slot != CEL_NONE)
        slot = &cel_node_at(p, *slot)->next;
    *slot = child;
    unsigned depth = cel_node_at(p, child)->depth + 1;
    if (depth > CLAIM_CEL_DEPTH_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is nested too deep");
    if (cel_node_at(p, parent)->depth < depth)
        cel_node_at(p, parent)->depth = depth;
    return 0;
}

int cel_expect(struct parser *p, const char *sign)
{
    char text[32];
    if (cel_token_is(&p->lexer, sign))
        return cel_lex(&p->lexer);
    (void)snprintf(text, sizeof text, "must be %s", sign);
    return cel_refuse(&p->lexer, EINVAL, text);
}

bool cel_word_is(const struct token *t, const char *word)
{
    return t->size == strlen(word) && memcmp(t->data, word, t->size) == 0;
}

/* --- calls --------------------------------------------------------------- */

static const struct {
    const char *name;
    enum cel_function function;
    bool method;
    unsigned least, most; /* arguments */
} functions[] = {
    {"startsWith", CEL_STARTS_WITH, true, 1, 1},
    {"endsWith", CEL_ENDS_WITH, true, 1, 1},
    {"contains", CEL_CONTAINS, true, 1, 1},
    {"matches", CEL_MATCHES, true, 1, 1},
    {"lowerAscii", CEL_LOWER, true, 0, 0},
    {"upperAscii", CEL_UPPER, true, 0, 0},
    {"size", CEL_SIZE, true, 0, 0},
    {"compareTo", CEL_COMPARE_TO, true, 1, 1},
    {"isGreaterThan", CEL_GREATER, true, 1, 1},
    {"isLessThan", CEL_LESS, true, 1, 1},
    {"major", CEL_MAJOR, true, 0, 0},
    {"minor", CEL_MINOR, true, 0, 0},
    {"patch", CEL_PATCH, true, 0, 0},
    {"orValue", CEL_OR_VALUE, true, 1, 1},
    {"hasValue", CEL_HAS_VALUE, true, 0, 0},
    {"size", CEL_SIZE, false, 1, 1},
    {"quantity", CEL_QUANTITY, false, 1, 1},
    {"semver", CEL_SEMVER, false, 1, 2},
};

/* The pattern of matches() is compiled here, once. */
static int add_regex(struct parser *p, int32_t call)
{
    struct claim_cel *cel = p->cel;
    struct node *pattern =
        cel_node_at(p, cel_node_at(p, cel_node_at(p, call)->first)->next);
    struct error why;
    if (pattern->kind != NODE_TEXT)
        return cel_refuse(&p->lexer, ENOTSUP,
                          "Biga reads matches() of a literal, and no other");
    cel->regexes = xgrow(cel->regexes, cel->n_regexes, &cel->cap_regexes,
                         sizeof(struct claim_regex *));
    int rc = claim_regex_compile(pattern->text, pattern->size,
                                 &cel->regexes[cel->n_regexes], &why);
    if (rc < 0)
        return error_set(p->lexer.err, -rc, "at %u: \"%.40s\": %s",
                         pattern->at + 1, pattern->text, why.text);
    cel_node_at(p, call)->size = cel->n_regexes++;
    return 0;
}

/* From behind the opening bracket to behind the closing one. */
static int parse_arguments(struct parser *p, int32_t call, unsigned *ret_n)
{
    unsigned n = 0;
    int rc = 0;
    while (rc == 0 && !cel_token_is(&p->lexer, ")")) {
        int32_t argument;
        if (n++ > 0)
            rc = cel_expect(p, ",");
        if (rc == 0)
            rc = cel_parse_expression(p, &argument);
        if (rc == 0)
            rc = cel_add_child(p, call, argument);
    }
    *ret_n = n;
    return rc < 0 ? rc : cel_lex(&p->lexer);
}

/* The cursor is behind the bracket that follows `name`; `receiver` is
 * CEL_NONE for a function. */
int cel_parse_call(struct parser *p, const struct token *name, int32_t receiver,
                   int32_t *ret)
{
    size_t f = 0;
    unsigned n = 0;
    int32_t call;
    while (f < ARRAY_LEN(functions) &&
           (functions[f].method != (receiver != CEL_NONE) ||
            !cel_word_is(name, functions[f].name)))
        f++;
    if (f == ARRAY_LEN(functions))
        return error_set(p->lexer.err, ENOTSUP,
                         "at %zu: \"%.*s\": " CEL_NOT_READ, name->at + 1,
                         (int)(name->size < 40 ? name->size : 40), name->data);
    int rc = cel_new_node(p, NODE_CALL, name, &call);
    if (rc == 0 && receiver != CEL_NONE)
        rc = cel_add_child(p, call, receiver);
    if (rc == 0)
        rc = parse_arguments(p, call, &n);
    if (rc < 0)
        return rc;
    cel_node_at(p, call)->number = functions[f].function;
    cel_node_at(p, call)->text = functions[f].name;
    if (n < functions[f].least || n > functions[f].most)
        return error_set(p->lexer.err, EINVAL,
                         "at %zu: \"%s\": has %u arguments", name->at + 1,
                         functions[f].name, n);
    *ret = call;
    return functions[f].function == CEL_MATCHES ? add_regex(p, call) : 0;
}

/* has(x.name): the selection becomes the question. */
int cel_parse_has(struct parser *p, int32_t *ret)
{
    int32_t of;
    int rc = cel_parse_expression(p, &of);
    if (rc < 0)
        return rc;
    if (cel_node_at(p, of)->kind != NODE_SELECT || cel_node_at(p, of)->optional)
        return cel_refuse(&p->lexer, EINVAL,
                          "has() must have a selection like x.name before it");
    cel_node_at(p, of)->kind = NODE_HAS;
    *ret = of;
    return cel_expect(p, ")");
}

/* cel.bind(name, value, where), behind its bracket. */
int cel_parse_bind(struct parser *p, const struct token *at, int32_t *ret)
{
    struct token name = p->lexer.token;
    int32_t bind, value, where;
    if (name.kind != TOKEN_WORD)
        return cel_refuse(&p->lexer, EINVAL, "must be a name");
    if (p->n_variables == CEL_VARIABLES_MAX)
        return cel_refuse(&p->lexer, EINVAL, "is one variable too many");
    int rc = cel_new_node(p, NODE_BIND, at, &bind);
    if (rc == 0)
        rc = cel_lex(&p->lexer);
    if (rc == 0)
        rc = cel_expect(p, ",");
    if (rc == 0)
        rc = cel_parse_expression(p, &value);
    if (rc == 0)
        rc = cel_add_child(p, bind, value);
    if (rc == 0)
        rc = cel_expect(p, ",");
    if (rc < 0)
        return rc;
    cel_node_at(p, bind)->number = (int64_t)p->n_variables;
    p->variables[p->n_variables++] = name;
    rc = cel_parse_expression(p, &where);
    p->n_variables--;
    if (rc == 0)
        rc = cel_add_child(p, bind, where);
    *ret = bind;
    return rc < 0 ? rc : cel_expect(p, ")");
}
