/* Streams that are opened, used, left, cut by remote and by container, counted
 * and stopped, all at the same time, for ThreadSanitizer to watch.
 *
 *   race_stream [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/stream/stream_relay.h"
#include "tests/lib/http/streamrig.h"

enum { N_CLIENTS = 6, ROUNDS = 4, TEXT = 4096 };

static struct stream_rig rigs[2]; /* plain, and TLS */
static atomic_bool stopping;
static atomic_ulong n_whole, n_ended;

/* True when all came back; a stream that was cut is a good end, too. */
static bool use(int fd, unsigned round)
{
    static const char text[TEXT] = "\x82\x7e\x0f\xfc"; /* one frame */
    char back[TEXT];
    if (round == 0)
        return false; /* leaves without a word */
    for (int i = 0; i < 4; i++) {
        if (send(fd, text, sizeof text, MSG_NOSIGNAL) != sizeof text ||
            !stream_rig_read(fd, back, sizeof back))
            return false;
        if (memcmp(text, back, sizeof back) != 0)
            abort();
    }
    return true;
}

static void once(struct stream_rig *rig, unsigned number, unsigned round)
{
    struct stream_plan_ask open = rig->open;
    char name[16], url[STREAM_OWN_URL_MAX];
    struct error err;
    (void)snprintf(name, sizeof name, "c%u", number);
    open.container = name;
    open.remote = number % 2 ? "card-a" : "card-b";
    if (stream_relay_open(rig->relay, &open, url, &err) < 0)
        abort();
    struct raw_reply reply = {0};
    int fd = stream_rig_ask(url, round % 2 ? RIG_SPDY : RIG_WS);
    bool whole = raw_read(fd, true, &reply) == 101 && use(fd, round);
    (void)close(fd);
    raw_reply_fini(&reply);
    atomic_fetch_add(whole ? &n_whole : &n_ended, 1);
}

static void *client(void *arg)
{
    const unsigned number = *(const unsigned *)arg;
    for (unsigned round = 0; !atomic_load(&stopping); round++)
        once(&rigs[number % 3 == 0], number, round % ROUNDS);
    return NULL;
}

static void disturb(struct stream_rig *rig, unsigned round)
{
    struct stream_relay_state state;
    char name[16];
    (void)snprintf(name, sizeof name, "c%u", round % N_CLIENTS);
    if (round % 3 == 0)
        stream_relay_cut_remote(rig->relay, round % 2 ? "card-a" : "card-b",
                                "it does not answer");
    else
        stream_relay_cut_container(rig->relay, name, "it is removed");
    stream_relay_state(rig->relay, &state);
    if (state.streams > N_CLIENTS + state.cut + state.opened)
        abort();
}

int main(int argc, char **argv)
{
    static unsigned numbers[N_CLIENTS];
    pthread_t clients[N_CLIENTS];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    log_set_level((enum log_level)(LOG_ERROR + 1));
    for (int i = 0; i < 2; i++) {
        stream_rig_start(&rigs[i], NULL);
        stream_rig_serve(&rigs[i], i == 1, SERVES_ECHO, NULL, NULL);
    }
    for (unsigned i = 0; i < N_CLIENTS; i++) {
        numbers[i] = i;
        if (pthread_create(&clients[i], NULL, client, &numbers[i]))
            abort();
    }
    int64_t until = clock_ms() + (int64_t)(seconds * 1000);
    for (unsigned round = 0;
         clock_ms() < until || !atomic_load(&n_whole) || !atomic_load(&n_ended);
         round++) {
        disturb(&rigs[round % 2], round / 2);
        (void)usleep(5000);
    }
    atomic_store(&stopping, true);
    for (int i = 0; i < N_CLIENTS; i++)
        (void)pthread_join(clients[i], NULL);
    for (int i = 0; i < 2; i++)
        stream_rig_stop(&rigs[i]);
    printf("%lu whole streams, %lu that were cut or left\n",
           atomic_load(&n_whole), atomic_load(&n_ended));
    return !atomic_load(&n_whole) || !atomic_load(&n_ended);
}
