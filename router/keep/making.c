#include "router/keep/making.h"

#include <string.h>

#include "lib/io/failpoint.h"

enum { ROUNDS = 3 }; /* until a name is given up that is said to be taken */

struct making {
    struct keep *k;
    const struct kept *what;
    const struct making_calls *calls;
    bool told; /* its id was, or may have been: it may have run */
    char *ret_id;
};

/* What to do next; below 0: an error. */
enum next { NEXT_SEND, NEXT_AGAIN, NEXT_DONE };

/* Who dies, dies here; "fail" is an error of the step. */
static int point(const char *name, struct error *err)
{
    return failpoint(name) ? error_set(err, EIO, "%s: a failpoint", name) : 0;
}

/* --- what is there -------------------------------------------------------- */

/* By its labels and its own name, which a runtime reserves; its annotation is
 * only needed to adopt it. */
static bool has_key(const struct making *m, const struct seen_item *item)
{
    const struct kept *what = m->what;
    bool sandbox = what->kind == KEPT_SANDBOX;
    return item->sandbox == sandbox && item->attempt == what->attempt &&
           strcmp(item->uid, what->uid) == 0 &&
           (sandbox || strcmp(item->name, what->container) == 0);
}

/* What was sealed into it when it was made, if that is the same call; the
 * caller owns it. */
static struct kept *same_call(const struct making *m,
                              const struct seen_item *item)
{
    cleanup_with(kept) struct kept *said = keep_unseal(m->k, item->kept);
    bool same = said && said->kind == m->what->kind &&
                said->hash == m->what->hash &&
                said->attempt == m->what->attempt &&
                strcmp(said->uid, m->what->uid) == 0 &&
                strcmp(said->container, m->what->container) == 0 &&
                strcmp(said->remote, m->what->remote) == 0 &&
                strcmp(said->sandbox_id, m->what->sandbox_id) == 0 &&
                strcmp(item->sandbox_id, m->what->sandbox_id) == 0;
    return same ? steal(&said) : NULL;
}

static bool is_ready(const struct seen_item *item)
{
    return item->state == (item->sandbox ? 0 : CRI_CREATED);
}

static bool runs(const struct making *m, const struct seen *seen,
                 const struct seen_item *item)
{
    if (!item->sandbox)
        return item->state == CRI_RUNNING ||
               (m->told && item->state != CRI_CREATED);
    for (size_t i = 0; i < seen->n; i++)
        if (!seen->list[i].sandbox && seen->list[i].state == CRI_RUNNING &&
            strcmp(seen->list[i].sandbox_id, item->id) == 0)
            return true;
    return false;
}

static int note(const struct making *m, const struct kept *what, const char *id,
                struct error *err)
{
    int e = m->calls->judge ? m->calls->judge(m->calls->ctx, id, err) : 0;
    if (e == 0)
        e = point("cri-before-record", err);
    if (e == 0)
        e = keep_made(m->k, what, id, err);
    if (e < 0)
        return e;
    (void)snprintf(m->ret_id, KEPT_ID_MAX + 1, "%s", id);
    return point("cri-after-record", err);
}

static int take_away(const struct making *m, const struct seen_item *item,
                     struct error *err)
{
    int e = point("cri-before-remove", err);
    if (e == 0)
        e = m->calls->remove(m->calls->ctx, item->id, item->sandbox, err);
    if (e == 0)
        e = point("cri-after-remove", err);
    return e;
}

/* --- settled by what is there ---------------------------------------------- */

/* The first that is the same call and has not run; -EEXIST: another runs. */
static int find_same(const struct making *m, const struct seen *seen,
                     const struct seen_item **ret_item, struct kept **ret_said,
                     struct error *err)
{
    for (size_t i = 0; i < seen->n; i++) {
        const struct seen_item *item = &seen->list[i];
        if (!has_key(m, item))
            continue;
        if (!*ret_item && is_ready(item) &&
            (*ret_said = same_call(m, item)) != NULL)
            *ret_item = item;
        else if (runs(m, seen, item))
            return error_set(err, EEXIST,
                             "%s: name is reserved for \"%.64s\", which runs "
                             "or has run",
                             m->what->remote, item->id);
    }
    return 0;
}

static int settle(const struct making *m, const struct seen *seen,
                  struct error *err)
{
    const struct seen_item *same = NULL;
    cleanup_with(kept) struct kept *said = NULL;
    int e = find_same(m, seen, &same, &said, err);
    for (size_t i = 0; i < seen->n && e == 0; i++)
        if (has_key(m, &seen->list[i]) && &seen->list[i] != same)
            e = take_away(m, &seen->list[i], err);
    if (e < 0)
        return e;
    if (!same)
        return NEXT_SEND;
    /* an annotation that was too long lacks the mounts */
    bool whole = said->kind == KEPT_SANDBOX || said->mounts.size;
    e = note(m, whole ? said : m->what, same->id, err);
    return e < 0 ? e : NEXT_DONE;
}

static int look(const struct making *m, struct error *err)
{
    struct seen seen = {0};
    int e = point("cri-before-look", err);
    if (e == 0)
        e = m->calls->look(m->calls->ctx, m->what->uid, &seen, err);
    if (e == 0)
        e = point("cri-after-look", err);
    if (e == 0) {
        seen_sort(&seen);
        e = settle(m, &seen, err);
    }
    seen_fini(&seen);
    return e;
}

/* --- the call ------------------------------------------------------------- */

struct sent {
    bool unmade;   /* nothing was made, and nothing will be */
    bool reserved; /* the name, says the remote */
};

static int send(const struct making *m, struct sent *ret_sent,
                struct error *err)
{
    char id[KEPT_ID_MAX + 1] = "";
    int e = point("cri-before-send", err);
    ret_sent->unmade = e < 0;
    if (e < 0)
        return e;
    e = m->calls->send(m->calls->ctx, id, &ret_sent->unmade, err);
    ret_sent->reserved = e == -EEXIST;
    if (e == 0)
        e = point("cri-after-send", err);
    if (e == 0)
        e = note(m, m->what, id, err);
    return e < 0 ? e : NEXT_DONE;
}

/* One that was made, and is not what is asked for, is not there any more. */
static int forget_other(const struct making *m, const struct kept *was,
                        struct error *err)
{
    int e = keep_forget(m->k, was->id, err);
    return e < 0 ? e : NEXT_AGAIN;
}

static int end_unclear(const struct making *m, int e)
{
    keep_unclear(m->k, m->what);
    return e;
}

/* The call is ours, and nothing of its key is there. */
static int send_it(const struct making *m, struct error *err)
{
    struct sent sent = {0};
    int e = send(m, &sent, err);
    if (e == NEXT_DONE)
        return e;
    if (sent.reserved) /* the next round looks for it */
        return end_unclear(m, NEXT_AGAIN);
    /* what was wrong with the call is told, not what is wrong with this */
    if (sent.unmade && keep_refused(m->k, m->what, NULL) == 0)
        return e;
    return end_unclear(m, e);
}

static int one_round(struct making *m, struct error *err)
{
    enum keep_answer answer = KEEP_SEND;
    cleanup_with(kept) struct kept *was = NULL;
    int e = point("cri-before-announce", err);
    if (e == 0)
        e = keep_announce(m->k, m->what, &answer, &was, err);
    if (e < 0)
        return e;
    e = point("cri-after-announce", err);
    if (e < 0)
        return end_unclear(m, e);
    if (answer == KEEP_SEND)
        return send_it(m, err);
    m->told = answer == KEEP_THERE;
    e = look(m, err);
    if (e < 0)
        return end_unclear(m, e);
    if (e == NEXT_DONE)
        return e;
    return was ? forget_other(m, was, err) : send_it(m, err);
}

int making_run(struct keep *k, const struct kept *what,
               const struct making_calls *calls, char ret_id[KEPT_ID_MAX + 1],
               struct error *err)
{
    struct making m = {.k = k, .what = what, .calls = calls, .ret_id = ret_id};
    for (int i = 0; i < ROUNDS; i++) {
        int e = one_round(&m, err);
        if (e != NEXT_AGAIN)
            return e == NEXT_DONE ? 0 : e;
    }
    return error_set(err, EBUSY,
                     "%s: says that the name is reserved, and lists nothing "
                     "of it: it may still be making it",
                     what->remote);
}
