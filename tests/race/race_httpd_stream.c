/* Replies that are written bit by bit, over HTTP/1.1, TLS and HTTP/2: written
 * and ended by other threads while their clients read, pause and hang up, and
 * the server stops in the end; for some seconds, for ThreadSanitizer to watch.
 *
 *   race_httpd_stream [SECONDS]
 */
#include <pthread.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/io/clock.h"
#include "tests/lib/http/streamget.h"

enum {
    N_CLIENTS = 4,
    PIECE = 3000,
    PIECES = 40,
    /* how a reply ends, the first byte of each of its pieces */
    WHOLE = 'w',
    BROKEN = 'b',
};

static struct streamd *servers[STREAM_WAYS];
/* the servers, which takes a while; and all of them have */
static atomic_bool stopping, stopped;
static atomic_ulong n_whole, n_left, n_bad;

/* Writes all streams of a server, a piece of each in turn. */
static void *write_run(void *arg)
{
    struct streamd *server = arg;
    unsigned written[STREAM_GET_MAX] = {0};
    static const char pieces[2][PIECE] = {{WHOLE}, {BROKEN}};
    for (unsigned open = 1; open > 0 || !atomic_load(&stopped);) {
        unsigned n = atomic_load(&server->n);
        open = 0;
        for (unsigned i = 0; i < n; i++) {
            struct httpd_stream *s = atomic_load(&server->streams[i]);
            if (!s || written[i] > PIECES)
                continue;
            open++;
            bool breaks = i % 7 == 6;
            int r = httpd_stream_write(s, pieces[breaks], PIECE);
            bool gone = httpd_stream_gone(s);
            if (r == 0)
                written[i]++;
            if (r == -EPIPE || gone || written[i] == PIECES) {
                written[i] = PIECES + 1;
                if (breaks)
                    httpd_stream_break(s);
                else
                    httpd_stream_end(s);
            }
        }
        (void)usleep(200);
    }
    return NULL;
}

/* A client has what was written, and sees whether that is all of it.  Servers
 * that stop refuse requests and cut replies, too. */
static bool good(const struct stream_get *get, bool stops)
{
    bool whole = get->code == CURLE_OK;
    if (stops && (!whole || get->status == 503))
        return true;
    if (get->status != 200 || get->body.size == 0)
        return false;
    return get->body.data[0] == BROKEN
               ? !whole
               : whole && get->body.size == PIECES * PIECE;
}

static void judge(const struct stream_get *get, const struct streamd *server)
{
    bool stops = atomic_load(&stopping);
    if (!good(get, stops)) {
        atomic_fetch_add(&n_bad, 1);
        printf("%s%s: %s, status %ld, %zu bytes\n",
               stream_way_names[server->way], stops ? " that stops" : "",
               curl_easy_strerror(get->code), get->status, get->body.size);
    } else if (get->code == CURLE_OK && get->status == 200) {
        atomic_fetch_add(&n_whole, 1);
    }
}

static void *read_run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned round = 0; !atomic_load(&stopped); round++) {
        struct streamd *server = servers[(round + seed) % STREAM_WAYS];
        struct stream_get get;
        if (atomic_load(&server->n) + N_CLIENTS >= STREAM_GET_MAX)
            break;
        stream_get_begin(&get, server);
        if (round % 4 == 3) {
            stream_get_until(&get, 2 * PIECE); /* and hangs up */
            atomic_fetch_add(&n_left, 1);
        } else {
            stream_get_until(&get, 2 * PIECE);
            (void)usleep(round % 3 * 1000);
            stream_get_until(&get, SIZE_MAX);
            judge(&get, server);
        }
        stream_get_close(&get);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t readers[N_CLIENTS], writers[STREAM_WAYS];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    const struct httpd_config config = {.request_ms = 600000, .reply_ms = 80};
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    for (int i = 0; i < STREAM_WAYS; i++) {
        servers[i] = streamd_open((enum stream_way)i, &config);
        if (pthread_create(&writers[i], NULL, write_run, servers[i]) != 0)
            return 1;
    }
    for (uintptr_t i = 0; i < N_CLIENTS; i++)
        if (pthread_create(&readers[i], NULL, read_run, (void *)i) != 0)
            return 1;
    int64_t end = clock_ms() + (int64_t)(seconds * 1000);
    while (clock_ms() < end || (!atomic_load(&n_whole) && !atomic_load(&n_bad)))
        (void)usleep(20000);
    atomic_store(&stopping, true);
    /* while streams are open */
    for (int i = 0; i < STREAM_WAYS; i++)
        httpd_stop(steal(&servers[i]->httpd));
    atomic_store(&stopped, true);
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(readers[i], NULL);
    for (int i = 0; i < STREAM_WAYS; i++) {
        (void)pthread_join(writers[i], NULL);
        streamd_close(servers[i]);
    }
    printf("%lu whole, %lu left, %lu bad\n", atomic_load(&n_whole),
           atomic_load(&n_left), atomic_load(&n_bad));
    return atomic_load(&n_bad) != 0;
}
