#include "advertiser/act/api/feed_private.h"

#include <string.h>

#include "advertiser/act/api/status_json.h"
#include "lib/base/jwrite.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum {
    PART_PODS = 256, /* of one status; more go into the next */
    BODY_MAX = 4 << 20,
    ANSWER_MAX = 64 << 10,
};

/* What the extender was told last. */
struct node_reports {
    uint64_t version;  /* of pods */
    uint64_t used;     /* of what they use */
    struct str places; /* as JSON */
    struct refusal *refusals;
    size_t n_refusals;
};

/* What is to be told now. */
struct news {
    bool resend, refusals_new;
};

static void add_refusal(const struct refusal *r, struct str *out)
{
    jwrite_object(out, NULL);
    jwrite_text(out, "uid", r->uid);
    jwrite_text(out, "state", r->state);
    jwrite_bool(out, "ready", false);
    jwrite_text(out, "reason", r->reason);
    jwrite_text(out, "message", r->message);
    str_add(out, ",\"attempt\":0,\"address\":\"\",\"containers\":[]}");
}

static void add_places(const struct feed *f, struct str *out)
{
    struct act_place_status list[ACT_PLACES_MAX];
    size_t n = actuator_places(f->a, list);
    jwrite_array(out, NULL);
    for (size_t i = 0; i < n; i++) {
        struct usage_now used;
        bool known = usage_find(f->config.usage, list[i].name, NULL, &used);
        status_json_place_report(&list[i], known ? &used : NULL, out);
    }
    jwrite_end_array(out);
}

/* `whole`: with this it has told of all there are. */
static int post(struct feed *f, const struct str *pods,
                const struct str *places, bool whole, struct error *err)
{
    struct http_answer a = {.body = STR_INIT(ANSWER_MAX)};
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    cleanup_free char *path = xasprintf("/v1/nodes/%s/status", f->config.node);
    jwrite_object(&body, NULL);
    jwrite_text(&body, "boot", f->config.boot_id);
    jwrite_array(&body, "pods");
    str_add_n(&body, str_text(pods), pods->size);
    jwrite_end_array(&body);
    jwrite_key(&body, "places");
    str_add_n(&body, str_text(places), places->size);
    str_add(&body, whole ? ",\"whole\":true}" : "}");
    int r = http_call(f->tell.http, "POST", path, str_text(&body), body.size,
                      NULL, &a, err);
    if (r == 0)
        r = feed_line_status(&f->tell, &a, 204, err);
    str_fini(&a.body);
    return r;
}

/* A status that grows until it is posted. */
struct part {
    struct str pods;
    size_t n;
};

static int part_post(struct feed *f, struct part *p, const struct str *places,
                     bool whole, struct error *err)
{
    int r = post(f, &p->pods, places, whole, err);
    str_reset(&p->pods);
    p->n = 0;
    return r;
}

/* It was refused, but it is there by now, or was before: that counts. */
static bool is_here(const struct act_pod_status *pods, size_t n,
                    const char *uid)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pods[i].uid, uid) == 0)
            return true;
    return false;
}

/* Pods that have changed since they were told last, or all that there are, and
 * those that are not here; the places with each part.  Nothing is posted when
 * nothing is new. */
static int tell_parts(struct feed *f, bool all, const struct node_reports *told,
                      const struct str *places, bool places_new,
                      struct error *err)
{
    cleanup_free struct act_pod_status *pods = NULL;
    struct part part = {.pods = STR_INIT(BODY_MAX)};
    size_t n = actuator_list(f->a, &pods);
    int r = 0;
    for (size_t i = 0; i < told->n_refusals && r == 0; i++) {
        if (is_here(pods, n, told->refusals[i].uid))
            continue;
        add_refusal(&told->refusals[i], &part.pods);
        if (++part.n == PART_PODS)
            r = part_post(f, &part, places, false, err);
    }
    for (size_t i = 0; i < n && r == 0; i++) {
        struct usage_now used;
        bool known = usage_find(f->config.usage, pods[i].place, pods[i].uid,
                                &used);
        if (strcmp(pods[i].owner, FEED_OWNER) != 0 ||
            (pods[i].version <= (all ? 0 : told->version) &&
             used.version <= (all ? 0 : told->used)))
            continue;
        status_json_pod_report(&pods[i], known ? &used : NULL, &part.pods);
        if (++part.n == PART_PODS)
            r = part_post(f, &part, places, false, err);
    }
    if (r == 0 && (part.n || places_new))
        r = part_post(f, &part, places, all, err);
    str_fini(&part.pods);
    return r;
}

static void take_refusals(struct feed *f, struct node_reports *told)
{
    hold_lock(&f->lock);
    free(told->refusals);
    told->n_refusals = f->n_refusals;
    told->refusals = xcalloc(f->n_refusals + 1, sizeof *told->refusals);
    if (f->n_refusals)
        memcpy(told->refusals, f->refusals,
               f->n_refusals * sizeof *told->refusals);
}

static int tell(struct feed *f, struct node_reports *told,
                const struct news *news, struct error *err)
{
    cleanup_str struct str places = STR_INIT(BODY_MAX);
    /* what changes while we look is newer, and told next time */
    uint64_t version = actuator_version(f->a);
    uint64_t used = usage_version(f->config.usage);
    add_places(f, &places);
    /* what they use is told again although it is the same */
    bool places_new = news->resend || used != told->used ||
                      strcmp(str_text(&places), str_text(&told->places)) != 0;
    if (news->refusals_new || news->resend)
        take_refusals(f, told);
    struct node_reports now = *told;
    if (!news->refusals_new && !news->resend)
        now.n_refusals = 0;
    int r = tell_parts(f, news->resend, &now, &places, places_new, err);
    if (r < 0)
        return r;
    told->version = version;
    told->used = used;
    str_reset(&told->places);
    str_add_n(&told->places, str_text(&places), places.size);
    return 0;
}

/* Wait until there may be news; false at the end. */
static bool wait_news(struct feed *f, struct news *news)
{
    pthread_mutex_lock(&f->lock);
    while (!f->poked && !atomic_load(&f->stopping))
        (void)clock_wait(&f->tell_wake, &f->lock, INT64_MAX);
    news->resend |= f->resend;
    news->refusals_new |= f->refusals_new;
    f->poked = f->resend = f->refusals_new = false;
    pthread_mutex_unlock(&f->lock);
    return !atomic_load(&f->stopping);
}

void *feed_tell(void *feed)
{
    struct feed *f = feed;
    struct node_reports told = {.places = STR_INIT(BODY_MAX)};
    struct news news = {.resend = true};
    thread_name("feed tell", NULL);
    while (wait_news(f, &news)) {
        struct error err = {0};
        int64_t pause_ms = f->config.gap_ms;
        if (tell(f, &told, &news, &err) < 0) {
            if (atomic_load(&f->stopping))
                break;
            pause_ms = feed_line_failed(f, &f->tell, &err);
            feed_poke(f); /* the same again */
        } else {
            feed_line_works(f, &f->tell);
            news = (struct news){0};
        }
        if (!feed_sleep(f, pause_ms))
            break;
    }
    free(told.refusals);
    str_fini(&told.places);
    return NULL;
}
