/* claim_cel_private - what the parts of the CEL reader share: tokens, the tree,
 * and the functions that it knows. */
#ifndef BIGA_MODEL_CLAIM_CLAIM_CEL_PRIVATE_H
#define BIGA_MODEL_CLAIM_CLAIM_CEL_PRIVATE_H

#include "model/claim/claim_cel.h"
#include "model/claim/claim_regex.h"

enum { CEL_VARIABLES_MAX = 16 }; /* of cel.bind(), within one another */

/* --- tokens -------------------------------------------------------------- */

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_INT,
    TOKEN_TEXT,
    TOKEN_SIGN, /* an operator or a bracket, one or two characters */
};

struct token {
    enum token_kind kind;
    const char *data; /* as it stands; of a text its value, in the store */
    size_t size;
    uint64_t number; /* of an int, without its sign */
    size_t at;       /* byte offset */
};

struct lexer {
    const char *begin, *p, *end;
    char *store; /* where the next text goes: never longer than its source */
    struct token token; /* the one under the cursor */
    struct error *err;
};

/* The next token; 0, or what claim_cel_compile() returns. */
int cel_lex(struct lexer *l);
bool cel_token_is(const struct lexer *l, const char *sign);
/* -code with `at N: "word": text`, of the token under the cursor. */
int cel_refuse(const struct lexer *l, int code, const char *text);

/* --- the tree ------------------------------------------------------------ */

enum node_kind {
    NODE_BOOL,
    NODE_INT,
    NODE_TEXT,
    NODE_LIST, /* children: its elements */
    NODE_DEVICE,
    NODE_VARIABLE, /* number: its slot */
    NODE_SELECT,   /* text: the name; of the first child */
    NODE_INDEX,    /* first child, key */
    NODE_HAS,      /* as NODE_SELECT */
    NODE_CALL,     /* number: enum cel_function; receiver, arguments */
    NODE_NOT,
    NODE_NEGATE,
    NODE_AND, /* two children or more */
    NODE_OR,
    NODE_IF,      /* condition, then, else */
    NODE_COMPARE, /* number: enum cel_compare */
    NODE_IN,      /* what, list or map */
    NODE_BIND,    /* number: the slot; its value, and where it is known */
};

enum cel_compare { CEL_EQ, CEL_NE, CEL_LT, CEL_LE, CEL_GT, CEL_GE };

enum cel_function {
    CEL_STARTS_WITH,
    CEL_ENDS_WITH,
    CEL_CONTAINS,
    CEL_MATCHES,
    CEL_LOWER,
    CEL_UPPER,
    CEL_SIZE,
    CEL_COMPARE_TO,
    CEL_GREATER,
    CEL_LESS,
    CEL_MAJOR,
    CEL_MINOR,
    CEL_PATCH,
    CEL_OR_VALUE,
    CEL_HAS_VALUE,
    CEL_QUANTITY,
    CEL_SEMVER,
};

enum { CEL_NONE = -1 }; /* no node */

struct node {
    enum node_kind kind;
    bool optional;       /* .?name, [?key] */
    unsigned depth;      /* of the tree below it, 1 alone */
    uint32_t at;         /* byte offset of its word */
    int32_t first, next; /* first child, next sibling; or CEL_NONE */
    int64_t number;
    const char *text;
    size_t size;
};

struct claim_cel {
    struct arena arena; /* texts */
    char *source;
    struct node *nodes;
    size_t n_nodes, cap_nodes;
    int32_t root;
    struct claim_regex **regexes; /* NODE_CALL of CEL_MATCHES: size is one's
                                   * index */
    size_t n_regexes, cap_regexes;
};

/* --- the parser ---------------------------------------------------------- */

struct parser {
    struct lexer lexer;
    struct claim_cel *cel;
    unsigned depth;
    struct token variables[CEL_VARIABLES_MAX]; /* their names */
    size_t n_variables;
};

#define CEL_NOT_READ "is CEL that Biga does not read"

static inline struct node *cel_node_at(struct parser *p, int32_t i)
{
    return &p->cel->nodes[i];
}

/* All return 0, or what claim_cel_compile() returns, and leave the cursor
 * behind what they read. */
int cel_new_node(struct parser *p, enum node_kind kind, const struct token *at,
                 int32_t *ret);
/* Put `child` behind the children that there are. */
int cel_add_child(struct parser *p, int32_t parent, int32_t child);
int cel_expect(struct parser *p, const char *sign);
bool cel_word_is(const struct token *t, const char *word);
int cel_parse_expression(struct parser *p, int32_t *ret);
/* Behind the bracket that follows `name`; `receiver` is CEL_NONE for a
 * function. */
int cel_parse_call(struct parser *p, const struct token *name, int32_t receiver,
                   int32_t *ret);
int cel_parse_has(struct parser *p, int32_t *ret);
int cel_parse_bind(struct parser *p, const struct token *at, int32_t *ret);

#endif
