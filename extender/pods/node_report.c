#include "extender/pods/node_report.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/utf8.h"

enum { TEXT_MAX = 65536 }; /* of what is cut */

const char *place_health_name(enum place_health health)
{
    static const char *const names[PLACE_HEALTHS] = {"ready", "suspect", "lost",
                                                     "drained"};
    return (unsigned)health < PLACE_HEALTHS ? names[health] : "?";
}

void node_report_destroy(struct node_report *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_pods; i++)
        pod_status_unref(s->pods[i].status);
    free(s->pods);
    free(s);
}

/* Into `to` of `cap` bytes, cut between characters; NULL is "". */
static void keep(const char *text, char *to, size_t cap)
{
    size_t size = text ? strlen(text) : 0;
    if (size >= cap) {
        size = cap - 1;
        while (size > 0 && utf8_inside(text[size]))
            size--;
    }
    if (size > 0)
        memcpy(to, text, size);
    to[size] = '\0';
}

/* A short text that must be whole. */
static void read_whole(struct reader *r, const char *name, char *to, size_t cap)
{
    const char *text = reader_string(r, name, cap - 1);
    if (text && !*text)
        (void)reader_fail(r, name, "must not be empty");
    keep(text, to, cap);
}

static void read_cut(struct reader *r, const char *name, char *to, size_t cap)
{
    keep(reader_opt_string(r, name, TEXT_MAX), to, cap);
}

/* The index of a word among `n`, or `n` and an error. */
static unsigned read_word(struct reader *r, const char *name,
                          const char *(*word_of)(unsigned index), unsigned n)
{
    const char *word = reader_string(r, name, 64);
    unsigned i = 0;
    while (word && i < n && strcmp(word, word_of(i)) != 0)
        i++;
    if (word && i == n) {
        cleanup_str struct str all = STR_INIT(1024);
        for (unsigned k = 0; k < n; k++)
            str_addf(&all, "%s%s", k ? ", " : "", word_of(k));
        (void)reader_fail(r, name, "is \"%s\", must be one of %s", word,
                          str_text(&all));
    }
    return word && i < n ? i : 0;
}

/* The member "usage"; none: not known. */
static int read_used(struct reader *of, struct used *used)
{
    struct reader r;
    char path[READER_PATH_MAX];
    const cJSON *usage = reader_opt_object(of, "usage");
    if (!usage)
        return 0;
    reader_path(of, "usage", -1, path);
    reader_init(&r, usage, path, of->err);
    used->cpu_milli = reader_int(&r, "cpuMillicores", 0, USED_MAX);
    used->memory_mib = reader_int(&r, "memoryMib", 0, USED_MAX);
    const char *at = reader_opt_string(&r, "at", sizeof used->at - 1);
    keep(at, used->at, sizeof used->at);
    used->known = !r.failed;
    return reader_finish_lenient(&r);
}

/* --- pods --------------------------------------------------------------- */

/* A node knows nothing of pods that have no place. */
static const char *told_state(unsigned index)
{
    return pod_state_name((enum pod_state)(index + POD_STATE_WANTED));
}

static int read_container(const cJSON *json, const char *path,
                          struct pod_container *c, struct error *err)
{
    struct reader r;
    reader_init(&r, json, path, err);
    read_whole(&r, "name", c->name, sizeof c->name);
    read_whole(&r, "state", c->state, sizeof c->state);
    c->exit_code = (int32_t)reader_opt_int(&r, "exitCode", INT32_MIN, INT32_MAX,
                                           0);
    c->restarts = (uint32_t)reader_opt_int(&r, "restarts", 0, UINT32_MAX, 0);
    read_cut(&r, "reason", c->reason, sizeof c->reason);
    return reader_finish_lenient(&r);
}

static int read_containers(struct reader *r, const cJSON *list,
                           struct pod_status *status)
{
    int i = 0, e = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        char path[READER_PATH_MAX];
        reader_path(r, "containers", i, path);
        e = read_container(item, path, &status->containers[i++], r->err);
        if (e < 0)
            return e;
    }
    return 0;
}

static int read_pod(const cJSON *json, const char *path,
                    struct node_report_pod *pod, struct error *err)
{
    struct reader r;
    reader_init(&r, json, path, err);
    read_whole(&r, "uid", pod->uid, sizeof pod->uid);
    const cJSON *list = reader_opt_array(&r, "containers",
                                         APPLIED_CONTAINERS_MAX);
    struct pod_status *s = pod_status_create((size_t)cJSON_GetArraySize(list));
    pod->status = s;
    s->state = (enum pod_state)(
        read_word(&r, "state", told_state, POD_STATES - POD_STATE_WANTED) +
        POD_STATE_WANTED);
    s->ready = reader_opt_bool(&r, "ready", false);
    const cJSON *ran = cJSON_GetObjectItemCaseSensitive(json, "ran");
    if (reader_opt_bool(&r, "ran", false))
        s->ran = APPLIED_RAN_ONCE;
    else if (ran && !cJSON_IsNull(ran))
        s->ran = APPLIED_RAN_NEVER;
    s->attempt = (uint32_t)reader_opt_int(&r, "attempt", 0, UINT32_MAX, 0);
    read_cut(&r, "reason", s->reason, sizeof s->reason);
    read_cut(&r, "message", s->message, sizeof s->message);
    read_cut(&r, "address", s->address, sizeof s->address);
    int e = read_used(&r, &pod->used);
    if (e == 0)
        e = reader_finish_lenient(&r);
    return e == 0 ? read_containers(&r, list, s) : e;
}

static int compare_uids(const void *a, const void *b)
{
    return strcmp(((const struct node_report_pod *)a)->uid,
                  ((const struct node_report_pod *)b)->uid);
}

static int read_pods(const cJSON *list, struct node_report *s,
                     struct error *err)
{
    const cJSON *item;
    s->pods = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *s->pods);
    cJSON_ArrayForEach(item, list)
    {
        char path[32];
        (void)snprintf(path, sizeof path, "pods[%zu]", s->n_pods);
        int e = read_pod(item, path, &s->pods[s->n_pods++], err);
        if (e < 0)
            return e;
    }
    qsort(s->pods, s->n_pods, sizeof *s->pods, compare_uids);
    for (size_t i = 1; i < s->n_pods; i++)
        if (strcmp(s->pods[i - 1].uid, s->pods[i].uid) == 0)
            return error_set(err, EINVAL, "pods: uid \"%s\" is there twice",
                             s->pods[i].uid);
    return 0;
}

/* --- places ------------------------------------------------------------- */

static const char *health_word(unsigned index)
{
    return place_health_name((enum place_health)index);
}

static int read_places(const cJSON *list, struct node_report *s,
                       struct error *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        struct reader r;
        char path[32];
        struct place_told *p = &s->places[s->n_places];
        struct used *used = &s->used[s->n_places];
        (void)snprintf(path, sizeof path, "places[%zu]", s->n_places++);
        reader_init(&r, item, path, err);
        read_whole(&r, "name", p->name, sizeof p->name);
        p->health = (enum place_health)read_word(&r, "health", health_word,
                                                 PLACE_HEALTHS);
        read_cut(&r, "reason", p->reason, sizeof p->reason);
        read_cut(&r, "runtime", p->runtime, sizeof p->runtime);
        int e = read_used(&r, used);
        if (e == 0)
            e = reader_finish_lenient(&r);
        if (e < 0)
            return e;
    }
    return 0;
}

int node_report_parse(const char *json, size_t size,
                      struct node_report **ret_status, struct error *err)
{
    cleanup_with(node_report) struct node_report *s = xcalloc(1, sizeof *s);
    cleanup_with(json) cJSON *object = NULL;
    struct reader r;
    int e = json_parse(json, size, &object, err);
    if (e < 0)
        return e;
    reader_init(&r, object, "", err);
    read_cut(&r, "boot", s->boot, sizeof s->boot);
    s->whole = reader_opt_bool(&r, "whole", false);
    const cJSON *pods = reader_array(&r, "pods", NODE_REPORT_PODS_MAX);
    const cJSON *places = reader_opt_array(&r, "places",
                                           NODE_REPORT_PLACES_MAX);
    e = reader_finish_lenient(&r);
    if (e == 0)
        e = read_pods(pods, s, err);
    if (e == 0)
        e = read_places(places, s, err);
    if (e == 0)
        *ret_status = steal(&s);
    return e;
}
