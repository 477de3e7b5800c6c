#include "lib/base/json_flat.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/jscan.h"
#include "lib/base/mem.h"

enum { EXACT_DIGITS = 15 }; /* so many are exact in a double */

struct flat {
    struct jscan s;
    cJSON *node; /* the next free one */
    char *text;  /* where the next text goes: it needs no more than in JSON,
                  * where it has two quotes */
};

static char *take_text(struct flat *f, const struct jtext *t)
{
    char *text = f->text;
    size_t size = t->size;
    if (t->escaped)
        size = jtext_decode(t, text);
    else
        memcpy(text, t->data, size);
    text[size] = '\0';
    f->text += size + 1;
    return text;
}

static double number_of(const struct jtext *t)
{
    char text[JSCAN_NUMBER_MAX + 1];
    double value = 0;
    bool plain = t->size <= EXACT_DIGITS;
    for (size_t i = 0; i < t->size && plain; i++) {
        plain = t->data[i] >= '0' && t->data[i] <= '9';
        value = value * 10 + (t->data[i] - '0');
    }
    if (plain)
        return value;
    memcpy(text, t->data, t->size);
    text[t->size] = '\0';
    return strtod(text, NULL);
}

/* As cJSON does. */
static void take_number(struct flat *f, cJSON *item)
{
    struct jtext t;
    (void)jscan_raw(&f->s, &t);
    item->type = cJSON_Number;
    item->valuedouble = number_of(&t);
    item->valueint = item->valuedouble >= INT_MAX ? INT_MAX
                     : item->valuedouble <= (double)INT_MIN
                         ? INT_MIN
                         : (int)item->valuedouble;
}

static void take_value(struct flat *f, cJSON *item);

/* One more behind `*last` (NULL: the first of `parent`), which it becomes. */
static cJSON *take_child(struct flat *f, cJSON *parent, cJSON **last)
{
    cJSON *child = f->node++;
    memset(child, 0, sizeof *child);
    if (*last)
        (*last)->next = child;
    else
        parent->child = child;
    child->prev = *last;
    *last = parent->child->prev = child; /* the first one knows the last */
    return child;
}

static void take_object(struct flat *f, cJSON *item)
{
    cJSON *last = NULL;
    struct jtext key;
    item->type = cJSON_Object;
    (void)jscan_object(&f->s);
    while (jscan_member(&f->s, &key)) {
        cJSON *child = take_child(f, item, &last);
        child->string = take_text(f, &key);
        take_value(f, child);
    }
}

static void take_array(struct flat *f, cJSON *item)
{
    cJSON *last = NULL;
    item->type = cJSON_Array;
    (void)jscan_array(&f->s);
    while (jscan_element(&f->s))
        take_value(f, take_child(f, item, &last));
}

/* Recursion ends at JSCAN_DEPTH_MAX. */
static void take_value(struct flat *f, cJSON *item)
{
    struct jtext text;
    bool is;
    switch (jscan_peek(&f->s)) {
    case JKIND_OBJECT:
        take_object(f, item);
        break;
    case JKIND_ARRAY:
        take_array(f, item);
        break;
    case JKIND_STRING:
        (void)jscan_string(&f->s, &text);
        item->type = cJSON_String;
        item->valuestring = take_text(f, &text);
        break;
    case JKIND_NUMBER:
        take_number(f, item);
        break;
    case JKIND_NULL:
        (void)jscan_null(&f->s);
        item->type = cJSON_NULL;
        break;
    default:
        (void)jscan_bool(&f->s, &is);
        item->type = is ? cJSON_True : cJSON_False;
        item->valueint = is;
    }
}

cJSON *json_flat_build(const char *data, size_t size, size_t n_values)
{
    size_t nodes = n_values * sizeof(cJSON);
    cJSON *root = try_realloc(NULL, 0, nodes + size + 1);
    if (!root)
        return NULL;
    struct flat f = {.node = root + 1, .text = (char *)(root + n_values)};
    jscan_init(&f.s, data, size);
    memset(root, 0, sizeof *root);
    take_value(&f, root);
    return root;
}
