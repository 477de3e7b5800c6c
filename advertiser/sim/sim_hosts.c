#include "advertiser/sim/sim_hosts.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "advertiser/describe/hostfile.h"
#include "advertiser/describe/hosts.h"
#include "lib/base/str.h"
#include "lib/io/clock.h"
#include "lib/io/thread_name.h"

enum order { GO, STOP, WITHDRAW, ABANDON };

struct sim_thread {
    struct publisher *publisher; /* the thread's, once it runs */
    struct sender *sender;
    pthread_t thread;
    bool running;
    int wake;           /* an eventfd */
    atomic_int ordered; /* enum order */
    atomic_size_t n_published;
    atomic_bool done;
    bool left; /* once done */
};

struct sim_hosts {
    struct sim_thread threads[SIM_HOSTS_THREADS_MAX];
    size_t n_threads, n_nodes;
};

int sim_hosts_create(const struct publish_kind *kind,
                     const struct publish_config *config,
                     const struct sender_config *sender, size_t n_threads,
                     struct sim_hosts **ret_sim_hosts, struct error *err)
{
    cleanup_with(sim_hosts) struct sim_hosts *c = xcalloc(1, sizeof *c);
    if (n_threads > SIM_HOSTS_THREADS_MAX)
        n_threads = SIM_HOSTS_THREADS_MAX;
    for (; c->n_threads < n_threads; c->n_threads++) {
        struct sim_thread *t = &c->threads[c->n_threads];
        t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (t->wake < 0)
            return error_errno(err, errno, "eventfd");
        int r = sender_create(sender, &t->sender, err);
        if (r < 0) {
            (void)close(t->wake); /* nothing is kept in it */
            return r;
        }
        t->publisher = publisher_create(kind, config, sender_send, t->sender);
    }
    *ret_sim_hosts = steal(&c);
    return 0;
}

static void order(struct sim_thread *t, enum order what)
{
    const uint64_t one = 1;
    atomic_store(&t->ordered, (int)what);
    /* a counter that is full wakes as well */
    (void)!write(t->wake, &one, sizeof one);
}

void sim_hosts_destroy(struct sim_hosts *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_threads; i++)
        order(&c->threads[i], ABANDON);
    for (size_t i = 0; i < c->n_threads; i++) {
        struct sim_thread *t = &c->threads[i];
        if (t->running)
            (void)pthread_join(t->thread, NULL); /* ours: joinable */
        publisher_destroy(t->publisher);
        sender_destroy(t->sender);
        (void)close(t->wake); /* nothing is kept in it */
    }
    free(c);
}

void sim_hosts_add(struct sim_hosts *c, struct topo *topo)
{
    (void)publisher_add(c->threads[c->n_nodes++ % c->n_threads].publisher, topo,
                        clock_ms());
}

static int wait_ms(const struct publisher *publisher)
{
    int64_t ms = publisher_due(publisher) - clock_ms();
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

static void *work(void *arg)
{
    struct sim_thread *t = arg;
    struct pollfd fd = {.fd = t->wake, .events = POLLIN};
    enum order obeyed = GO;
    thread_name("publish", NULL);
    while (publisher_due(t->publisher) != PUBLISH_NEVER) {
        (void)poll(&fd, 1, wait_ms(t->publisher)); /* a failed one is short */
        uint64_t count;
        (void)!read(t->wake, &count, sizeof count); /* clears it */
        enum order now = (enum order)atomic_load(&t->ordered);
        if (now == ABANDON)
            break;
        if (now != obeyed)
            publisher_stop(t->publisher, now == WITHDRAW, clock_ms());
        obeyed = now;
        (void)publisher_step(t->publisher,
                             clock_ms()); /* nothing due is fine */
        atomic_store(&t->n_published, publisher_n_published(t->publisher));
    }
    t->left = publisher_due(t->publisher) != PUBLISH_NEVER ||
              publisher_left_slices(t->publisher);
    atomic_store(&t->done, true);
    return NULL;
}

int sim_hosts_start(struct sim_hosts *c, struct error *err)
{
    for (size_t i = 0; i < c->n_threads; i++) {
        struct sim_thread *t = &c->threads[i];
        int code = pthread_create(&t->thread, NULL, work, t);
        if (code != 0)
            return error_set(err, code, "cannot start a thread: %s",
                             strerror(code));
        t->running = true;
    }
    return 0;
}

void sim_hosts_stop(struct sim_hosts *c, bool withdraw)
{
    for (size_t i = 0; i < c->n_threads; i++)
        order(&c->threads[i], withdraw ? WITHDRAW : STOP);
}

size_t sim_hosts_n_nodes(const struct sim_hosts *c)
{
    return c->n_nodes;
}

size_t sim_hosts_n_published(const struct sim_hosts *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_threads; i++)
        n += atomic_load(&c->threads[i].n_published);
    return n;
}

bool sim_hosts_is_done(const struct sim_hosts *c)
{
    bool done = true;
    for (size_t i = 0; i < c->n_threads; i++)
        done &= atomic_load(&c->threads[i].done);
    return done;
}

bool sim_hosts_left_slices(const struct sim_hosts *c)
{
    bool left = false;
    for (size_t i = 0; i < c->n_threads; i++)
        left |= !atomic_load(&c->threads[i].done) || c->threads[i].left;
    return left;
}

/* --- their topologies ----------------------------------------------------- */

/* The n-th of a comma-separated list, beginning anew at its end. */
static int find_shape(const char *shapes, size_t n,
                      const struct host_shape **ret_shape, struct error *err)
{
    if (!shapes || !*shapes) {
        *ret_shape = &host_shapes[n % n_host_shapes];
        return 0;
    }
    size_t count = 1;
    for (const char *p = shapes; (p = strchr(p, ',')); p++)
        count++;
    const char *name = shapes;
    for (size_t i = n % count; i > 0; i--)
        name = strchr(name, ',') + 1;
    cleanup_free char *one = xstrndup(name, strcspn(name, ","));
    *ret_shape = host_shape_find(one);
    if (*ret_shape)
        return 0;
    cleanup_str struct str known = STR_INIT(ERROR_TEXT_MAX / 2);
    for (size_t i = 0; i < n_host_shapes; i++)
        str_addf(&known, "%s%s", i ? ", " : "", host_shapes[i].name);
    return error_set(err, EINVAL, "--fleet-shapes: has \"%.64s\", may have %s",
                     one, str_text(&known));
}

int sim_hosts_topo(const char *prefix, const char *shapes, size_t n,
                   size_t n_nodes, struct topo **ret_topo, struct error *err)
{
    const struct host_shape *shape = NULL;
    char node[SIM_HOSTS_PREFIX_MAX + 24];
    int digits = snprintf(NULL, 0, "%zu", n_nodes);
    if (strlen(prefix) > SIM_HOSTS_PREFIX_MAX)
        return error_set(err, EINVAL,
                         "--fleet-prefix: has %zu characters, the limit is %d",
                         strlen(prefix), SIM_HOSTS_PREFIX_MAX);
    (void)snprintf(node, sizeof node, "%s%0*zu", prefix, digits, n + 1);
    int r = find_shape(shapes, n, &shape, err);
    if (r < 0)
        return r;
    r = hostfile_read(shape->text, strlen(shape->text), node, ret_topo, err);
    return r < 0 ? error_wrap(err, "host %s of shape %s", node, shape->name)
                 : 0;
}
