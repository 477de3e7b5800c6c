/* HTTP/2: requests that are resumed by another thread while their clients
 * send more, take them back and hang up, certificates change, and the server
 * stops in the end; for some seconds, for ThreadSanitizer to watch.
 *
 *   race_h2 [SECONDS]
 */
#include <pthread.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/h2rig.h"

enum { N_CLIENTS = 3, PER_CONNECTION = 24 };

static struct h2_server *server;
static atomic_bool stopping, resuming = true;
static atomic_ulong n_good, n_bad, n_left;

/* Reads until so many replies have ended. */
static void take(struct h2_client *c, unsigned n)
{
    while (n > 0 && h2_client_read(c)) {
        if (c->type == NGHTTP2_RST_STREAM ||
            (c->type == NGHTTP2_DATA && c->flags & NGHTTP2_FLAG_END_STREAM)) {
            n--;
            atomic_fetch_add(c->status == 200 ? &n_good : &n_bad, 1);
        }
    }
    atomic_fetch_add(&n_bad, n);
}

static void converse(struct h2_client *c, unsigned round)
{
    static const char *const paths[] = {"/wait?n=a", "/", "/wait?n=b",
                                        "/nothing"};
    const uint32_t cancel = 0x08000000;
    unsigned n = 0;
    for (unsigned i = 0; i < PER_CONNECTION; i++) {
        int32_t id = (int32_t)(2 * i + 1);
        if (!h2_client_get(c, id, paths[i % 3]))
            return;
        if (i % 5 == 4)
            (void)h2_client_frame(c, NGHTTP2_RST_STREAM, 0, id, &cancel, 4);
        else
            n++;
    }
    if (round % 3 == 2)
        atomic_fetch_add(&n_left, 1); /* hangs up */
    else
        take(c, n);
}

static void *ask(void *arg)
{
    const struct tls_client_config how = h2_server_me(server);
    (void)arg;
    for (unsigned round = 0; !atomic_load(&stopping); round++) {
        struct h2_client c;
        if (!h2_client_open(&c, &how, true)) {
            atomic_fetch_add(&n_bad, 1);
            continue;
        }
        converse(&c, round);
        h2_client_close(&c);
    }
    return NULL;
}

static void *resume(void *arg)
{
    (void)arg;
    while (atomic_load(&resuming)) {
        unsigned n = atomic_load(&server->n_resumed);
        if (n == atomic_load(&server->n_waiting)) {
            (void)usleep(100);
            continue;
        }
        struct httpd_request *rq =
            atomic_load(&server->waiting[n % H2_WAITING_MAX]);
        atomic_store(&server->n_resumed, n + 1);
        httpd_resume(rq);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t clients[N_CLIENTS], resumer;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    server = h2_server_create(0, 0);
    if (pthread_create(&resumer, NULL, resume, NULL) != 0)
        return 1;
    for (int i = 0; i < N_CLIENTS; i++)
        if (pthread_create(&clients[i], NULL, ask, NULL) != 0)
            return 1;
    int64_t end = clock_ms() + (int64_t)(seconds * 1000);
    for (unsigned round = 0; clock_ms() < end || !atomic_load(&n_good);
         round++) {
        cert_write(server->authority, server->ca);
        tls_poll(server->tls);
        (void)usleep(20000);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(clients[i], NULL);
    httpd_stop(steal(&server->httpd)); /* what waits is resumed meanwhile */
    atomic_store(&resuming, false);
    (void)pthread_join(resumer, NULL);
    printf("%lu good answers, %lu bad, %lu clients hung up\n",
           atomic_load(&n_good), atomic_load(&n_bad), atomic_load(&n_left));
    h2_server_destroy(server);
    return atomic_load(&n_bad) || !atomic_load(&n_good);
}
