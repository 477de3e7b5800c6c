/* biga-advertiser - what is inside a host, printed or published. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "advertiser/achieved/achieved.h"
#include "advertiser/actuation.h"
#include "advertiser/card_health.h"
#include "advertiser/dra/dra_plugin.h"
#include "advertiser/node_metrics.h"
#include "advertiser/places.h"
#include "advertiser/printing.h"
#include "advertiser/probe/reprobe.h"
#include "advertiser/publish/publisher.h"
#include "advertiser/publish/sender.h"
#include "advertiser/publish/slice_watch.h"
#include "advertiser/settings.h"
#include "advertiser/sim/sim_hosts.h"
#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "lib/io/footprint.h"
#include "lib/io/log.h"

enum {
    BACKOFF_MIN_MS = 500,
    BACKOFF_MAX_MS = 30000,
    PROGRESS_MS = 2000,    /* a wait that is longer gets a line */
    WITHDRAW_MS = 10000,   /* for all nodes together */
    CHECK_MS = 60000,      /* in a cluster: are the slices as they should be? */
    HOSTS_PER_THREAD = 64, /* of a fleet, in a cluster */
    CREW_THREADS = 8,
    CREW_POLL_MS = 20,
    TRIM_FIRST_MS = 5000, /* what the start needed is not needed then */
    TRIM_MS = 60000,
};

struct program {
    struct settings set;
    char node[SLICE_NAME_MAX + 1];
    char boot_id[SLICE_BOOT_ID_MAX + 1];
    struct reprobe_config look;
    char instance[PUBLISH_INSTANCE_MAX + 1];
    struct kube_config *kube; /* NULL: the extender's own listener */
    struct sender_config sending;
    struct publish_config config;
    /* this host, or simulated ones: */
    struct sender *sender;
    struct publisher *fleet;
    struct reprobe *reprobe;
    struct slice_watch *watch; /* NULL: not in a cluster */
    struct sim_hosts *sim_hosts;
    struct actuation *acting;     /* NULL: not asked to */
    struct card_health *health;   /* NULL: nobody tells */
    struct topo *seen;            /* with health: what was seen last */
    struct dra_plugin *plugin;    /* NULL: of no kubelet */
    struct achieved *achieved;    /* NULL: nobody looks */
    struct node_metrics *metrics; /* NULL: nobody reads them */
    struct achieved_config achieving;
    char *kubelet;     /* the socket that it asks */
    int signals;       /* a signalfd */
    int64_t next_look; /* PUBLISH_NEVER: on SIGHUP alone */
    int64_t next_trim;
    int64_t started, next_progress;
    bool announced; /* all nodes are published, and that was said */
    bool stopping;
    int64_t stop_deadline;
    struct error last; /* of a look, so that it is logged once */
};

static int complain(const struct error *err, int code)
{
    fprintf(stderr, "%s: %s\n", advertiser_program.name, err->text);
    return code;
}

/* --- the nodes that are published --------------------------------------- */

/* One line every two seconds, for whoever waits. */
static void show_progress(struct program *p, const char *what, size_t n)
{
    int64_t now = clock_ms();
    if (now < p->next_progress)
        return;
    p->next_progress = now + PROGRESS_MS;
    fprintf(stderr, "%s %zu of %" PRId64 " hosts\n", what, n, p->set.fleet);
}

/* The caller owns it. */
static struct topo *with_health(struct program *p, struct topo *seen)
{
    struct topo *shown = NULL;
    if (p->acting)
        return actuation_publish(p->acting);
    if (p->health) {
        if (seen != p->seen) {
            topo_unref(p->seen);
            p->seen = topo_ref(seen);
        }
        return card_health_mark(p->health, p->seen);
    }
    /* an extender that keeps pods itself asks nobody else to run them */
    return !p->kube &&
                   places_mark(seen, TOPO_RUNS_NONE, NULL, 0, &shown, NULL) == 0
               ? shown
               : topo_ref(seen);
}

/* Whose cards they are; the caller owns it. */
static struct topo *with_book(const struct program *p, struct topo *topo)
{
    return p->set.claims ? places_by_claims(topo) : topo_ref(topo);
}

/* What is to be published of what was seen; the caller owns it. */
static struct topo *topo_of(struct program *p, struct topo *seen)
{
    cleanup_with(topo) struct topo *topo = with_health(p, seen);
    return with_book(p, topo);
}

static int start_sim_hosts(struct program *p, const struct publish_kind *kind,
                           struct error *err)
{
    size_t n = (size_t)p->set.fleet, n_threads = 1;
    if (p->kube)
        n_threads = (n + HOSTS_PER_THREAD - 1) / HOSTS_PER_THREAD;
    if (n_threads > CREW_THREADS)
        n_threads = CREW_THREADS;
    int created = sim_hosts_create(kind, &p->config, &p->sending, n_threads,
                                   &p->sim_hosts, err);
    if (created < 0)
        return created;
    for (size_t i = 0; i < n; i++) {
        cleanup_with(topo) struct topo *topo = NULL;
        int r = sim_hosts_topo(p->set.fleet_prefix, p->set.fleet_shapes, i, n,
                               &topo, err);
        if (r < 0)
            return r;
        cleanup_with(topo) struct topo *shown = topo_of(p, topo);
        sim_hosts_add(p->sim_hosts, shown);
        show_progress(p, "described", i + 1);
    }
    return sim_hosts_start(p->sim_hosts, err);
}

static int start_acting(struct program *p, const struct topo *topo,
                        struct error *err)
{
    const struct actuation_config config = {
        .set = &p->set,
        .node = p->node,
        .boot_id = p->boot_id,
        .extender = p->kube ? NULL : &p->sending.http,
    };
    return actuation_create(&config, topo, &p->acting, err);
}

static int start_plugin(struct program *p, struct error *err)
{
    const struct settings *s = &p->set;
    const struct dra_plugin_config config = {
        .node = p->node,
        .kubelet_dir = s->kubelet_dir,
        .cdi_dir = s->cdi_dir,
        .sysroot = settings_sysroot(s),
        .card_file = s->card_file,
        .kube = p->kube,
        .timeout_ms = (unsigned)s->timeout_ms,
        .grace_ms = s->claim_grace_ms,
    };
    return dra_plugin_create(&config, &p->plugin, err);
}

/* In vain where no kubelet is asked, and we run no pods. */
static int start_achieved(struct program *p, struct topo *topo,
                          struct error *err)
{
    const struct settings *s = &p->set;
    p->kubelet = settings_kubelet(s);
    bool runs = p->acting && !p->kube; /* those that the extender wants */
    if (s->achieved_ms == 0 || (!*p->kubelet && !runs))
        return 0;
    p->achieving = (struct achieved_config){
        .node = p->node,
        .kubelet = *p->kubelet ? p->kubelet : NULL,
        .sysroot = s->fsroot ? s->fsroot : "",
        .more = runs ? actuation_facts : NULL,
        .ctx = p->acting,
        .sending = &p->sending,
        .namespace = p->kube ? s->heartbeat_namespace : NULL,
        .look_ms = s->achieved_ms,
        .again_ms = p->kube ? CHECK_MS : s->heartbeat_ms,
        .backoff_min_ms = BACKOFF_MIN_MS,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .withdraw = s->withdraw,
    };
    return achieved_start(&p->achieving, topo, &p->achieved, err);
}

static int start_metrics(struct program *p, struct error *err)
{
    const struct settings *s = &p->set;
    const struct node_metrics_config config = {
        .listen = s->metrics_listen,
        .cert = s->metrics_cert,
        .key = s->metrics_key,
        .client_ca = s->metrics_client_ca,
        .actuator = p->acting ? actuation_actuator(p->acting) : NULL,
    };
    return node_metrics_start(&config, &p->metrics, err);
}

/* Who else is told what is published. */
static void tell(struct program *p, struct topo *topo)
{
    if (p->plugin)
        dra_plugin_look(p->plugin, topo);
    if (p->metrics)
        node_metrics_look(p->metrics, topo);
}

static int add_this_host(struct program *p, const struct publish_kind *kind,
                         struct error *err)
{
    cleanup_with(topo) struct topo *topo = NULL;
    p->fleet = publisher_create(kind, &p->config, sender_send, p->sender);
    int r = reprobe_run(&p->look, &topo, err);
    if (r == 0)
        r = reprobe_create(&p->look, &p->reprobe, err);
    if (r == 0 && p->set.actuate)
        r = start_acting(p, topo, err);
    if (p->set.card_health && *p->set.card_health)
        p->health = card_health_create(p->set.card_health, p->node);
    if (r == 0 && p->kube)
        r = slice_watch_start(p->kube, p->node, &p->watch, err);
    if (r == 0 && p->set.kubelet_dir && *p->set.kubelet_dir)
        r = start_plugin(p, err);
    if (r == 0)
        r = start_achieved(p, topo, err);
    if (r == 0 && p->set.metrics_listen && *p->set.metrics_listen)
        r = start_metrics(p, err);
    if (r < 0)
        return r;
    cleanup_with(topo) struct topo *shown = topo_of(p, topo);
    tell(p, shown);
    (void)publisher_add(p->fleet, shown, clock_ms());
    bool live = !p->look.source.xml && !p->look.source.fsroot &&
                !p->look.source.hostfile;
    p->next_look = live && p->set.interval_ms > 0
                       ? clock_ms() + p->set.interval_ms
                       : PUBLISH_NEVER;
    return 0;
}

/* --- events ------------------------------------------------------------- */

static void start_look(struct program *p)
{
    struct error err;
    if (!p->reprobe)
        return;
    if (p->next_look != PUBLISH_NEVER)
        p->next_look = clock_ms() + p->set.interval_ms;
    if (reprobe_start(p->reprobe, &err) < 0)
        log_event(LOG_WARN, "look-failed", "node", p->node, "error", err.text,
                  NULL);
}

static void publish_topo(struct program *p, struct topo *seen)
{
    cleanup_with(topo) struct topo *topo = topo_of(p, seen);
    publisher_update(p->fleet, 0, topo, clock_ms());
    tell(p, topo);
}

/* What was seen last stays published while a look fails. */
static void take_look(struct program *p)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    if (reprobe_finish(p->reprobe, &topo, &err) == 0) {
        p->last.text[0] = '\0';
        if (p->acting)
            actuation_look(p->acting, topo);
        if (p->achieved)
            achieved_look(p->achieved, topo);
        publish_topo(p, topo);
    } else if (strcmp(err.text, p->last.text) != 0) {
        p->last = err;
        log_event(LOG_WARN, "look-failed", "node", p->node, "error", err.text,
                  NULL);
    }
}

static void take_notices(struct program *p)
{
    struct publish_notice notice;
    while (slice_watch_take(p->watch, &notice))
        publisher_notice(p->fleet, 0, &notice, clock_ms());
}

static void stop(struct program *p, const char *signal_name)
{
    int64_t now = clock_ms();
    log_event(LOG_INFO, "stopping", "signal", signal_name, NULL);
    p->stop_deadline = p->stopping ? now : now + WITHDRAW_MS;
    p->stopping = true;
    if (p->sim_hosts)
        sim_hosts_stop(p->sim_hosts, p->set.withdraw);
    else
        publisher_stop(p->fleet, p->set.withdraw, now);
}

static void take_signals(struct program *p)
{
    struct signalfd_siginfo info;
    while (read(p->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            start_look(p);
        else
            stop(p, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
    }
}

static int wait_ms(const struct program *p)
{
    int64_t until = publisher_due(p->fleet), now = clock_ms();
    if (p->next_look < until && !p->stopping)
        until = p->next_look;
    if (p->stopping && p->stop_deadline < until)
        until = p->stop_deadline;
    if (p->next_trim < until)
        until = p->next_trim;
    if (p->acting && actuation_due(p->acting) < until)
        until = actuation_due(p->acting);
    if (p->health && card_health_due(p->health) < until)
        until = card_health_due(p->health);
    int64_t ms = until - now;
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

static void announce(struct program *p)
{
    size_t n = sim_hosts_n_nodes(p->sim_hosts),
           done = sim_hosts_n_published(p->sim_hosts);
    if (p->announced)
        return;
    if (done < n) {
        show_progress(p, "published", done);
        return;
    }
    p->announced = true;
    printf("fleet ready %zu\n", n);
    (void)fflush(stdout); /* nobody may be reading it */
}

static void trim(struct program *p)
{
    if (clock_ms() < p->next_trim)
        return;
    footprint_trim();
    if (p->metrics)
        node_metrics_step(p->metrics);
    p->next_trim = clock_ms() + TRIM_MS;
}

static void run(struct program *p)
{
    struct pollfd fds[] = {
        {.fd = p->signals, .events = POLLIN},
        {.fd = reprobe_fd(p->reprobe), .events = POLLIN},
        {.fd = p->acting ? actuation_fd(p->acting) : -1, .events = POLLIN},
        {.fd = p->watch ? slice_watch_fd(p->watch) : -1, .events = POLLIN},
    };
    while (publisher_due(p->fleet) != PUBLISH_NEVER) {
        if (p->stopping && clock_ms() >= p->stop_deadline)
            return;
        (void)poll(fds, ARRAY_LEN(fds),
                   wait_ms(p)); /* a failed wait is a short one */
        take_signals(p);
        if (fds[1].revents)
            take_look(p);
        /* a card is lost, or there again */
        if (fds[2].revents && actuation_moved(p->acting))
            publish_topo(p, NULL);
        if (fds[3].revents)
            take_notices(p);
        if (p->acting)
            actuation_step(p->acting, clock_ms());
        if (p->health && card_health_step(p->health, clock_ms()))
            publish_topo(p, p->seen);
        trim(p);
        if (clock_ms() >= p->next_look && !p->stopping)
            start_look(p);
        (void)publisher_step(p->fleet, clock_ms()); /* nothing due is fine */
    }
}

static void run_sim_hosts(struct program *p)
{
    struct pollfd fd = {.fd = p->signals, .events = POLLIN};
    while (!sim_hosts_is_done(p->sim_hosts)) {
        if (p->stopping && clock_ms() >= p->stop_deadline)
            return;
        (void)poll(&fd, 1, CREW_POLL_MS); /* a failed wait is a short one */
        take_signals(p);
        announce(p);
    }
}

/* --- from start to end -------------------------------------------------- */

/* Before any thread is started, so that none takes them. */
static int open_signals(struct program *p, struct error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return error_errno(err, errno, "signals");
    p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return p->signals < 0 ? error_errno(err, errno, "signals") : 0;
}

static int64_t wall_us(void)
{
    return clock_wall_ns() / 1000;
}

static int prepare_server(struct program *p, struct error *err)
{
    const struct settings *s = &p->set;
    uint64_t random;
    p->sending.http = (struct http_config){
        .base = s->server,
        .timeout_ms = (unsigned)s->timeout_ms,
        .ca_file = s->ca,
        .cert_file = s->cert,
        .key_file = s->key,
    };
    p->config = (struct publish_config){
        .boot_id = p->boot_id,
        .heartbeat_ms = s->heartbeat_ms,
        .backoff_min_ms = BACKOFF_MIN_MS,
        .backoff_max_ms = BACKOFF_MAX_MS,
    };
    if (!settings_in_cluster(s))
        return sender_create(&p->sending, &p->sender, err);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return error_errno(err, errno, "random numbers");
    (void)snprintf(p->instance, sizeof p->instance, "%016" PRIx64, random);
    p->config.instance = p->instance;
    p->config.namespace = s->heartbeat_namespace;
    p->config.check_ms = CHECK_MS;
    p->config.unix_us = wall_us;
    /* a try costs no more than a heartbeat does */
    if (p->config.backoff_max_ms > s->heartbeat_ms)
        p->config.backoff_max_ms = s->heartbeat_ms;
    if (p->config.backoff_min_ms > p->config.backoff_max_ms)
        p->config.backoff_min_ms = p->config.backoff_max_ms;
    int r = kube_config_load(s->kubeconfig, &p->kube, err);
    if (r < 0)
        return r;
    p->sending.kube = p->kube;
    return sender_create(&p->sending, &p->sender, err);
}

static int prepare(struct program *p, struct error *err)
{
    const struct settings *s = &p->set;
    int r = settings_check(s, err);
    if (r == 0)
        r = settings_node(s, p->node, err);
    if (r == 0)
        r = settings_boot_id(s, p->boot_id, err);
    if (r == 0 && !s->print)
        r = prepare_server(p, err);
    if (r < 0)
        return r;
    const char *level = s->log_level ? s->log_level
                        : s->fleet   ? "warn"
                                     : "info";
    log_set_level((enum log_level)log_level_parse(level));
    p->look = (struct reprobe_config){
        .source = {.xml = s->topology,
                   .fsroot = s->fsroot,
                   .hostfile = s->hostfile},
        .node = p->node,
        .card_file = s->card_file,
    };
    return 0;
}

static int publish(struct program *p)
{
    struct error err = {0};
    const struct publish_kind *kind = p->kube ? &publish_kube : &publish_direct;
    int r = open_signals(p, &err);
    if (r < 0)
        return complain(&err, ADVERTISER_FAILED);
    p->started = clock_ms();
    p->next_progress = p->started + PROGRESS_MS;
    p->next_trim = p->started + TRIM_FIRST_MS;
    p->next_look = PUBLISH_NEVER;
    r = p->set.fleet > 0 ? start_sim_hosts(p, kind, &err)
                         : add_this_host(p, kind, &err);
    if (r < 0)
        return complain(&err, ADVERTISER_FAILED);
    log_event(LOG_INFO, "started", "node", p->node, "server",
              p->kube ? p->kube->server : p->set.server, "version",
              BIGA_VERSION, NULL);
    bool left;
    if (p->sim_hosts) {
        run_sim_hosts(p);
        left = sim_hosts_left_slices(p->sim_hosts);
    } else {
        run(p);
        left = publisher_due(p->fleet) != PUBLISH_NEVER ||
               publisher_left_slices(p->fleet);
    }
    return left ? ADVERTISER_LEFT : ADVERTISER_OK;
}

static int print(struct program *p)
{
    cleanup_with(topo) struct topo *topo = NULL;
    struct error err = {0};
    if (reprobe_run(&p->look, &topo, &err) < 0)
        return complain(&err, ADVERTISER_FAILED);
    cleanup_with(topo) struct topo *shown = with_book(p, topo);
    return printing_topo(p->set.print, p->boot_id, shown) == 0
               ? ADVERTISER_OK
               : ADVERTISER_FAILED;
}

int main(int argc, char **argv)
{
    struct program p = {.signals = -1};
    struct error err = {0};
    int first = 1;
    footprint_limit();
    int r = conf_read(&advertiser_program, argc, argv, &p.set, &first, &err);
    if (r < 0)
        return complain(&err, ADVERTISER_USAGE);
    if (r > 0)
        return ADVERTISER_OK;
    if (first < argc)
        r = error_set(&err, EINVAL, "%.200s: no such argument; see --help",
                      argv[first]);
    else
        r = prepare(&p, &err);
    int code = r < 0         ? complain(&err, ADVERTISER_USAGE)
               : p.set.print ? print(&p)
                             : publish(&p);
    node_metrics_stop(p.metrics);
    achieved_stop(p.achieved);
    free(p.kubelet);
    dra_plugin_destroy(p.plugin);
    actuation_destroy(p.acting);
    card_health_destroy(p.health);
    topo_unref(p.seen);
    slice_watch_stop(p.watch);
    sim_hosts_destroy(p.sim_hosts);
    publisher_destroy(p.fleet);
    reprobe_destroy(p.reprobe);
    sender_destroy(p.sender);
    kube_config_destroy(p.kube);
    if (p.signals >= 0)
        (void)close(p.signals); /* nothing is kept in it */
    conf_fini(&advertiser_program, &p.set);
    return code;
}
