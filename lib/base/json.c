#include "lib/base/json.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/jscan.h"

/* What malloc() takes for cJSON's node of a value, and for a short text. */
enum {
    VALUE_SIZE = 80 + 32,
    FEW_KEYS = 40,
    EXACT_DIGITS = 15, /* so many are exact in a double */
};

/* --- the strict check ---------------------------------------------------- */

struct json_count {
    size_t keys, values;
};

/* The keys of all objects that are still open, as a stack of sets.  A set
 * is searched by hash; two keys with equal hashes are compared decoded. */
struct key {
    uint64_t hash;
    struct jtext text;
};

struct keys {
    struct key *list;
    size_t n, cap;
    size_t n_keys, n_values; /* of all the text */
    bool starved;            /* there is no memory for them */
};

static bool key_equal(const struct jtext *a, const struct jtext *b)
{
    if (!a->escaped && !b->escaped)
        return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
    cleanup_free char *x = xmalloc(a->size + 1);
    cleanup_free char *y = xmalloc(b->size + 1);
    size_t nx = jtext_decode(a, x), ny = jtext_decode(b, y);
    return nx == ny && memcmp(x, y, nx) == 0;
}

static uint64_t key_hash(const struct jtext *t)
{
    if (!t->escaped)
        return hash_bytes(t->data, t->size);
    cleanup_free char *decoded = xmalloc(t->size + 1);
    size_t n = jtext_decode(t, decoded);
    return hash_bytes(decoded, n);
}

static bool key_add(struct keys *keys, const struct jtext *key)
{
    if (keys->n == keys->cap) {
        size_t size = keys->cap * sizeof *keys->list;
        size_t more = keys->cap ? size : 8 * sizeof *keys->list;
        struct key *list = try_realloc(keys->list, size, size + more);
        keys->starved = !list;
        if (!list)
            return false;
        keys->list = list;
        keys->cap = (size + more) / sizeof *list;
    }
    keys->list[keys->n++] = (struct key){key_hash(key), *key};
    keys->n_keys++;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Few are sooner compared than sorted. */
static bool may_repeat(const struct key *list, size_t n)
{
    for (size_t i = 1; i < n && n <= FEW_KEYS; i++)
        for (size_t j = 0; j < i; j++)
            if (list[i].hash == list[j].hash)
                return true;
    return n > FEW_KEYS;
}

/* Objects are checked when they close: sort their keys by hash and compare
 * neighbours.  Returns the repeated key, or NULL. */
static const struct jtext *find_duplicate(struct key *list, size_t n)
{
    if (!may_repeat(list, n))
        return NULL;
    qsort(list, n, sizeof *list, compare_keys);
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j-- > 0 && list[j].hash == list[i].hash;)
            if (key_equal(&list[j].text, &list[i].text))
                return list[i].text.data > list[j].text.data ? &list[i].text
                                                             : &list[j].text;
    return NULL;
}

static bool check_value(struct jscan *s, struct keys *keys);

static bool check_object(struct jscan *s, struct keys *keys)
{
    size_t base = keys->n;
    struct jtext key;
    if (!jscan_object(s))
        return false;
    while (jscan_member(s, &key)) {
        if (keys->n - base >= JSON_MEMBERS_MAX) {
            jscan_fail(s, "too many members in object", jscan_offset(s));
            return false;
        }
        if (!key_add(keys, &key) || !check_value(s, keys))
            return false;
    }
    const struct jtext *twice =
        keys->n > base ? find_duplicate(keys->list + base, keys->n - base)
                       : NULL;
    if (twice && !s->fault)
        jscan_fail(s, "duplicate key", (size_t)(twice->data - s->begin) - 1);
    keys->n = base;
    return !s->fault;
}

/* Recursion ends at JSCAN_DEPTH_MAX. */
static bool check_value(struct jscan *s, struct keys *keys)
{
    keys->n_values++;
    switch (jscan_peek(s)) {
    case JKIND_OBJECT:
        return check_object(s, keys);
    case JKIND_ARRAY:
        if (!jscan_array(s))
            return false;
        while (jscan_element(s))
            if (!check_value(s, keys))
                return false;
        return !s->fault;
    default:
        return jscan_skip(s);
    }
}

static int no_memory(size_t size, struct error *err)
{
    return error_set(err, ENOMEM,
                     "there is no memory for a JSON text of %zu bytes", size);
}

static int check(const char *data, size_t size, struct json_count *ret_count,
                 struct error *err)
{
    struct jscan s;
    struct keys keys = {0};
    jscan_init(&s, data, size);
    bool ok = check_value(&s, &keys) && jscan_end(&s);
    free(keys.list);
    *ret_count = (struct json_count){keys.n_keys, keys.n_values};
    return ok ? 0 : keys.starved ? no_memory(size, err) : jscan_error(&s, err);
}

int json_check(const char *data, size_t size, struct error *err)
{
    struct json_count ignored;
    return check(data, size, &ignored, err);
}

int json_parse(const char *data, size_t size, cJSON **ret_json,
               struct error *err)
{
    struct json_count n;
    int r = check(data, size, &n, err);
    if (r < 0)
        return r;
    size_t tree = size + (n.keys + n.values) * VALUE_SIZE;
    if (tree >= TRY_LARGE && !mem_left(tree))
        return no_memory(size, err);
    cJSON *json = cJSON_ParseWithLength(data, size);
    if (!json) /* it is one */
        return no_memory(size, err);
    *ret_json = json;
    return 0;
}

/* --- a tree in one piece of memory ---------------------------------------- */

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

/* The tree of a text that was checked and has so many values; NULL when there
 * is no memory for it. */
static cJSON *flat_build(const char *data, size_t size, size_t n_values)
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

int json_parse_flat(const char *data, size_t size, cJSON **ret_json,
                    struct error *err)
{
    struct json_count n;
    int r = check(data, size, &n, err);
    if (r < 0)
        return r;
    *ret_json = flat_build(data, size, n.values);
    return *ret_json ? 0 : no_memory(size, err);
}

/* --- the reader ----------------------------------------------------------- */

void reader_init(struct reader *r, const cJSON *json, const char *path,
                 struct error *err)
{
    memset(r, 0, sizeof *r);
    r->json = json;
    r->err = err;
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    if (!cJSON_IsObject(json))
        (void)reader_fail(r, NULL, "must be an object");
}

void reader_path(const struct reader *r, const char *name, int index,
                 char ret_path[READER_PATH_MAX])
{
    const char *dot = r->path[0] && name ? "." : "";
    if (index >= 0)
        (void)snprintf(ret_path, READER_PATH_MAX, "%s%s%s[%d]", r->path, dot,
                       name ? name : "", index);
    else
        (void)snprintf(ret_path, READER_PATH_MAX, "%s%s%s", r->path, dot,
                       name ? name : "");
}

int reader_fail(struct reader *r, const char *name, const char *fmt, ...)
{
    if (r->failed)
        return -EINVAL;
    r->failed = true;

    char path[READER_PATH_MAX], text[256];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    reader_path(r, name, -1, path);
    return error_set(r->err, EINVAL, "%s%s%s", path, path[0] ? ": " : "", text);
}

static const cJSON *member(struct reader *r, const char *name, bool required)
{
    if (r->failed)
        return NULL;
    if (r->n_seen < READER_SEEN_MAX)
        r->seen[r->n_seen++] = name;
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(r->json, name);
    if (m && cJSON_IsNull(m))
        m = NULL;
    if (!m && required)
        (void)reader_fail(r, name, "required member missing");
    return m;
}

static const char *text_of(struct reader *r, const cJSON *m, const char *name,
                           size_t max)
{
    if (!m)
        return NULL;
    if (!cJSON_IsString(m)) {
        (void)reader_fail(r, name, "must be a string");
        return NULL;
    }
    size_t len = strlen(m->valuestring);
    if (len > max) {
        (void)reader_fail(r, name, "has %zu characters, the limit is %zu", len,
                          max);
        return NULL;
    }
    return m->valuestring;
}

const char *reader_string(struct reader *r, const char *name, size_t max)
{
    const char *text = text_of(r, member(r, name, true), name, max);
    if (text && !*text) {
        (void)reader_fail(r, name, "must not be empty");
        return NULL;
    }
    return text;
}

const char *reader_opt_string(struct reader *r, const char *name, size_t max)
{
    return text_of(r, member(r, name, false), name, max);
}

static int64_t int_of(struct reader *r, const cJSON *m, const char *name,
                      int64_t min, int64_t max)
{
    if (!m)
        return 0;
    double d = m->valuedouble;
    /* beyond 2^53 a double no longer tells integers apart */
    if (!cJSON_IsNumber(m) || d != floor(d) || fabs(d) > 9007199254740992.0) {
        (void)reader_fail(r, name, "must be an integer");
        return 0;
    }
    int64_t value = (int64_t)d;
    if (value < min || value > max) {
        (void)reader_fail(r, name, "is %lld, must be %lld to %lld",
                          (long long)value, (long long)min, (long long)max);
        return 0;
    }
    return value;
}

int64_t reader_int(struct reader *r, const char *name, int64_t min, int64_t max)
{
    return int_of(r, member(r, name, true), name, min, max);
}

int64_t reader_opt_int(struct reader *r, const char *name, int64_t min,
                       int64_t max, int64_t otherwise)
{
    const cJSON *m = member(r, name, false);
    return m ? int_of(r, m, name, min, max) : otherwise;
}

static bool bool_of(struct reader *r, const cJSON *m, const char *name)
{
    if (m && !cJSON_IsBool(m))
        (void)reader_fail(r, name, "must be true or false");
    return m && cJSON_IsTrue(m);
}

bool reader_bool(struct reader *r, const char *name)
{
    return bool_of(r, member(r, name, true), name);
}

bool reader_opt_bool(struct reader *r, const char *name, bool otherwise)
{
    const cJSON *m = member(r, name, false);
    return m ? bool_of(r, m, name) : otherwise;
}

static const cJSON *object_of(struct reader *r, const cJSON *m,
                              const char *name)
{
    if (m && !cJSON_IsObject(m)) {
        (void)reader_fail(r, name, "must be an object");
        return NULL;
    }
    return m;
}

static const cJSON *array_of(struct reader *r, const cJSON *m, const char *name,
                             int max)
{
    if (m && !cJSON_IsArray(m)) {
        (void)reader_fail(r, name, "must be an array");
        return NULL;
    }
    if (m && cJSON_GetArraySize(m) > max) {
        (void)reader_fail(r, name, "has %d elements, the limit is %d",
                          cJSON_GetArraySize(m), max);
        return NULL;
    }
    return m;
}

const cJSON *reader_object(struct reader *r, const char *name)
{
    return object_of(r, member(r, name, true), name);
}

const cJSON *reader_opt_object(struct reader *r, const char *name)
{
    return object_of(r, member(r, name, false), name);
}

const cJSON *reader_array(struct reader *r, const char *name, int max)
{
    return array_of(r, member(r, name, true), name, max);
}

const cJSON *reader_opt_array(struct reader *r, const char *name, int max)
{
    return array_of(r, member(r, name, false), name, max);
}

int reader_finish_lenient(struct reader *r)
{
    return r->failed ? -EINVAL : 0;
}

int reader_finish_strict(struct reader *r)
{
    const cJSON *m;
    if (r->failed)
        return -EINVAL;
    cJSON_ArrayForEach(m, r->json)
    {
        bool known = false;
        for (unsigned i = 0; i < r->n_seen && !known; i++)
            known = strcmp(r->seen[i], m->string) == 0;
        if (!known)
            return reader_fail(r, m->string, "unknown member");
    }
    return 0;
}
