#include "tests/lib/router/keeprig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advertiser/act/card/labels.h"

struct kept keeprig_sandbox(const char *uid, uint32_t attempt)
{
    return (struct kept){.kind = KEPT_SANDBOX,
                         .remote = "card-0",
                         .namespace = "ns",
                         .name = uid,
                         .uid = uid,
                         .attempt = attempt,
                         .hash = 7,
                         .handler = "xpu",
                         .log_directory = "/var/log/pods/ns_p_u",
                         .allocation = "{}",
                         .container = "",
                         .image = "",
                         .log_path = ""};
}

struct kept keeprig_container(const char *uid, const char *sandbox_id,
                              const char *name, uint32_t attempt)
{
    struct kept k = {.kind = KEPT_CONTAINER,
                     .remote = "card-0",
                     .namespace = "ns",
                     .name = uid,
                     .uid = uid,
                     .attempt = attempt,
                     .hash = 7,
                     .handler = "",
                     .log_directory = "",
                     .allocation = "",
                     .container = name,
                     .image = "busybox",
                     .log_path = "/var/log/pods/ns_p_u/c/0.log",
                     .mounts = {"\0mounts", 7}};
    (void)snprintf(k.sandbox_id, sizeof k.sandbox_id, "%s", sandbox_id);
    return k;
}

void keeprig_id(unsigned n, char ret_id[KEPT_ID_MAX + 1])
{
    (void)snprintf(ret_id, KEPT_ID_MAX + 1, "%064x", n);
}

void keeprig_fini(struct keeprig *r)
{
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++)
        free(r->objects[i].kept);
    memset(r, 0, sizeof *r);
}

/* --- what is there -------------------------------------------------------- */

struct keeprig_object *keeprig_find(struct keeprig *r, const char *id)
{
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++)
        if (r->objects[i].there && strcmp(r->objects[i].id, id) == 0)
            return &r->objects[i];
    return NULL;
}

size_t keeprig_count(const struct keeprig *r, const char *uid)
{
    size_t n = 0;
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++)
        n += r->objects[i].there && strcmp(r->objects[i].uid, uid) == 0;
    return n;
}

void keeprig_remove(struct keeprig *r, const char *id)
{
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++) {
        struct keeprig_object *o = &r->objects[i];
        if (o->there && (strcmp(o->id, id) == 0 ||
                         (!o->sandbox && strcmp(o->sandbox_id, id) == 0)))
            o->there = false;
    }
}

static bool is_reserved(const struct keeprig *r, const struct kept *what)
{
    bool sandbox = what->kind == KEPT_SANDBOX;
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++) {
        const struct keeprig_object *o = &r->objects[i];
        if (o->there && o->sandbox == sandbox && o->attempt == what->attempt &&
            strcmp(o->uid, what->uid) == 0 &&
            (sandbox || strcmp(o->name, what->container) == 0))
            return true;
    }
    return false;
}

static struct keeprig_object *add(struct keeprig *r, const struct kept *what)
{
    cleanup_str struct str kept = STR_INIT(KEPT_SEALED_MAX);
    struct keeprig_object *o = r->objects;
    while (o->there)
        if (++o == r->objects + KEEPRIG_OBJECTS)
            abort();
    free(o->kept);
    *o = (struct keeprig_object){.there = true,
                                 .sandbox = what->kind == KEPT_SANDBOX,
                                 .attempt = what->attempt};
    keep_seal(r->keep, what, &kept);
    o->kept = str_steal(&kept);
    keeprig_id(++r->next_id, o->id);
    (void)snprintf(o->sandbox_id, sizeof o->sandbox_id, "%s", what->sandbox_id);
    (void)snprintf(o->uid, sizeof o->uid, "%s", what->uid);
    (void)snprintf(o->name, sizeof o->name, "%s",
                   o->sandbox ? what->name : what->container);
    return o;
}

static void list_some(struct keeprig *r, const char *uid, struct seen *seen)
{
    for (size_t i = 0; i < KEEPRIG_OBJECTS; i++) {
        const struct keeprig_object *o = &r->objects[i];
        const struct cri_pair label = {ACT_LABEL_UID, o->uid};
        struct found f = {.name = o->name,
                          .attempt = o->attempt,
                          .state = o->state,
                          .labels = {&label, 1},
                          .kept = o->kept};
        if (!o->there || (uid && strcmp(uid, o->uid) != 0))
            continue;
        (void)snprintf(f.id, sizeof f.id, "%s", o->id);
        (void)snprintf(f.sandbox_id, sizeof f.sandbox_id, "%s", o->sandbox_id);
        (void)seen_add(seen, &f, o->sandbox);
    }
}

void keeprig_list(struct keeprig *r, struct seen *ret_seen)
{
    *ret_seen = (struct seen){0};
    list_some(r, NULL, ret_seen);
    seen_sort(ret_seen);
}

struct keep_found keeprig_see(struct keeprig *r, struct keep *k)
{
    struct seen seen;
    struct keep_found found = {0};
    uint64_t mark = keep_mark(k);
    keeprig_list(r, &seen);
    for (size_t i = 0; i < seen.n; i++)
        seen.list[i].ours = true;
    if (keep_seen(k, r->name, mark, &seen, &found, NULL) < 0)
        abort();
    seen_fini(&seen);
    return found;
}

/* --- calls ---------------------------------------------------------------- */

static bool take(bool *once)
{
    bool was = *once;
    *once = false;
    return was;
}

static int send(void *ctx, char ret_id[KEPT_ID_MAX + 1], bool *ret_unmade,
                struct error *err)
{
    struct keeprig *r = ctx;
    r->n_sent++;
    if (r->away || take(&r->lose_request))
        return error_set(err, ETIMEDOUT, "no answer");
    if (take(&r->refuse)) {
        *ret_unmade = true;
        return error_set(err, EACCES, "refused");
    }
    if (is_reserved(r, &r->what))
        return error_set(err, EEXIST, "name is reserved");
    const struct keeprig_object *o = add(r, &r->what);
    if (take(&r->lose_reply))
        return error_set(err, ETIMEDOUT, "no answer");
    memcpy(ret_id, o->id, sizeof o->id);
    return 0;
}

static int look(void *ctx, const char *uid, struct seen *ret_seen,
                struct error *err)
{
    struct keeprig *r = ctx;
    r->n_looked++;
    if (r->away)
        return error_set(err, EHOSTDOWN, "away");
    list_some(r, uid, ret_seen);
    return 0;
}

static int remove_it(void *ctx, const char *id, bool sandbox, struct error *err)
{
    struct keeprig *r = ctx;
    (void)sandbox;
    r->n_removed++;
    if (r->away)
        return error_set(err, EHOSTDOWN, "away");
    keeprig_remove(r, id);
    return 0;
}

struct making_calls keeprig_calls(struct keeprig *r, struct keep *k,
                                  const struct kept *what)
{
    r->keep = k;
    r->what = *what;
    return (struct making_calls){
        .send = send, .look = look, .remove = remove_it, .ctx = r};
}
