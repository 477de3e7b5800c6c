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
