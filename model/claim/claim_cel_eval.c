#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "model/claim/claim_cel_value.h"

struct evaluation {
    const struct claim_cel *cel;
    const struct claim_device *device;
    const char *driver;
    struct value variables[CEL_VARIABLES_MAX];
    struct arena arena; /* texts that were made */
};

static struct value eval(struct evaluation *e, int32_t at);

static const struct node *node_of(const struct evaluation *e, int32_t i)
{
    return &e->cel->nodes[i];
}

/* --- selections ---------------------------------------------------------- */

static struct value attribute_value(const struct node *n,
                                    const struct claim_attribute *a)
{
    struct value v = {.number = a->number};
    switch (a->type) {
    case CLAIM_BOOL:
        v.type = VALUE_BOOL;
        break;
    case CLAIM_INT:
        v.type = VALUE_INT;
        break;
    case CLAIM_TEXT:
        return cel_text(a->text, strlen(a->text));
    case CLAIM_VERSION:
        v.type = VALUE_VERSION;
        if (!claim_version_parse(a->text, strlen(a->text), &v.version))
            return cel_error(n, EDOM, "is no semantic version: ", a->text);
        break;
    case CLAIM_OTHER:
        v.type = VALUE_OTHER;
        break;
    }
    return v;
}

static struct value member_of_device(const struct evaluation *e,
                                     const struct node *n, const char *name)
{
    if (strcmp(name, "driver") == 0)
        return cel_text(e->driver, strlen(e->driver));
    if (strcmp(name, "allowMultipleAllocations") == 0)
        return cel_bool(e->device->allow_multiple);
    if (strcmp(name, "attributes") == 0 || strcmp(name, "capacity") == 0)
        return (struct value){.type = VALUE_DOMAINS, .number = *name == 'c'};
    return cel_error(n, ENOTSUP, "Biga knows no such member of device", "");
}

/* Every domain has a map, which may be empty: so Kubernetes has it. */
static struct value look_up(const struct evaluation *e, const struct node *n,
                            const struct value *map, const char *name)
{
    if (map->type == VALUE_DEVICE)
        return member_of_device(e, n, name);
    if (map->type == VALUE_DOMAINS)
        return (struct value){
            .type = VALUE_NAMES, .number = map->number, .text = name};
    if (map->type != VALUE_NAMES)
        return cel_no_overload(n, map, NULL);
    if (map->number) {
        const struct claim_capacity *c = claim_device_capacity(e->device,
                                                               map->text, name);
        if (c)
            return (struct value){.type = VALUE_QUANTITY, .number = c->milli};
    } else {
        const struct claim_attribute *a =
            claim_device_attribute(e->device, map->text, name);
        if (a)
            return attribute_value(n, a);
    }
    return cel_error(n, ENOENT, "no such key: ", name);
}

/* x.name, x.?name, x["name"], x[?"name"]: of an optional value the selection
 * is one, too. */
static struct value select_from(const struct evaluation *e,
                                const struct node *n, const struct value *of,
                                const char *name)
{
    bool optional = n->optional || of->optional;
    if (of->none)
        return *of;
    struct value v = look_up(e, n, of, name);
    if (optional && cel_failed(&v) && v.number == ENOENT)
        return (struct value){
            .type = VALUE_OTHER, .optional = true, .none = true};
    v.optional = v.optional || (optional && !cel_failed(&v));
    return v;
}

static struct value eval_select(struct evaluation *e, const struct node *n)
{
    struct value of = eval(e, n->first);
    return cel_failed(&of) ? of : select_from(e, n, &of, n->text);
}

static struct value eval_index(struct evaluation *e, const struct node *n)
{
    struct value of = eval(e, n->first);
    if (cel_failed(&of))
        return of;
    struct value key = eval(e, node_of(e, n->first)->next);
    if (cel_failed(&key))
        return key;
    if (!cel_is(&key, VALUE_TEXT) || of.type == VALUE_DEVICE)
        return cel_no_overload(n, &of, &key);
    return select_from(e, n, &of, key.text);
}

static struct value eval_has(struct evaluation *e, const struct node *n)
{
    struct value of = eval(e, n->first);
    if (cel_failed(&of))
        return of;
    if (of.none)
        return cel_bool(false);
    struct value v = look_up(e, n, &of, n->text);
    if (cel_failed(&v) && v.number != ENOENT)
        return v;
    return cel_bool(!cel_failed(&v));
}

static struct value eval_compare(struct evaluation *e, const struct node *n)
{
    struct value a = eval(e, n->first);
    if (cel_failed(&a))
        return a;
    struct value b = eval(e, node_of(e, n->first)->next);
    if (cel_failed(&b))
        return b;
    if (n->number > CEL_NE)
        return cel_ordered(n, &a, &b);
    struct value v = cel_equal(n, &a, &b);
    if (n->number == CEL_EQ)
        return v;
    if (!cel_failed(&v))
        return cel_bool(!v.number);
    /* what cannot be equal is not: so cel-go has it */
    return v.number == EDOM ? cel_bool(true) : v;
}

static struct value in_list(struct evaluation *e, const struct node *n,
                            const struct value *what, const struct node *list)
{
    struct value found = cel_bool(false);
    bool literals = list->first != CEL_NONE;
    for (int32_t i = list->first; i != CEL_NONE; i = node_of(e, i)->next) {
        struct value v = eval(e, i);
        if (cel_failed(&v))
            return v; /* there is no such list */
        literals = literals && node_of(e, i)->kind <= NODE_TEXT;
        v = cel_equal(n, &v, what);
        if (cel_failed(&v) && v.number == ENOTSUP)
            found = !cel_failed(&found) && found.number ? found : v;
        else if (!cel_failed(&v) && v.number)
            found = v;
    }
    /* cel-go makes a set of literals, and finds no version in it */
    if (literals && cel_is(what, VALUE_VERSION))
        return cel_no_overload(n, what, NULL);
    return found;
}

static bool has_domain(const struct claim_device *d, bool capacity,
                       const char *domain)
{
    for (size_t i = 0; !capacity && i < d->n_attributes; i++)
        if (strcmp(d->attributes[i].domain, domain) == 0)
            return true;
    for (size_t i = 0; capacity && i < d->n_capacities; i++)
        if (strcmp(d->capacities[i].domain, domain) == 0)
            return true;
    return false;
}

static struct value eval_in(struct evaluation *e, const struct node *n)
{
    const struct node *right = node_of(e, node_of(e, n->first)->next);
    struct value what = eval(e, n->first);
    if (cel_failed(&what))
        return what;
    if (right->kind == NODE_LIST)
        return in_list(e, n, &what, right);
    struct value map = eval(e, node_of(e, n->first)->next);
    if (cel_failed(&map))
        return map;
    if (cel_is(&map, VALUE_DOMAINS) && cel_is(&what, VALUE_TEXT))
        return cel_bool(has_domain(e->device, map.number, what.text));
    if (!cel_is(&map, VALUE_NAMES) || !cel_is(&what, VALUE_TEXT))
        return cel_no_overload(n, &map, &what);
    struct value v = look_up(e, n, &map, what.text);
    return cel_bool(!cel_failed(&v) || v.number != ENOENT);
}

/* --- logic --------------------------------------------------------------- */

/* One that decides does so whatever the others are: also errors. */
static struct value eval_joined(struct evaluation *e, const struct node *n)
{
    bool decides = n->kind == NODE_OR;
    struct value first_error = cel_bool(!decides);
    for (int32_t i = n->first; i != CEL_NONE; i = node_of(e, i)->next) {
        struct value v = eval(e, i);
        if (!cel_failed(&v) && !cel_is(&v, VALUE_BOOL))
            v = cel_no_overload(n, &v, NULL);
        if (!cel_failed(&v) && v.number == decides)
            return v;
        if (cel_failed(&v) && !cel_failed(&first_error))
            first_error = v;
    }
    return first_error;
}

static struct value eval_if(struct evaluation *e, const struct node *n)
{
    struct value v = eval(e, n->first);
    int32_t yes = node_of(e, n->first)->next;
    if (cel_failed(&v))
        return v;
    if (!cel_is(&v, VALUE_BOOL))
        return cel_no_overload(n, &v, NULL);
    return eval(e, v.number ? yes : node_of(e, yes)->next);
}

static struct value eval_sign(struct evaluation *e, const struct node *n)
{
    struct value v = eval(e, n->first);
    if (cel_failed(&v))
        return v;
    if (!cel_is(&v, n->kind == NODE_NOT ? VALUE_BOOL : VALUE_INT))
        return cel_no_overload(n, &v, NULL);
    if (n->kind == NODE_NOT)
        return cel_bool(!v.number);
    return v.number == INT64_MIN ? cel_error(n, EDOM, "integer overflow", "")
                                 : cel_int(-v.number);
}

/* --- calls --------------------------------------------------------------- */

static struct value change_case(struct evaluation *e, const struct value *of,
                                bool upper)
{
    char *text = arena_strndup(&e->arena, of->text, of->size);
    for (size_t i = 0; i < of->size; i++)
        if (upper ? text[i] >= 'a' && text[i] <= 'z'
                  : text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] ^ 0x20);
    return cel_text(text, of->size);
}

static struct value size_of(const struct evaluation *e, const struct node *n,
                            const struct value *of)
{
    int64_t size = 0;
    if (cel_is(of, VALUE_TEXT)) {
        for (size_t i = 0; i < of->size; i++)
            size += !utf8_inside(of->text[i]);
        return cel_int(size);
    }
    if (!cel_is(of, VALUE_NAMES) && !cel_is(of, VALUE_DOMAINS))
        return cel_no_overload(n, of, NULL);
    const char *before = NULL; /* both arrays are in order of their domains */
    size_t count = of->number ? e->device->n_capacities
                              : e->device->n_attributes;
    for (size_t i = 0; i < count; i++) {
        const char *domain = of->number ? e->device->capacities[i].domain
                                        : e->device->attributes[i].domain;
        if (of->type == VALUE_NAMES)
            size += strcmp(domain, of->text) == 0;
        else
            size += !before || strcmp(domain, before) != 0;
        before = domain;
    }
    return cel_int(size);
}

/* x.orValue(y): y counts only when there is no x. */
static struct value or_value(struct evaluation *e, const struct node *n,
                             struct value of, int32_t otherwise)
{
    if (!of.optional)
        return cel_no_overload(n, &of, NULL);
    if (of.none)
        return eval(e, otherwise);
    of.optional = false;
    return of;
}

static struct value eval_call(struct evaluation *e, const struct node *n)
{
    int32_t second = node_of(e, n->first)->next;
    struct value of = eval(e, n->first), with = {0};
    if (cel_failed(&of))
        return of;
    if (n->number == CEL_OR_VALUE)
        return or_value(e, n, of, second);
    if (second != CEL_NONE)
        with = eval(e, second);
    if (second != CEL_NONE && cel_failed(&with))
        return with;
    switch ((enum cel_function)n->number) {
    case CEL_LOWER:
    case CEL_UPPER:
        return cel_is(&of, VALUE_TEXT)
                   ? change_case(e, &of, n->number == CEL_UPPER)
                   : cel_no_overload(n, &of, NULL);
    case CEL_SIZE:
        return size_of(e, n, &of);
    case CEL_COMPARE_TO:
    case CEL_GREATER:
    case CEL_LESS:
        return cel_order_call(n, &of, &with);
    case CEL_MAJOR:
    case CEL_MINOR:
    case CEL_PATCH:
        return cel_version_part(n, &of);
    case CEL_HAS_VALUE:
        return of.optional ? cel_bool(!of.none) : cel_no_overload(n, &of, NULL);
    case CEL_QUANTITY:
        return cel_make_quantity(n, &of);
    case CEL_SEMVER:
        return cel_make_version(n, &of, second != CEL_NONE ? &with : NULL);
    default:
        return cel_text_call(e->cel, n, &of, &with);
    }
}

/* --- the whole ----------------------------------------------------------- */

static struct value eval_bind(struct evaluation *e, const struct node *n)
{
    e->variables[n->number] = eval(e, n->first);
    return eval(e, node_of(e, n->first)->next);
}

static struct value eval(struct evaluation *e, int32_t at)
{
    const struct node *n = node_of(e, at);
    switch (n->kind) {
    case NODE_BOOL:
        return cel_bool(n->number);
    case NODE_INT:
        return cel_int(n->number);
    case NODE_TEXT:
        return cel_text(n->text, n->size);
    case NODE_DEVICE:
        return (struct value){.type = VALUE_DEVICE};
    case NODE_VARIABLE:
        return e->variables[n->number];
    case NODE_SELECT:
        return eval_select(e, n);
    case NODE_INDEX:
        return eval_index(e, n);
    case NODE_HAS:
        return eval_has(e, n);
    case NODE_CALL:
        return eval_call(e, n);
    case NODE_NOT:
    case NODE_NEGATE:
        return eval_sign(e, n);
    case NODE_AND:
    case NODE_OR:
        return eval_joined(e, n);
    case NODE_IF:
        return eval_if(e, n);
    case NODE_COMPARE:
        return eval_compare(e, n);
    case NODE_IN:
        return eval_in(e, n);
    case NODE_BIND:
        return eval_bind(e, n);
    case NODE_LIST:
        break; /* stands on the right of `in` alone */
    }
    return cel_error(n, ENOTSUP, "Biga reads lists behind in alone", "");
}

int claim_cel_eval(const struct claim_cel *cel,
                   const struct claim_device *device, const char *driver,
                   bool *ret_match, struct error *err)
{
    struct evaluation e = {.cel = cel, .device = device, .driver = driver};
    struct value v = eval(&e, cel->root);
    int rc = 0;
    if (!cel_failed(&v) && !cel_is(&v, VALUE_BOOL))
        v = v.type == VALUE_OTHER && !v.optional
                ? cel_no_overload(node_of(&e, cel->root), &v, NULL)
                : cel_error(node_of(&e, cel->root), EDOM,
                            "the result is no bool", "");
    if (cel_failed(&v))
        rc = error_set(err, v.number == ENOTSUP ? ENOTSUP : EDOM, "at %u: %s%s",
                       v.at + 1, v.text, v.word);
    else
        *ret_match = v.number;
    arena_fini(&e.arena);
    return rc;
}
