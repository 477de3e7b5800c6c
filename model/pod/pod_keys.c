#include "model/pod/pod_keys.h"

#include <string.h>
#include <strings.h>

#include "lib/base/jrow.h"
#include "lib/base/mem.h"
#include "lib/base/nearest_word.h"
#include "lib/base/utf8.h"
#include "model/pod/pod.h"
#include "model/pod/prepare.h"

#define PREFIX "biga.dev/"
enum {
    PREFIX_SIZE = sizeof PREFIX - 1,
    KEY_MAX = 317,  /* of a qualified name in Kubernetes */
    SHOWN_MAX = 80, /* bytes of a wrong key that an error repeats */
    PATH_MAX_SIZE = 96,
};

/* --- which there are -------------------------------------------------------- */

/* What pod.c reads, and what others do. */
static const struct word others[] = {
    {PREPARE_VFS, WORD_ANNOTATION},
    {PREPARE_SFS, WORD_ANNOTATION},
    {PREPARE_HOOK, WORD_ANNOTATION},
    {WORD_ALLOCATION, WORD_ANNOTATION}, /* written by bind */
    {WORD_XPU_READY, WORD_GATE},        /* written by the leader */
    {WORD_PAIRED, WORD_GATE},
    {WORD_PLACE, WORD_SCHEDULING_GATE},
};

static bool is_ours(const char *key)
{
    return strncasecmp(key, PREFIX, PREFIX_SIZE) == 0;
}

bool pod_keys_get(size_t n, struct word *ret_word)
{
    enum {
        TEXTS = POD_INDEX_ANNOTATION + 1 - POD_ROLE,
        POD_WORDS = TEXTS + POD_GPUS
    };
    if (n < TEXTS) {
        enum pod_text t = (enum pod_text)(POD_ROLE + n);
        ret_word->key = pod_text_key(t);
        ret_word->place = t < POD_SIZE ? WORD_LABEL : WORD_ANNOTATION;
    } else if (n < POD_WORDS) {
        ret_word->key = pod_resource_key((enum pod_resource)(n - TEXTS));
        ret_word->place = WORD_RESOURCE;
    } else if (n < POD_WORDS + ARRAY_LEN(others)) {
        *ret_word = others[n - POD_WORDS];
    } else {
        return false;
    }
    return true;
}

/* --- what is to be said of a key -------------------------------------------- */

static const char *const place_names[WORD_PLACES] = {
    [WORD_LABEL] = "a label",
    [WORD_ANNOTATION] = "an annotation",
    [WORD_RESOURCE] = "a resource",
    [WORD_GATE] = "a readiness gate",
    [WORD_SCHEDULING_GATE] = "a scheduling gate",
};

/* The nearest word, those of the same place first. */
static bool guess(const char *key, enum word_place place, struct word *ret_word)
{
    struct word w;
    size_t least = NEAREST_WORD_NOT;
    bool near_place = false;
    for (size_t i = 0; pod_keys_get(i, &w); i++) {
        size_t d = is_ours(w.key) ? nearest_word_guess(key + PREFIX_SIZE,
                                                       w.key + PREFIX_SIZE)
                                  : NEAREST_WORD_NOT;
        bool here = w.place == place;
        if (d == NEAREST_WORD_NOT || d > least ||
            (d == least && near_place >= here))
            continue;
        least = d;
        near_place = here;
        *ret_word = w;
    }
    return least != NEAREST_WORD_NOT;
}

/* Where the key may stand; WORD_PLACES: nowhere. */
static enum word_place find(const char *key, enum word_place place)
{
    struct word w;
    enum word_place found = WORD_PLACES;
    for (size_t i = 0; pod_keys_get(i, &w) && found != place; i++)
        if (strcmp(w.key, key) == 0)
            found = w.place;
    return found;
}

static int check_key(const struct jtext *raw, const char *path,
                     enum word_place place, struct error *err)
{
    char key[KEY_MAX + 1] = "";
    struct word w = {0};
    size_t shown = raw->size < SHOWN_MAX ? raw->size : SHOWN_MAX;
    if (raw->size > KEY_MAX)
        memcpy(key, raw->data, KEY_MAX); /* its prefix says whose it is */
    else
        (void)jtext_decode(raw, key);
    if (!is_ours(key))
        return 0;
    enum word_place right = find(key, place);
    if (right == place)
        return 0;
    while (shown < raw->size && shown > 0 && utf8_inside(raw->data[shown]))
        shown--; /* not within a character */
    if (right != WORD_PLACES)
        (void)error_set(err, EDOM, "is %s, not %s", place_names[right],
                        place_names[place]);
    else if (!guess(key, place, &w))
        (void)error_set(err, EDOM,
                        "is no key of Biga; schema/pod.md has them all");
    else
        (void)error_set(err, EDOM, "is no key of Biga; did you mean %s%s%s?",
                        w.key, w.place == place ? "" : ", ",
                        w.place == place ? "" : place_names[w.place]);
    return error_wrap(err, "%s[\"%.*s%s\"]", path, (int)shown, raw->data,
                      shown < raw->size ? "…" : "");
}

/* --- finding the keys in a pod ---------------------------------------------- */

/* Values of another kind than expected are skipped: they have no keys. */
#define CALL(key, kind, check) JROW_CALL(key, JROW_LAX, kind, check)
#define WITHIN(key, rows) JROW_OBJECT(key, JROW_LAX, rows)

struct walk {
    struct error first;
    const char *list; /* "containers": which is being read */
    unsigned index;
};

static void check_map(struct jscan *s, const char *path, enum word_place place,
                      struct walk *walk)
{
    struct jtext key;
    (void)jscan_object(s); /* it is one */
    while (jscan_member(s, &key)) {
        if (!walk->first.code)
            (void)check_key(&key, path, place, &walk->first);
        (void)jscan_skip(s); /* a fault ends the loop */
    }
}

static void check_labels(struct jscan *s, void *walk)
{
    check_map(s, "metadata.labels", WORD_LABEL, walk);
}

static void check_annotations(struct jscan *s, void *walk)
{
    check_map(s, "metadata.annotations", WORD_ANNOTATION, walk);
}

static void check_amounts(struct jscan *s, const char *map, struct walk *walk)
{
    char path[PATH_MAX_SIZE];
    (void)snprintf(path, sizeof path, "spec.%s[%u].resources.%s", walk->list,
                   walk->index, map);
    check_map(s, path, WORD_RESOURCE, walk);
}

static void check_requests(struct jscan *s, void *walk)
{
    check_amounts(s, "requests", walk);
}

static void check_limits(struct jscan *s, void *walk)
{
    check_amounts(s, "limits", walk);
}

static const struct jrow resources_rows[] = {
    CALL("requests", JKIND_OBJECT, check_requests),
    CALL("limits", JKIND_OBJECT, check_limits),
    JROW_END,
};
static const struct jrow container_rows[] = {
    WITHIN("resources", resources_rows),
    JROW_END,
};

static void check_list(struct jscan *s, const char *list, struct walk *walk)
{
    walk->list = list;
    (void)jscan_array(s); /* it is one */
    for (walk->index = 0; jscan_element(s); walk->index++)
        (void)jrow_read(s, JROW_LAX, container_rows, walk);
}

static void check_containers(struct jscan *s, void *walk)
{
    check_list(s, "containers", walk);
}

static void check_init_containers(struct jscan *s, void *walk)
{
    check_list(s, "initContainers", walk);
}

static void check_gate(struct jscan *s, void *to)
{
    struct walk *walk = to;
    struct jtext condition;
    if (jscan_string(s, &condition) && !walk->first.code)
        (void)check_key(&condition, "spec.readinessGates", WORD_GATE,
                        &walk->first);
}

static void check_scheduling_gate(struct jscan *s, void *to)
{
    struct walk *walk = to;
    struct jtext name;
    if (jscan_string(s, &name) && !walk->first.code)
        (void)check_key(&name, "spec.schedulingGates", WORD_SCHEDULING_GATE,
                        &walk->first);
}

static const struct jrow metadata_rows[] = {
    CALL("labels", JKIND_OBJECT, check_labels),
    CALL("annotations", JKIND_OBJECT, check_annotations),
    JROW_END,
};
static const struct jrow gate_rows[] = {
    CALL("conditionType", JKIND_STRING, check_gate),
    JROW_END,
};
static const struct jrow scheduling_rows[] = {
    CALL("name", JKIND_STRING, check_scheduling_gate),
    JROW_END,
};
static const struct jrow spec_rows[] = {
    CALL("containers", JKIND_ARRAY, check_containers),
    CALL("initContainers", JKIND_ARRAY, check_init_containers),
    JROW_OBJECTS("readinessGates", JROW_LAX, gate_rows),
    JROW_OBJECTS("schedulingGates", JROW_LAX, scheduling_rows),
    JROW_END,
};
static const struct jrow pod_rows[] = {
    WITHIN("metadata", metadata_rows),
    WITHIN("spec", spec_rows),
    JROW_END,
};

int pod_keys_check(struct jscan *s, struct error *err)
{
    struct walk walk = {0};
    (void)jrow_read(s, JROW_LAX, pod_rows, &walk); /* a fault sticks */
    if (s->fault)
        return jscan_error(s, err);
    if (walk.first.code)
        return error_set(err, EDOM, "%s", walk.first.text);
    return 0;
}
