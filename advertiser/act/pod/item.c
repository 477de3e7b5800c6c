#include "advertiser/act/pod/item.h"

#include <stdarg.h>
#include <string.h>

#include "lib/base/jscan.h"

_Static_assert((int)ACT_PODS_MAX == (int)PODFEED_PODS_MAX,
               "a node takes what the extender sends");

enum { PATH_MAX_SIZE = 40, ESCAPE_MAX = 6 /* "\u0041" is one byte */ };

struct reading {
    struct jscan *s;
    struct arena *arena;
    struct error *err;
    char path[PATH_MAX_SIZE]; /* "items[3]." or "" */
    bool strict;              /* about members that we do not know */
    bool failed;
};

/* The first error wins. */
static bool refuse(struct reading *r, const char *member, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct reading *r, const char *member, const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX / 2];
    va_list ap;
    if (r->failed)
        return false;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)error_set(r->err, EINVAL, "%s%s: %s", r->path, member, text);
    r->failed = true;
    jscan_fail(r->s, "refused", jscan_offset(r->s));
    return false;
}

/* --- what texts may be -------------------------------------------------- */

static bool has_only(const char *text, const char *more)
{
    for (; *text; text++)
        if (!((*text >= 'a' && *text <= 'z') ||
              (*text >= '0' && *text <= '9') || strchr(more, *text)))
            return false;
    return true;
}

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool act_uid_valid(const char *uid)
{
    size_t size = strlen(uid);
    return size > 0 && size <= 63 && *uid != '.' &&
           has_only(uid, CAPITALS "-_.");
}

bool act_namespace_valid(const char *text)
{
    size_t size = strlen(text);
    return size > 0 && size <= 63 && *text != '-' && text[size - 1] != '-' &&
           has_only(text, "-");
}

bool act_name_valid(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size > ACT_NAME_MAX || !has_only(text, "-."))
        return false;
    for (const char *label = text; label;) {
        const char *dot = strchr(label, '.');
        size_t n = dot ? (size_t)(dot - label) : strlen(label);
        if (n == 0 || label[0] == '-' || label[n - 1] == '-')
            return false;
        label = dot ? dot + 1 : NULL;
    }
    return true;
}

/* The name of a file in the operator's folder of hooks. */
static bool hook_valid(const char *text)
{
    return *text != '.' && has_only(text, CAPITALS "-_.");
}

static bool any_valid(const char *text)
{
    (void)text;
    return true;
}

static bool filled_valid(const char *text)
{
    return *text != '\0';
}

static bool variable_valid(const char *text)
{
    return *text && !strchr("0123456789", *text) &&
           text[strspn(text, CAPITALS "0123456789_")] == '\0';
}

/* --- members ------------------------------------------------------------ */

static bool read_text(struct reading *r, const char *member, size_t max,
                      const char **ret_text)
{
    struct jtext t;
    if (jscan_peek(r->s) != JKIND_STRING)
        return refuse(r, member, "must be a text");
    if (!jscan_string(r->s, &t))
        return false;
    if (t.size > max * ESCAPE_MAX)
        return refuse(r, member, "has over %zu bytes", max);
    char *text = arena_alloc(r->arena, t.size + 1);
    if (jtext_decode(&t, text) > max)
        return refuse(r, member, "has over %zu bytes", max);
    *ret_text = text;
    return true;
}

static bool read_int(struct reading *r, const char *member, int64_t min,
                     int64_t max, int64_t *ret_value)
{
    int64_t value;
    if (jscan_peek(r->s) != JKIND_NUMBER)
        return refuse(r, member, "must be a number");
    if (!jscan_int64(r->s, &value))
        return false;
    if (value < min || value > max)
        return refuse(r, member, "is %lld, must be %lld to %lld",
                      (long long)value, (long long)min, (long long)max);
    *ret_value = value;
    return true;
}

static bool read_flag(struct reading *r, const char *member, bool *ret_value)
{
    enum jkind kind = jscan_peek(r->s);
    if (kind != JKIND_TRUE && kind != JKIND_FALSE)
        return refuse(r, member, "must be true or false");
    return jscan_bool(r->s, ret_value);
}

/* A value as it stands. */
static bool read_raw(struct reading *r, const char *member, enum jkind kind,
                     size_t max, struct jtext *ret_raw)
{
    if (jscan_peek(r->s) != kind)
        return refuse(r, member, "must be %s",
                      kind == JKIND_OBJECT ? "an object" : "a list");
    if (!jscan_raw(r->s, ret_raw))
        return false;
    if (ret_raw->size > max)
        return refuse(r, member, "has %zu bytes, the limit is %zu",
                      ret_raw->size, max);
    return true;
}

static bool env_has(const struct cri_pair *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return true;
    return false;
}

static bool read_env(struct reading *r, struct cri_pairs *ret_env)
{
    struct cri_pair list[ITEM_ENV_MAX];
    struct jtext key;
    size_t n = 0;
    if (jscan_peek(r->s) != JKIND_OBJECT)
        return refuse(r, "env", "must be an object");
    (void)jscan_object(r->s); /* a fault ends the loop */
    while (jscan_member(r->s, &key)) {
        char name[64 * ESCAPE_MAX + 1];
        if (n == ITEM_ENV_MAX)
            return refuse(r, "env", "has over %d variables", ITEM_ENV_MAX);
        if (key.size >= sizeof name || jtext_decode(&key, name) > 64 ||
            !variable_valid(name))
            return refuse(r, "env",
                          "\"%.*s\": names have up to 64 of A to Z, 0 to 9 "
                          "and _, and begin with no digit",
                          (int)(key.size < 80 ? key.size : 80), key.data);
        if (env_has(list, n, name))
            return refuse(r, "env", "\"%.64s\" is there twice", name);
        list[n].key = arena_strndup(r->arena, name, strlen(name));
        if (!read_text(r, "env", ITEM_ENV_VALUE_MAX, &list[n].value))
            return false;
        n++;
    }
    struct cri_pair *kept = arena_alloc(r->arena, (n + 1) * sizeof *kept);
    memcpy(kept, list, n * sizeof *kept);
    *ret_env = (struct cri_pairs){kept, n};
    return true;
}

/* --- items -------------------------------------------------------------- */

enum member {
    UID,
    NAMESPACE,
    NAME,
    PLACE,
    PAIR_KEY,
    HOOK,
    SPEC,
    FILES,
    ENV,
    HOST,
    STOP,
    HELD,
    GRACE,
    VFS,
    MEMBERS_STRICT, /* those that follow are of an answer alone */
    LATER = MEMBERS_STRICT,
    KEEP,
    FAULT,
    MEMBERS,
};
static const char *const names[MEMBERS] = {
    "uid",   "namespace", "name",  "place", "pairKey", "hook",
    "spec",  "files",     "env",   "host",  "stop",    "held",
    "grace", "sriovVfs",  "later", "keep",  "fault"};

/* The members that are texts. */
static bool read_word(struct reading *r, enum member m, struct act_pod *pod)
{
    static const struct {
        size_t max;
        bool (*valid)(const char *text);
        const char *rule;
    } rules[] = {
        [UID] = {63, act_uid_valid, "letters, digits, '-', '_' and '.'"},
        [NAMESPACE] = {63, act_namespace_valid, "a DNS label"},
        [NAME] = {ACT_NAME_MAX, act_name_valid, "a DNS subdomain"},
        [PLACE] = {ACT_NAME_MAX, filled_valid, "a card's name, or host"},
        [PAIR_KEY] = {511, any_valid, ""},
        [HOOK] = {ITEM_HOOK_MAX, hook_valid, "the name of a file, or nothing"},
    };
    const char **const to[] = {
        [UID] = &pod->uid,           [NAMESPACE] = &pod->namespace,
        [NAME] = &pod->name,         [PLACE] = &pod->place,
        [PAIR_KEY] = &pod->pair_key, [HOOK] = &pod->hook};
    const char *text;
    if (!read_text(r, names[m], rules[m].max, &text))
        return false;
    if (!rules[m].valid(text))
        return refuse(r, names[m], "is \"%.80s\", must be %s", text,
                      rules[m].rule);
    *to[m] = text;
    return true;
}

static bool read_member(struct reading *r, enum member m, struct act_item *item)
{
    struct act_pod *pod = &item->pod;
    bool *const flags[MEMBERS] = {[HOST] = &pod->is_host,
                                  [HELD] = &pod->held,
                                  [STOP] = &item->stop,
                                  [KEEP] = &item->keep,
                                  [LATER] = &item->later};
    struct jtext raw;
    int64_t vfs = -1;
    if (flags[m])
        return read_flag(r, names[m], flags[m]);
    switch (m) {
    case SPEC:
        if (!read_raw(r, "spec", JKIND_OBJECT, ITEM_SPEC_MAX, &raw))
            return false;
        pod->spec = raw.data;
        pod->spec_size = raw.size;
        return true;
    case FILES:
        if (!read_raw(r, "files", JKIND_ARRAY, ITEM_FILES_MAX, &raw))
            return false;
        pod->files = raw.data;
        pod->files_size = raw.size;
        return true;
    case ENV:
        return read_env(r, &pod->env);
    case FAULT:
        return read_text(r, "fault", PODFEED_FAULT_MAX, &item->fault);
    case GRACE:
        return read_int(r, "grace", -1, ITEM_GRACE_MAX, &item->grace_s);
    case VFS:
        if (!read_int(r, "sriovVfs", -1, ITEM_VFS_MAX, &vfs))
            return false;
        pod->sriov_vfs = (int)vfs;
        return true;
    default:
        return read_word(r, m, pod);
    }
}

static enum member member_find(const struct reading *r, const struct jtext *key)
{
    unsigned n = r->strict ? MEMBERS_STRICT : MEMBERS;
    for (unsigned m = 0; m < n; m++)
        if (jtext_is(key, names[m]))
            return (enum member)m;
    return MEMBERS;
}

static bool read_item(struct reading *r, struct act_item *ret_item)
{
    struct act_item item = {
        .pod = {.namespace = "",
                .name = "",
                .uid = "",
                .place = "",
                .pair_key = "",
                .hook = "",
                .owner = "",
                .sriov_vfs = -1},
        .grace_s = -1,
    };
    unsigned seen = 0;
    struct jtext key;
    if (jscan_peek(r->s) != JKIND_OBJECT)
        return refuse(r, "item", "must be an object");
    (void)jscan_object(r->s); /* a fault ends the loop */
    while (jscan_member(r->s, &key)) {
        enum member m = member_find(r, &key);
        if (m == MEMBERS && r->strict)
            return refuse(r, "item", "member \"%.*s\" is not known",
                          (int)(key.size < 80 ? key.size : 80), key.data);
        if (m != MEMBERS && seen & 1u << m)
            return refuse(r, names[m], "is there twice");
        if (m == MEMBERS ? !jscan_skip(r->s) : !read_member(r, m, &item))
            return false;
        seen |= 1u << m;
    }
    const unsigned needed = 1u << UID | 1u << PLACE |
                            (item.later ? 0 : 1u << SPEC);
    for (unsigned m = 0; m < MEMBERS && !r->s->fault; m++)
        if (needed & ~seen & 1u << m)
            return refuse(r, names[m], "is missing");
    *ret_item = item;
    return !r->s->fault;
}

/* What the scanner found, unless we said more. */
static int reading_error(const struct reading *r)
{
    return r->failed ? -EINVAL : jscan_error(r->s, r->err);
}

int act_item_read(const char *json, size_t size, const char *namespace,
                  const char *name, struct arena *arena,
                  struct act_item *ret_item, struct error *err)
{
    struct jscan s;
    struct act_item item;
    struct reading r = {.s = &s, .arena = arena, .err = err, .strict = true};
    jscan_init(&s, json, size);
    if (!read_item(&r, &item) || !jscan_end(&s))
        return reading_error(&r);
    if (!act_namespace_valid(namespace) || !act_name_valid(name))
        return error_set(err, EINVAL, "\"%.63s/%.253s\" is no pod's name",
                         namespace, name);
    if (*item.pod.namespace && strcmp(item.pod.namespace, namespace) != 0)
        return error_set(err, EINVAL, "namespace: is \"%s\", the path has %s",
                         item.pod.namespace, namespace);
    if (*item.pod.name && strcmp(item.pod.name, name) != 0)
        return error_set(err, EINVAL, "name: is \"%s\", the path has %s",
                         item.pod.name, name);
    item.pod.namespace = arena_strndup(arena, namespace, strlen(namespace));
    item.pod.name = arena_strndup(arena, name, strlen(name));
    *ret_item = item;
    return 0;
}

/* --- answers ------------------------------------------------------------ */

static int uid_order(const void *a, const void *b)
{
    const struct act_item *const *x = a, *const *y = b;
    return strcmp((*x)->pod.uid, (*y)->pod.uid);
}

/* Two items of one pod would be wanted and ended in turn. */
static bool check_uids(struct reading *r, const struct act_answer *a)
{
    cleanup_free const struct act_item **sorted = xcalloc(a->n + 1,
                                                          sizeof *sorted);
    for (size_t i = 0; i < a->n; i++)
        sorted[i] = &a->items[i];
    qsort(sorted, a->n, sizeof *sorted, uid_order);
    for (size_t i = 1; i < a->n; i++)
        if (uid_order(&sorted[i - 1], &sorted[i]) == 0)
            return refuse(r, "items", "two have the uid %s",
                          sorted[i]->pod.uid);
    return true;
}

/* Of an item that is wrong somewhere: whose it is, and whether it ends. */
static bool read_rest(struct reading *r, const struct jtext *raw,
                      struct act_item *item)
{
    struct jscan s;
    struct jtext key, uid = {0};
    struct act_item rest = {.grace_s = -1, .fault = "?"};
    jscan_init(&s, raw->data, raw->size);
    if (jscan_peek(&s) != JKIND_OBJECT)
        return false;
    (void)jscan_object(&s); /* known to be sound */
    while (jscan_member(&s, &key)) {
        enum jkind kind = jscan_peek(&s);
        if (jtext_is(&key, "uid") && kind == JKIND_STRING && !uid.data)
            (void)jscan_string(&s, &uid);
        else if (jtext_is(&key, "stop") && kind == JKIND_TRUE)
            (void)jscan_bool(&s, &rest.stop);
        else
            (void)jscan_skip(&s);
    }
    if (!uid.data || uid.size > 63)
        return false;
    char *text = arena_alloc(r->arena, uid.size + 1);
    (void)jtext_decode(&uid, text);
    rest.pod.uid = text;
    *item = rest;
    return act_uid_valid(text);
}

/* The item in `raw`; false when not even its uid can be read. */
static bool read_one(struct reading *r, const struct jtext *raw, size_t index,
                     struct act_item *ret_item)
{
    struct jscan s;
    struct error err = {0};
    struct reading one = {.s = &s, .arena = r->arena, .err = &err};
    jscan_init(&s, raw->data, raw->size);
    (void)snprintf(one.path, sizeof one.path, "items[%zu].", index);
    if (read_item(&one, ret_item)) {
        if (*ret_item->pod.namespace && *ret_item->pod.name)
            return true;
        (void)refuse(&one, "name", "is missing, or the namespace is");
    }
    if (!one.failed)
        (void)jscan_error(&s, &err);
    if (!read_rest(r, raw, ret_item)) {
        *r->err = err;
        r->failed = true;
        jscan_fail(r->s, "refused", jscan_offset(r->s));
        return false;
    }
    ret_item->fault = arena_strndup(r->arena, err.text, strlen(err.text));
    return true;
}

static bool read_items(struct reading *r, struct act_answer *a)
{
    cleanup_free struct act_item *list = NULL;
    size_t n = 0, cap = 0;
    struct jtext raw;
    if (jscan_peek(r->s) != JKIND_ARRAY)
        return refuse(r, "items", "must be a list");
    (void)jscan_array(r->s); /* a fault ends the loop */
    while (jscan_element(r->s)) {
        if (n == ACT_PODS_MAX)
            return refuse(r, "items", "are over %d", ACT_PODS_MAX);
        list = xgrow(list, n, &cap, sizeof *list);
        if (!jscan_raw(r->s, &raw) || !read_one(r, &raw, n, &list[n]))
            return false;
        n++;
    }
    a->items = arena_alloc(r->arena, (n + 1) * sizeof *list);
    if (n)
        memcpy(a->items, list, n * sizeof *list);
    a->n = n;
    return !r->s->fault && check_uids(r, a);
}

static bool read_kept(struct reading *r, struct act_answer *a)
{
    if (jscan_peek(r->s) != JKIND_ARRAY)
        return refuse(r, "kept", "must be a list");
    a->kept = arena_alloc(r->arena, PODFEED_KEPT_MAX * sizeof *a->kept);
    a->has_kept = true;
    (void)jscan_array(r->s); /* a fault ends the loop */
    while (jscan_element(r->s)) {
        if (a->n_kept == PODFEED_KEPT_MAX)
            return refuse(r, "kept", "are over %d", PODFEED_KEPT_MAX);
        if (!read_text(r, "kept", ACT_UID_MAX, &a->kept[a->n_kept]))
            return false;
        a->n_kept++;
    }
    return !r->s->fault;
}

static bool read_answer(struct reading *r, struct act_answer *a)
{
    enum { VERSION = 1, RESEND = 2, ITEMS = 4, NEXT = 8, KEPT = 16 };
    unsigned seen = 0;
    struct jtext key;
    int64_t version = 0;
    if (!jscan_object(r->s))
        return false;
    while (jscan_member(r->s, &key)) {
        unsigned m = jtext_is(&key, "version")  ? VERSION
                     : jtext_is(&key, "resend") ? RESEND
                     : jtext_is(&key, "items")  ? ITEMS
                     : jtext_is(&key, "next")   ? NEXT
                     : jtext_is(&key, "kept")   ? KEPT
                                                : 0;
        bool ok = seen & m ? refuse(r, "answer", "a member is there twice")
                  : m == VERSION
                      ? read_int(r, "version", 0, (int64_t)1 << 53, &version)
                  : m == RESEND ? read_flag(r, "resend", &a->resend)
                  : m == ITEMS  ? read_items(r, a)
                  : m == NEXT   ? read_text(r, "next", 63, &a->next)
                  : m == KEPT   ? read_kept(r, a)
                                : jscan_skip(r->s);
        if (!ok)
            return false;
        seen |= m;
    }
    if (!r->s->fault && *a->next && !act_uid_valid(a->next))
        return refuse(r, "next", "is \"%.80s\", must be a uid", a->next);
    /* half of an answer must never look like one that wants nothing */
    if (!r->s->fault && (!(seen & VERSION) || !(seen & ITEMS)))
        return refuse(r, seen & VERSION ? "items" : "version", "is missing");
    a->version = (uint64_t)version;
    return jscan_end(r->s);
}

void act_answer_fini(struct act_answer *a)
{
    arena_fini(&a->arena);
    a->items = NULL;
    a->n = 0;
}

int act_answer_read(const char *json, size_t size,
                    struct act_answer *ret_answer, struct error *err)
{
    struct jscan s;
    struct act_answer a = {.next = ""};
    struct reading r = {.s = &s, .arena = &a.arena, .err = err};
    jscan_init(&s, json, size);
    if (!read_answer(&r, &a)) {
        int result = reading_error(&r);
        act_answer_fini(&a);
        return result;
    }
    *ret_answer = a;
    return 0;
}
