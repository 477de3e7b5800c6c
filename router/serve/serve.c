#include "router/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/remote/remote_beat.h"
#include "router/serve/serve_guess.h"

struct far *serve_next(struct serve *s, size_t *i)
{
    while (*i < s->n_fars) {
        struct far *far = &s->fars[(*i)++];
        if (!far->gone)
            return far;
    }
    return NULL;
}

struct far *serve_far(struct serve *s, const char *name)
{
    struct far *far;
    for (size_t i = 0; (far = serve_next(s, &i));)
        if (strcmp(remote_name(far->remote), name) == 0)
            return far;
    return NULL;
}

/* --- settings ----------------------------------------------------------------
 */

static const char *keep_text(struct serve *s, const char *text)
{
    return text ? arena_strndup(&s->arena, text, strlen(text)) : NULL;
}

static void copy_config(struct serve *s, const struct serve_config *from)
{
    struct serve_config *c = &s->config;
    *c = *from;
    const char **const texts[] = {
        &c->listen,       &c->home,           &c->state,
        &c->kubelet_dir,  &c->pod_logs,       &c->node,
        &c->cluster,      &c->handler,        &c->remote_handler,
        &c->helper_image, &c->default_remote, &c->card_dir,
        &c->hooks,
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = keep_text(s, *texts[i]);
    const char **paths = arena_alloc(&s->arena,
                                     (c->n_host_paths + 1) * sizeof *paths);
    for (size_t i = 0; i < c->n_host_paths; i++)
        paths[i] = keep_text(s, from->host_paths[i]);
    c->host_paths = paths;
    s->rules = (struct mount_rules){.kubelet_root = c->kubelet_dir,
                                    .allowed = c->host_paths,
                                    .n_allowed = c->n_host_paths};
    c->places = NULL;
    c->fresh_ms = c->fresh_ms ? c->fresh_ms : SERVE_FRESH_MS;
    c->status_ms = c->status_ms ? c->status_ms : SERVE_STATUS_MS;
    s->home_url = xasprintf("unix://%s", c->home);
}

/* --- remotes -------------------------------------------------------------------
 */

/* "tcp://HOST:PORT"; a host that is an address is that of pods, too. */
static void read_host(struct far *far, const struct act_place *place)
{
    struct in_addr v4;
    struct in6_addr v6;
    card_host(place, far->host);
    if (!far->host[0]) /* a unix socket's is this machine (tests) */
        (void)snprintf(far->host, sizeof far->host, "127.0.0.1");
    if (inet_pton(AF_INET, far->host, &v4) == 1 ||
        inet_pton(AF_INET6, far->host, &v6) == 1)
        memcpy(far->address, far->host, strlen(far->host) + 1);
}

/* Streams of one that is away would hang. */
static void on_health(void *ctx, struct remote *r, enum act_health health)
{
    struct far *far = ctx;
    struct serve *s = far->s;
    bool lost = health == ACT_LOST;
    log_event(lost ? LOG_WARN : LOG_INFO, "remote-health", "remote",
              remote_name(r), "health", act_health_name(health), NULL);
    if (health != ACT_SUSPECT)
        serve_heard(far);
    serve_health_tell(far, r, health);
    if (s->logs)
        log_copier_cut(s->logs, remote_name(r), lost);
    if (lost && s->streams) {
        cleanup_free char *why = xasprintf("%s does not answer",
                                           remote_name(r));
        stream_relay_cut_remote(s->streams, remote_name(r), why);
    }
}

static int start_far(struct serve *s, const struct act_place *place,
                     struct error *err)
{
    struct far *far = &s->fars[s->n_fars];
    const struct helper_config helper = {.image = s->config.helper_image,
                                         .card_dir = s->config.card_dir,
                                         .cluster = s->config.cluster,
                                         .node = s->config.node,
                                         .remote = place->name};
    const struct remote_config config = {.place = *place,
                                         .cluster = s->config.cluster,
                                         .node = s->config.node,
                                         .spared = HELPER_UID,
                                         .keep = s->keep,
                                         .beat = s->beat,
                                         .state = s->config.state,
                                         .probe_ms = s->config.probe_ms,
                                         .lost_ms = s->config.lost_ms,
                                         .home_has = serve_home_has,
                                         .changed = serve_event_changed,
                                         .health = on_health,
                                         .ctx = far};
    far->s = s;
    read_host(far, place);
    int r = remote_start(&config, &far->remote, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_init(&far->preparing, NULL);
    far->lines = lines_create(place);
    far->helper = helper_create(&helper);
    s->n_fars++; /* from now on others see it */
    return 0;
}

/* --- other remotes than before ------------------------------------------------
 */

static bool is_same(const struct act_place *a, const struct act_place *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->pci, b->pci) == 0 &&
           strcmp(a->arch, b->arch) == 0 &&
           strcmp(a->endpoint, b->endpoint) == 0 && strcmp(a->ca, b->ca) == 0 &&
           strcmp(a->cert, b->cert) == 0 && strcmp(a->key, b->key) == 0 &&
           a->plaintext == b->plaintext;
}

static bool is_among(const struct act_place *place,
                     const struct act_place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(place, &places[i]))
            return true;
    return false;
}

/* Its calls end first: of one name two never run at once. */
static void end_far(struct serve *s, struct far *far)
{
    remote_stop(far->remote);
    far->gone = true;
    if (s->streams)
        stream_relay_cut_remote(s->streams, remote_name(far->remote),
                                "its card was changed, or taken away");
    log_event(LOG_INFO, "remote-ended", "remote", remote_name(far->remote),
              NULL);
}

int serve_set_places(struct serve *s, const struct act_place *places, size_t n,
                     struct error *err)
{
    size_t n_new = 0;
    struct far *far;
    for (size_t i = 0; i < n; i++) {
        far = serve_far(s, places[i].name);
        n_new += !far || !is_same(remote_place(far->remote), &places[i]);
    }
    if (s->n_fars + n_new > SERVE_FARS_MAX)
        return error_set(err, E2BIG,
                         "cards: %zu more are too many since the start, at "
                         "most %d may be: start biga-cri anew",
                         n_new, SERVE_FARS_MAX);
    for (size_t i = 0; (far = serve_next(s, &i));)
        if (!is_among(remote_place(far->remote), places, n))
            end_far(s, far);
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        if (!serve_far(s, places[i].name))
            r = start_far(s, &places[i], err);
    return r;
}

/* --- from start to end ----------------------------------------------------------
 */

static int open_keep(struct serve *s, struct error *err)
{
    const struct keep_config config = {.dir = s->config.state,
                                       .pod_logs = s->config.pod_logs};
    int r = keep_open(&config, &s->keep, err);
    if (r < 0)
        return r;
    cleanup_with(keep_view) struct keep_view *v = keep_view(s->keep);
    s->began_empty = keep_view_count(v) == 0;
    return 0;
}

static int open_server(struct serve *s, struct error *err)
{
    const struct grpcd_config config = {.path = s->config.listen,
                                        .take_over = true,
                                        .route = serve_route,
                                        .ended = serve_metrics_ended,
                                        .ctx = s};
    struct act_place home = {.name = "home"};
    int r = grpcd_create(&config, &s->server, err);
    if (r == 0)
        r = grpcd_relay_create(s->server, s->config.home,
                               "the runtime of this machine", &s->home, err);
    (void)snprintf(home.endpoint, sizeof home.endpoint, "%s", s->home_url);
    s->home_lines = lines_create(&home);
    return r;
}

static int open_all(struct serve *s, const struct serve_config *config,
                    struct error *err)
{
    const struct stream_relay_config usual = {0};
    int r = open_keep(s, err);
    if (r == 0)
        r = open_server(s, err);
    if (r == 0)
        r = stream_relay_start(&usual, &s->streams, err);
    if (r == 0)
        r = serve_files_open(s, err);
    if (r == 0)
        r = serve_health_open(s, config, err);
    if (r == 0)
        r = remote_beat_create(&s->beat, err);
    for (size_t i = 0; r == 0 && i < config->n_places; i++)
        r = start_far(s, &config->places[i], err);
    if (r < 0)
        return r;
    serve_files_adopt(s);
    serve_hear_all(s);
    s->collector = collector_start(s);
    return grpcd_start(s->server, err);
}

int serve_start(const struct serve_config *config, struct serve **ret_serve,
                struct error *err)
{
    struct serve *s = xcalloc(1, sizeof *s);
    copy_config(s, config);
    (void)pthread_mutex_init(&s->hearing, NULL);
    (void)pthread_mutex_init(&s->telling, NULL);
    clock_wait_init(&s->heard);
    s->events = event_feed_create();
    s->exits = exits_create(s);
    s->metrics = serve_metrics_create();
    int r = open_all(s, config, err);
    if (r < 0)
        serve_stop(s, 0);
    else
        *ret_serve = s;
    return r;
}

void serve_tidy(struct serve *s)
{
    (void)lines_tidy(s->home_lines); /* how many ended is of no use here */
    for (size_t i = 0; i < s->n_fars; i++) {
        (void)remote_tidy(s->fars[i].remote);
        (void)lines_tidy(s->fars[i].lines);
    }
}

static void close_fars(struct serve *s)
{
    for (size_t i = 0; i < s->n_fars; i++) {
        remote_destroy(s->fars[i].remote);
        lines_destroy(s->fars[i].lines);
        helper_destroy(s->fars[i].helper);
        free(s->fars[i].made);
        far_list_unref(s->fars[i].told[0]);
        far_list_unref(s->fars[i].told[1]);
        (void)pthread_mutex_destroy(&s->fars[i].preparing);
    }
}

/* They would go on for as long as people look at them. */
static void end_streams(struct serve *s)
{
    for (size_t i = 0; s->streams && i < s->n_fars; i++)
        stream_relay_cut_remote(s->streams, remote_name(s->fars[i].remote),
                                STREAM_STOPPING);
}

/* First those that call, then those that are called. */
void serve_stop(struct serve *s, unsigned drain_ms)
{
    if (!s)
        return;
    end_streams(s);
    for (size_t i = 0; drain_ms == 0 && i < s->n_fars; i++)
        remote_stop(s->fars[i].remote);
    if (s->server)
        grpcd_stop(s->server, drain_ms);
    for (size_t i = 0; i < s->n_fars; i++)
        remote_stop(s->fars[i].remote);
    collector_stop(s->collector);
    serve_files_stop(s);
    stream_relay_stop(s->streams);
    exits_destroy(s->exits);
    serve_files_close(s);
    grpcd_destroy(s->server);
    close_fars(s);
    remote_beat_destroy(s->beat);
    event_feed_destroy(s->events);
    keep_close(s->keep);
    lines_destroy(s->home_lines);
    (void)pthread_mutex_destroy(&s->hearing);
    (void)pthread_mutex_destroy(&s->telling);
    free(s->health_path);
    (void)pthread_cond_destroy(&s->heard);
    metrics_destroy(s->metrics);
    free(s->home_url);
    arena_fini(&s->arena);
    free(s);
}
