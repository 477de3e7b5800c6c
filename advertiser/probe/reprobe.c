#include "advertiser/probe/reprobe.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "advertiser/describe/cardfile.h"
#include "lib/base/mem.h"
#include "lib/io/thread_name.h"

struct reprobe {
    struct reprobe_config config;
    int fd;
    bool running, again;
    pthread_t thread;
    /* written by the thread before it signals the descriptor */
    int result;
    struct topo *topo;
    struct error err;
};

int reprobe_run(const struct reprobe_config *config, struct topo **ret_topo,
                struct error *err)
{
    cleanup_with(cardfile) struct cardfile *cards = NULL;
    if (config->card_file && *config->card_file) {
        int r = cardfile_load(config->card_file, &cards, err);
        if (r < 0)
            return r;
    }
    return probe_run(&config->source, config->node, cards, ret_topo, err);
}

int reprobe_create(const struct reprobe_config *config,
                   struct reprobe **ret_reprobe, struct error *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "eventfd");
    struct reprobe *r = xcalloc(1, sizeof *r);
    r->config = *config;
    r->fd = fd;
    *ret_reprobe = r;
    return 0;
}

void reprobe_destroy(struct reprobe *r)
{
    if (!r)
        return;
    if (r->running) {
        /* it still writes here; who stops us does not wait for hwloc */
        (void)pthread_detach(r->thread);
        return;
    }
    topo_unref(r->topo);
    (void)close(r->fd); /* nothing is kept in it */
    free(r);
}

static void *look(void *arg)
{
    struct reprobe *r = arg;
    const uint64_t one = 1;
    thread_name("reprobe", NULL);
    r->result = reprobe_run(&r->config, &r->topo, &r->err);
    /* a counter at 0 takes a 1 without blocking */
    ssize_t n = write(r->fd, &one, sizeof one);
    assert(n == sizeof one);
    (void)n;
    return NULL;
}

int reprobe_start(struct reprobe *r, struct error *err)
{
    if (r->running) {
        r->again = true;
        return 0;
    }
    int code = pthread_create(&r->thread, NULL, look, r);
    if (code != 0)
        return error_set(err, code, "cannot start a thread: %s",
                         strerror(code));
    r->running = true;
    return 0;
}

int reprobe_fd(const struct reprobe *r)
{
    return r->fd;
}

int reprobe_finish(struct reprobe *r, struct topo **ret_topo, struct error *err)
{
    uint64_t count;
    if (!r->running)
        return error_set(err, EAGAIN, "no look is under way");
    (void)pthread_join(r->thread, NULL);      /* a thread of ours: joinable */
    (void)!read(r->fd, &count, sizeof count); /* clears it */
    r->running = false;
    int result = r->result;
    if (result == 0) {
        *ret_topo = r->topo;
        r->topo = NULL;
    } else {
        *err = r->err;
    }
    if (r->again) {
        struct error ignored; /* the next interval looks again */
        r->again = false;
        (void)reprobe_start(r, &ignored);
    }
    return result;
}
