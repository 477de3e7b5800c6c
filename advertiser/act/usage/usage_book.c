#include "advertiser/act/usage/usage_book.h"

#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"
#include "lib/base/mem.h"

enum {
    MIB = 1 << 20,
    TENTH = 10,
    /* millicores or MiB of a container: more is a runtime's fault.  All that it
     * may list together are fewer than an extender takes */
    MOST = 1 << 27,
};

void usage_book_fini(struct usage_book *b)
{
    free(b->pods);
    free(b->samples);
    *b = (struct usage_book){0};
}

/* --- samples --------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct usage_sample *x = a, *y = b;
    return strcmp(x->id, y->id);
}

/* Millicores since the look before; false: they are not known. */
static bool cores_of(const struct usage_book *b, const struct cri_usage *u,
                     uint64_t *ret_millicores)
{
    struct usage_sample key = {0};
    memcpy(key.id, u->id, sizeof key.id);
    const struct usage_sample *before =
        b->n_samples
            ? bsearch(&key, b->samples, b->n_samples, sizeof key, by_id)
            : NULL;
    if (!before || u->at_ns <= before->at_ns || u->cpu_ns < before->cpu_ns)
        return false;
    uint64_t ns = (uint64_t)u->at_ns - (uint64_t)before->at_ns;
    double millicores =
        (double)(u->cpu_ns - before->cpu_ns) / (double)ns * 1000 + 0.5;
    *ret_millicores = millicores < MOST ? (uint64_t)millicores : MOST;
    return true;
}

/* Some runtimes look no more often than they like: what has no news keeps its
 * sample. */
static void keep_samples(struct usage_book *b, const struct cri_usages *now)
{
    struct usage_sample *list = xcalloc(now->n + 1, sizeof *list);
    for (size_t i = 0; i < now->n; i++) {
        const struct cri_usage *u = &now->list[i];
        memcpy(list[i].id, u->id, sizeof list[i].id);
        list[i].cpu_ns = u->cpu_ns;
        list[i].at_ns = u->at_ns;
    }
    qsort(list, now->n, sizeof *list, by_id);
    free(b->samples);
    b->samples = list;
    b->n_samples = now->n;
}

/* --- pods ------------------------------------------------------------------ */

/* Where it stands, or is to stand. */
static size_t place_of(const struct usage_book *b, const char *uid)
{
    size_t low = 0, high = b->n_pods;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(b->pods[middle].uid, uid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct usage_pod *pod_of(struct usage_book *b, const char *uid)
{
    size_t at = place_of(b, uid);
    if (at < b->n_pods && strcmp(b->pods[at].uid, uid) == 0)
        return &b->pods[at];
    b->pods = xgrow(b->pods, b->n_pods, &b->cap_pods, sizeof *b->pods);
    memmove(&b->pods[at + 1], &b->pods[at],
            (b->n_pods++ - at) * sizeof *b->pods);
    b->pods[at] = (struct usage_pod){0};
    (void)snprintf(b->pods[at].uid, sizeof b->pods[at].uid, "%s", uid);
    return &b->pods[at];
}

static void begin(struct usage_pod *p)
{
    p->seen = p->known = false;
    p->cpu_millicores = p->memory = 0;
}

static void add(struct usage_pod *p, const struct cri_usage *u, bool known,
                uint64_t millicores)
{
    p->seen = true;
    p->known |= known;
    p->cpu_millicores += millicores;
    p->memory += u->memory / MIB < MOST ? u->memory : (uint64_t)MOST * MIB;
}

static bool differs(uint64_t a, uint64_t b, uint64_t least)
{
    uint64_t more = a > b ? a : b, by = more - (a > b ? b : a);
    return by >= least && by >= more / TENTH;
}

static bool is_new(const struct usage_now *shown, uint64_t millicores,
                   uint64_t mib)
{
    return !shown->known ||
           differs(shown->cpu_millicores, millicores, USAGE_CORES_LEAST) ||
           differs(shown->memory_mib, mib, USAGE_MEMORY_LEAST);
}

/* True when it is to be told. */
static bool show(struct usage_pod *p, struct usage_time time, uint64_t version)
{
    struct usage_now *s = &p->shown;
    uint64_t mib = (p->memory + MIB / 2) / MIB;
    if (!p->known)
        return false;
    if (is_new(s, p->cpu_millicores, mib))
        *s = (struct usage_now){.cpu_millicores = p->cpu_millicores,
                                .memory_mib = mib,
                                .at_s = time.wall_s,
                                .known = true};
    else if (time.ms - s->told_ms < USAGE_AGAIN_MS)
        return false;
    s->told_ms = time.ms;
    s->version = version;
    return true;
}

static bool hide(struct usage_pod *p, struct usage_time time, uint64_t version)
{
    if (!p->shown.known)
        return false;
    p->shown = (struct usage_now){.told_ms = time.ms, .version = version};
    return true;
}

bool usage_book_take(struct usage_book *b, const struct cri_usages *now,
                     struct usage_time time, uint64_t version)
{
    size_t n = 0;
    begin(&b->all);
    for (size_t i = 0; i < b->n_pods; i++)
        begin(&b->pods[i]);
    b->all.known = b->looked; /* of nothing, too */
    b->looked = true;
    for (size_t i = 0; i < now->n; i++) {
        const struct cri_usage *u = &now->list[i];
        const char *uid = label_find(u->labels, u->n_labels, ACT_LABEL_UID);
        uint64_t millicores = 0;
        bool known = cores_of(b, u, &millicores);
        add(&b->all, u, known, millicores);
        if (*uid && strlen(uid) <= ACT_UID_MAX)
            add(pod_of(b, uid), u, known, millicores);
    }
    keep_samples(b, now);
    bool changed = show(&b->all, time, version + 1);
    for (size_t i = 0; i < b->n_pods; i++) {
        if (!b->pods[i].seen)
            continue; /* it is gone */
        changed |= show(&b->pods[i], time, version + 1);
        b->pods[n++] = b->pods[i];
    }
    b->n_pods = n;
    return changed;
}

/* The samples stay: what was used meanwhile is known in the end. */
bool usage_book_lose(struct usage_book *b, struct usage_time time,
                     uint64_t version)
{
    bool changed = hide(&b->all, time, version + 1);
    for (size_t i = 0; i < b->n_pods; i++)
        changed |= hide(&b->pods[i], time, version + 1);
    return changed;
}

const struct usage_now *usage_book_find(const struct usage_book *b,
                                        const char *uid)
{
    size_t at = place_of(b, uid);
    return at < b->n_pods && strcmp(b->pods[at].uid, uid) == 0 &&
                   b->pods[at].shown.version
               ? &b->pods[at].shown
               : NULL;
}
