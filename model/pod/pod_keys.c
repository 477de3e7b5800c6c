#include "model/pod/pod_keys.h"

#include <string.h>
#include <strings.h>

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
    {PREPARE_VFS, WORD_ANNOTATION},     {PREPARE_HOOK, WORD_ANNOTATION},
    {WORD_ALLOCATION, WORD_ANNOTATION}, /* written by bind */
    {WORD_XPU_READY, WORD_GATE},        /* written by the leader */
    {WORD_PAIRED, WORD_GATE},
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

/* What is not of the expected kind has no keys. */
static bool enter_object(struct jscan *s)
{
    if (jscan_peek(s) == JKIND_OBJECT)
        return jscan_object(s);
    (void)jscan_skip(s); /* a fault sticks */
    return false;
}

static void check_map(struct jscan *s, const char *path, enum word_place place,
                      struct error *first)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (!first->code)
            (void)check_key(&key, path, place, first);
        (void)jscan_skip(s); /* a fault ends the loop */
    }
}

static void check_metadata(struct jscan *s, struct error *first)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "labels"))
            check_map(s, "metadata.labels", WORD_LABEL, first);
        else if (jtext_is(&key, "annotations"))
            check_map(s, "metadata.annotations", WORD_ANNOTATION, first);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

/* `path` is that of the resources: "spec.containers[0].resources". */
static void check_resources(struct jscan *s, const char *path,
                            struct error *first)
{
    static const char *const maps[] = {"requests", "limits"};
    struct jtext key;
    char at[PATH_MAX_SIZE];
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        size_t m = 0;
        while (m < ARRAY_LEN(maps) && !jtext_is(&key, maps[m]))
            m++;
        if (m == ARRAY_LEN(maps)) {
            (void)jscan_skip(s); /* a fault ends the loop */
            continue;
        }
        (void)snprintf(at, sizeof at, "%s.%s", path, maps[m]);
        check_map(s, at, WORD_RESOURCE, first);
    }
}

static void check_containers(struct jscan *s, const char *list,
                             struct error *first)
{
    char path[PATH_MAX_SIZE];
    struct jtext key;
    if (jscan_peek(s) != JKIND_ARRAY) {
        (void)jscan_skip(s); /* a fault sticks */
        return;
    }
    (void)jscan_array(s); /* it is one */
    for (unsigned i = 0; jscan_element(s); i++) {
        (void)snprintf(path, sizeof path, "spec.%s[%u].resources", list, i);
        if (!enter_object(s))
            continue;
        while (jscan_member(s, &key))
            if (jtext_is(&key, "resources"))
                check_resources(s, path, first);
            else
                (void)jscan_skip(s); /* a fault ends the loop */
    }
}

static void check_gate(struct jscan *s, struct error *first)
{
    struct jtext key, condition;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key))
        if (!jtext_is(&key, "conditionType") || jscan_peek(s) != JKIND_STRING)
            (void)jscan_skip(s); /* a fault ends the loop */
        else if (jscan_string(s, &condition) && !first->code)
            (void)check_key(&condition, "spec.readinessGates", WORD_GATE,
                            first);
}

static void check_gates(struct jscan *s, struct error *first)
{
    if (jscan_peek(s) != JKIND_ARRAY) {
        (void)jscan_skip(s); /* a fault sticks */
        return;
    }
    (void)jscan_array(s); /* it is one */
    while (jscan_element(s))
        check_gate(s, first);
}

static void check_spec(struct jscan *s, struct error *first)
{
    struct jtext key;
    if (!enter_object(s))
        return;
    while (jscan_member(s, &key)) {
        if (jtext_is(&key, "containers"))
            check_containers(s, "containers", first);
        else if (jtext_is(&key, "initContainers"))
            check_containers(s, "initContainers", first);
        else if (jtext_is(&key, "readinessGates"))
            check_gates(s, first);
        else
            (void)jscan_skip(s); /* a fault ends the loop */
    }
}

int pod_keys_check(struct jscan *s, struct error *err)
{
    struct error first = {0};
    struct jtext key;
    if (enter_object(s))
        while (jscan_member(s, &key)) {
            if (jtext_is(&key, "metadata"))
                check_metadata(s, &first);
            else if (jtext_is(&key, "spec"))
                check_spec(s, &first);
            else
                (void)jscan_skip(s); /* a fault ends the loop */
        }
    if (s->fault)
        return jscan_error(s, err);
    if (first.code)
        return error_set(err, EDOM, "%s", first.text);
    return 0;
}
