#include "advertiser/actuation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "advertiser/act/api/feed.h"
#include "advertiser/act/api/socket.h"
#include "advertiser/act/stream/node_streams.h"
#include "advertiser/acted_facts.h"
#include "advertiser/places.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/log.h"

struct actuation {
    struct actuation_config config;
    char *dir; /* absolute */
    int fd;    /* an eventfd */
    struct topo *seen;
    struct act_place places[ACT_PLACES_MAX];
    size_t n_places;
    struct act_place_status shown[ACT_PLACES_MAX]; /* as published last */
    size_t n_shown;
    int64_t next_touch;
    struct error last; /* of a card file or places, logged once */
    struct actuator *actuator;
    struct acted_facts *facts;
    struct act_socket *socket;
    pthread_mutex_t lock;
    struct feed *feed;            /* under the lock, as are: */
    struct node_streams *streams; /* both NULL: there is no extender */
    struct usage *usage;          /* NULL, too */
};

/* On any thread. */
static void on_changed(void *ctx)
{
    struct actuation *a = ctx;
    const uint64_t one = 1;
    ssize_t n = write(a->fd, &one, sizeof one);
    (void)n; /* a counter that is full wakes as well */
    hold_lock(&a->lock);
    feed_poke(a->feed);
    node_streams_poke(a->streams);
}

int actuation_fd(const struct actuation *a)
{
    return a->fd;
}

struct actuator *actuation_actuator(const struct actuation *a)
{
    return a->actuator;
}

/* --- places --------------------------------------------------------------- */

static void note(struct actuation *a, int result, const struct error *err)
{
    if (result == 0) {
        a->last.text[0] = '\0';
    } else if (strcmp(a->last.text, err->text) != 0) {
        a->last = *err;
        log_event(LOG_WARN, "places-failed", "node", a->config.node, "error",
                  err->text, NULL);
    }
}

static int set_places(struct actuation *a, struct error *err)
{
    a->next_touch = clock_ms() + ACTUATION_TOUCH_MS;
    return actuator_set_places(a->actuator, a->places, a->n_places, err);
}

static int look(struct actuation *a, const struct topo *topo, struct error *err)
{
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    const struct settings *s = a->config.set;
    int r = s->card_file && *s->card_file
                ? cardfile_load(s->card_file, &cards, err)
                : 0;
    topo_unref(a->seen);
    a->seen = topo_ref((struct topo *)(uintptr_t)topo);
    if (r < 0)
        return r;
    a->n_places = places_of(topo, cards, s->host_runtime ? s->host_runtime : "",
                            a->places);
    unsigned kinds = 0;
    (void)host_side_kinds(s->host_devices, &kinds, err); /* it was checked */
    actuator_set_host(
        a->actuator,
        host_side_create(topo, steal(&cards), settings_sysroot(s), kinds));
    return set_places(a, err);
}

void actuation_look(struct actuation *a, const struct topo *topo)
{
    struct error err = {0};
    note(a, look(a, topo, &err), &err);
}

bool actuation_moved(struct actuation *a)
{
    struct act_place_status views[ACT_PLACES_MAX];
    uint64_t count;
    (void)!read(a->fd, &count, sizeof count); /* clears it */
    size_t n = actuator_places(a->actuator, views);
    bool moved = n != a->n_shown;
    for (size_t i = 0; i < n && !moved; i++)
        moved = views[i].health != a->shown[i].health ||
                strcmp(views[i].name, a->shown[i].name) != 0;
    return moved;
}

struct topo *actuation_publish(struct actuation *a)
{
    struct topo *marked = NULL;
    struct error err = {0};
    a->n_shown = actuator_places(a->actuator, a->shown);
    /* in a cluster a kubelet runs pods, by whatever it is told */
    enum topo_runs runs = a->config.extender ? TOPO_RUNS_PODS
                                             : TOPO_RUNS_UNTOLD;
    int r = places_mark(a->seen, runs, a->shown, a->n_shown, &marked, &err);
    note(a, r, &err);
    return r == 0 ? marked : topo_ref(a->seen);
}

int actuation_facts(void *acting, const struct host_seen *seen,
                    struct facts *facts)
{
    struct actuation *a = acting;
    acted_facts_add(a->facts, FEED_OWNER, seen, facts);
    return 0;
}

int64_t actuation_due(const struct actuation *a)
{
    return a->next_touch;
}

void actuation_step(struct actuation *a, int64_t now_ms)
{
    struct error err = {0};
    if (now_ms < a->next_touch)
        return;
    a->next_touch = now_ms + ACTUATION_TOUCH_MS;
    if (!places_touch(a->places, a->n_places))
        return;
    log_event(LOG_INFO, "card-keys-changed", "node", a->config.node, NULL);
    note(a, set_places(a, &err), &err);
}

/* --- from start to end -------------------------------------------------- */

/* The folder of our own, with no way in for others. */
static int make_dir(const char *given, char **ret_dir, struct error *err)
{
    struct stat st;
    if (mkdir(given, 0700) < 0 && errno != EEXIST)
        return error_errno(err, errno, "--actuate: %s", given);
    char *dir = realpath(given, NULL);
    if (!dir)
        return error_errno(err, errno, "--actuate: %s", given);
    int r = 0;
    if (stat(dir, &st) < 0)
        r = error_errno(err, errno, "--actuate: %s", dir);
    else if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
        r = error_set(err, EPERM,
                      "--actuate: %s: must be a folder of our own that nobody "
                      "else may write to",
                      dir);
    if (r < 0) {
        free(dir);
        return r;
    }
    *ret_dir = dir;
    return 0;
}

static int create_actuator(struct actuation *a, struct error *err)
{
    const struct settings *s = a->config.set;
    const bool elsewhere = s->fsroot && *s->fsroot;
    cleanup_free char *sysfs = xasprintf("%s/sys", s->fsroot ? s->fsroot : "");
    cleanup_free char *dev = xasprintf("%s/dev", s->fsroot ? s->fsroot : "");
    const struct actuator_config config = {
        .dir = a->dir,
        .cluster = s->cluster,
        .node = a->config.node,
        .boot_id = a->config.boot_id,
        .card_dir = s->card_dir,
        .helper_image = s->helper_image,
        .sysfs = elsewhere ? sysfs : NULL,
        .dev = elsewhere ? dev : NULL,
        .hooks_dir = s->hooks,
        .devlink = s->devlink,
        .allow = s->allow,
        .fed = a->config.extender != NULL,
        .changed = on_changed,
        .ctx = a,
    };
    return actuator_create(&config, &a->actuator, err);
}

static void on_used(void *ctx)
{
    struct actuation *a = ctx;
    hold_lock(&a->lock);
    feed_poke(a->feed);
}

static int start_feed(struct actuation *a, struct error *err)
{
    struct feed *feed = NULL;
    const struct usage_config usage = {.changed = on_used, .ctx = a};
    if (!a->config.extender)
        return 0;
    int r = usage_start(a->actuator, &usage, &a->usage, err);
    if (r < 0)
        return r;
    const struct feed_config config = {.http = *a->config.extender,
                                       .node = a->config.node,
                                       .boot_id = a->config.boot_id,
                                       .usage = a->usage};
    r = feed_start(a->actuator, &config, &feed, err);
    if (r < 0)
        return r;
    hold_lock(&a->lock);
    a->feed = feed;
    feed_poke(feed); /* what changed meanwhile */
    return 0;
}

static int start_streams(struct actuation *a, struct error *err)
{
    struct node_streams *streams = NULL;
    if (!a->config.extender)
        return 0;
    const struct node_streams_config config = {.http = *a->config.extender,
                                               .node = a->config.node};
    int r = node_streams_start(a->actuator, &config, &streams, err);
    if (r < 0)
        return r;
    hold_lock(&a->lock);
    a->streams = streams;
    return 0;
}

static int start(struct actuation *a, const struct topo *topo,
                 struct error *err)
{
    a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->fd < 0)
        return error_errno(err, errno, "eventfd");
    int r = make_dir(a->config.set->actuate, &a->dir, err);
    if (r == 0)
        r = create_actuator(a, err);
    if (r == 0)
        a->facts = acted_facts_create(a->actuator);
    if (r == 0)
        r = look(a, topo, err);
    if (r < 0)
        return r;
    cleanup_free char *path = xasprintf("%s/actuator.sock", a->dir);
    r = act_socket_start(a->actuator, path, &a->socket, err);
    if (r == 0)
        r = start_feed(a, err);
    if (r == 0)
        r = start_streams(a, err);
    if (r == 0)
        log_event(LOG_INFO, "acting", "node", a->config.node, "socket", path,
                  "feed", a->config.extender ? "extender" : "none", NULL);
    return r;
}

int actuation_create(const struct actuation_config *config,
                     const struct topo *topo, struct actuation **ret_acting,
                     struct error *err)
{
    struct actuation *a = xcalloc(1, sizeof *a);
    a->config = *config;
    a->fd = -1;
    (void)pthread_mutex_init(&a->lock, NULL);
    int r = start(a, topo, err);
    if (r < 0) {
        actuation_destroy(a);
        return r;
    }
    *ret_acting = a;
    return 0;
}

void actuation_destroy(struct actuation *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    struct feed *feed = steal(&a->feed);
    struct node_streams *streams = steal(&a->streams);
    pthread_mutex_unlock(&a->lock);
    bool idle = node_streams_stop(streams);
    feed_stop(feed);
    usage_stop(a->usage);
    if (!act_socket_stop(a->socket) || !idle)
        return; /* calls are under way and use all this; the process ends */
    acted_facts_destroy(a->facts); /* NULL allowed, as is: */
    actuator_destroy(a->actuator);
    topo_unref(a->seen);
    if (a->fd >= 0)
        (void)close(a->fd); /* nothing is kept in it */
    (void)pthread_mutex_destroy(&a->lock);
    free(a->dir);
    free(a);
}
