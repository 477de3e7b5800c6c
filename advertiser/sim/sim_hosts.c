#include "advertiser/sim/sim_hosts.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/io/clock.h"

enum order { GO, STOP, WITHDRAW, ABANDON };

struct hand {
    struct publisher *fleet; /* the thread's, once it runs */
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
    struct hand hands[SIM_HOSTS_THREADS_MAX];
    size_t n_hands, n_nodes;
};

int sim_hosts_create(const struct publish_kind *kind,
                     const struct publish_config *config,
                     const struct sender_config *sender, size_t n_threads,
                     struct sim_hosts **ret_crew, struct error *err)
{
    cleanup_with(sim_hosts) struct sim_hosts *c = xcalloc(1, sizeof *c);
    if (n_threads > SIM_HOSTS_THREADS_MAX)
        n_threads = SIM_HOSTS_THREADS_MAX;
    for (; c->n_hands < n_threads; c->n_hands++) {
        struct hand *h = &c->hands[c->n_hands];
        h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (h->wake < 0)
            return error_errno(err, errno, "eventfd");
        int r = sender_create(sender, &h->sender, err);
        if (r < 0) {
            (void)close(h->wake); /* nothing is kept in it */
            return r;
        }
        h->fleet = publisher_create(kind, config, sender_send, h->sender);
    }
    *ret_crew = steal(&c);
    return 0;
}

static void order(struct hand *h, enum order what)
{
    const uint64_t one = 1;
    atomic_store(&h->ordered, (int)what);
    /* a counter that is full wakes as well */
    (void)!write(h->wake, &one, sizeof one);
}

void sim_hosts_destroy(struct sim_hosts *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_hands; i++)
        order(&c->hands[i], ABANDON);
    for (size_t i = 0; i < c->n_hands; i++) {
        struct hand *h = &c->hands[i];
        if (h->running)
            (void)pthread_join(h->thread, NULL); /* ours: joinable */
        publisher_destroy(h->fleet);
        sender_destroy(h->sender);
        (void)close(h->wake); /* nothing is kept in it */
    }
    free(c);
}

void sim_hosts_add(struct sim_hosts *c, struct topo *topo)
{
    (void)publisher_add(c->hands[c->n_nodes++ % c->n_hands].fleet, topo,
                        clock_ms());
}

static int wait_ms(const struct publisher *f)
{
    int64_t ms = publisher_due(f) - clock_ms();
    return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

static void *work(void *arg)
{
    struct hand *h = arg;
    struct pollfd fd = {.fd = h->wake, .events = POLLIN};
    enum order obeyed = GO;
    while (publisher_due(h->fleet) != PUBLISH_NEVER) {
        (void)poll(&fd, 1, wait_ms(h->fleet)); /* a failed one is short */
        uint64_t count;
        (void)!read(h->wake, &count, sizeof count); /* clears it */
        enum order now = (enum order)atomic_load(&h->ordered);
        if (now == ABANDON)
            break;
        if (now != obeyed)
            publisher_stop(h->fleet, now == WITHDRAW, clock_ms());
        obeyed = now;
        (void)publisher_step(h->fleet, clock_ms()); /* nothing due is fine */
        atomic_store(&h->n_published, publisher_n_published(h->fleet));
    }
    h->left = publisher_due(h->fleet) != PUBLISH_NEVER ||
              publisher_left_slices(h->fleet);
    atomic_store(&h->done, true);
    return NULL;
}

int sim_hosts_start(struct sim_hosts *c, struct error *err)
{
    for (size_t i = 0; i < c->n_hands; i++) {
        struct hand *h = &c->hands[i];
        int code = pthread_create(&h->thread, NULL, work, h);
        if (code != 0)
            return error_set(err, code, "cannot start a thread: %s",
                             strerror(code));
        h->running = true;
    }
    return 0;
}

void sim_hosts_stop(struct sim_hosts *c, bool withdraw)
{
    for (size_t i = 0; i < c->n_hands; i++)
        order(&c->hands[i], withdraw ? WITHDRAW : STOP);
}

size_t sim_hosts_n_nodes(const struct sim_hosts *c)
{
    return c->n_nodes;
}

size_t sim_hosts_n_published(const struct sim_hosts *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_hands; i++)
        n += atomic_load(&c->hands[i].n_published);
    return n;
}

bool sim_hosts_is_done(const struct sim_hosts *c)
{
    bool done = true;
    for (size_t i = 0; i < c->n_hands; i++)
        done &= atomic_load(&c->hands[i].done);
    return done;
}

bool sim_hosts_left_slices(const struct sim_hosts *c)
{
    bool left = false;
    for (size_t i = 0; i < c->n_hands; i++)
        left |= !atomic_load(&c->hands[i].done) || c->hands[i].left;
    return left;
}
