#include "advertiser/act/stream/join.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/stream/stream_status.h"

/* Of exec and attach, as Kubernetes numbers them. */
enum {
    CHANNEL_IN = 0,
    CHANNEL_OUT = 1,
    CHANNEL_ERR = 2,
    CHANNEL_END = 3,  /* how it ended: a Status */
    CHANNEL_SIZE = 4, /* of the terminal */
    CHANNELS = 5,
    CHANNEL_CLOSE = 255, /* v5: the channel that follows has ended */
    CHUNK = 32 << 10,    /* of a message to the client */
    NORMAL = 1000,       /* why a WebSocket is closed */
    AWAY = 1001,
};

const char *join_protocol(const struct join_config *config)
{
    return config->n_ports ? "portforward.k8s.io" : "v4.channel.k8s.io";
}

/* --- it begins ------------------------------------------------------------- */

static void open_stream(struct join *j, size_t channel,
                        const struct spdy_header *headers, size_t n,
                        struct str *to_runtime)
{
    struct join_stream *s = &j->streams[channel];
    s->id = 2 * j->n_open++ + 1;
    spdy_open(&j->writer, s->id, headers, n, to_runtime);
}

/* The error stream first: runtimes say there what is wrong with the others. */
static void open_streams(struct join *j, const struct join_config *c,
                         struct str *to_runtime)
{
    static const struct {
        size_t channel;
        const char *type;
    } all[] = {{CHANNEL_END, "error"},
               {CHANNEL_IN, "stdin"},
               {CHANNEL_OUT, "stdout"},
               {CHANNEL_ERR, "stderr"},
               {CHANNEL_SIZE, "resize"}};
    const bool wanted[CHANNELS] = {[CHANNEL_END] = true,
                                   [CHANNEL_IN] = c->in,
                                   [CHANNEL_OUT] = c->out,
                                   [CHANNEL_ERR] = c->err && !c->tty,
                                   [CHANNEL_SIZE] = c->tty};
    j->n_streams = CHANNELS;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct spdy_header header = {"streamtype", all[i].type};
        if (wanted[all[i].channel])
            open_stream(j, all[i].channel, &header, 1, to_runtime);
    }
}

/* A message of the client's, whole. */
static void say(size_t channel, const char *data, size_t size,
                struct str *to_client)
{
    ws_frame_head(WS_BINARY, false, size + 1, to_client);
    str_add_c(to_client, (char)channel);
    str_add_n(to_client, data, size);
}

/* Channels 2i and 2i + 1 are data and errors of port i, and begin with its
 * number. */
static void open_port(struct join *j, size_t i, int32_t port,
                      struct str *to_runtime, struct str *to_client)
{
    char text[16], id[16];
    const char number[] = {(char)(port & 0xff), (char)(port >> 8)};
    struct spdy_header headers[] = {
        {"streamtype", "error"}, {"port", text}, {"requestid", id}};
    (void)snprintf(text, sizeof text, "%d", (int)port);
    (void)snprintf(id, sizeof id, "%zu", i);
    open_stream(j, 2 * i + 1, headers, ARRAY_LEN(headers), to_runtime);
    headers[0].value = "data";
    open_stream(j, 2 * i, headers, ARRAY_LEN(headers), to_runtime);
    say(2 * i, number, sizeof number, to_client);
    say(2 * i + 1, number, sizeof number, to_client);
}

void join_init(struct join *j, const struct join_config *config,
               struct str *to_runtime, struct str *to_client)
{
    *j = (struct join){.channel = -1, .forward = config->n_ports > 0};
    if (!j->forward) {
        open_streams(j, config, to_runtime);
        return;
    }
    j->n_streams = 2 * config->n_ports;
    for (size_t i = 0; i < config->n_ports; i++)
        open_port(j, i, config->ports[i], to_runtime, to_client);
}

bool join_reads_client(const struct join *j)
{
    return j->n_open == 0;
}

/* --- from the runtime ------------------------------------------------------ */

static size_t channel_of(const struct join *j, uint32_t id)
{
    size_t i = 0;
    while (i < j->n_streams && (j->streams[i].id != id || id == 0))
        i++;
    return i;
}

static void pass_on(struct join *j, size_t channel, const char *data,
                    size_t size, struct str *to_client)
{
    j->told |= !j->forward && channel == CHANNEL_END && size > 0;
    for (size_t at = 0; at < size; at += CHUNK)
        say(channel, data + at, size - at < CHUNK ? size - at : CHUNK,
            to_client);
}

/* A port-forward is over when no port sends any more. */
static bool is_all_ended(const struct join *j)
{
    for (size_t i = 0; i < j->n_streams; i++)
        if (!j->streams[i].ended)
            return false;
    return true;
}

static int take_piece(struct join *j, const struct spdy_piece *p,
                      struct str *to_runtime, struct str *to_client,
                      struct error *err)
{
    size_t channel = channel_of(j, p->stream);
    struct join_stream *s = channel < j->n_streams ? &j->streams[channel]
                                                   : NULL;
    switch (p->kind) {
    case SPDY_PING:
        spdy_pong(p->stream, to_runtime);
        return 0;
    case SPDY_REPLY:
        if (s && !s->replied)
            j->n_open--;
        if (s)
            s->replied = true;
        break;
    case SPDY_DATA:
        if (s)
            pass_on(j, channel, p->data, p->size, to_client);
        break;
    case SPDY_RESET:
        if (s && !s->replied)
            return error_set(err, EPROTO, "the runtime refused a stream");
        break;
    case SPDY_GOAWAY:
    case SPDY_NOTHING:
        return 0;
    }
    if (s && (p->last || p->kind == SPDY_RESET))
        s->ended = true;
    j->over |= j->forward && is_all_ended(j);
    return 0;
}

int join_from_runtime(struct join *j, const char *data, size_t size,
                      struct str *to_runtime, struct str *to_client,
                      struct error *err)
{
    size_t at = 0;
    while (at < size && !j->over) {
        struct spdy_piece piece;
        ssize_t n = spdy_read(&j->runtime, data + at, size - at, &piece, err);
        if (n < 0)
            return (int)n;
        int r = take_piece(j, &piece, to_runtime, to_client, err);
        if (r < 0)
            return r;
        at += (size_t)n;
    }
    return 0;
}

/* --- from the client ------------------------------------------------------- */

static void shut(struct join *j, size_t channel, struct str *to_runtime)
{
    struct join_stream *s = channel < j->n_streams ? &j->streams[channel]
                                                   : NULL;
    if (s && s->id && !s->shut)
        spdy_data(s->id, "", 0, true, to_runtime);
    if (s)
        s->shut = true;
}

/* What the client may send: the rest is not looked at, as Kubernetes does. */
static bool takes(const struct join *j, size_t channel)
{
    if (channel >= j->n_streams || !j->streams[channel].id ||
        j->streams[channel].shut)
        return false;
    return j->forward ? channel % 2 == 0
                      : channel == CHANNEL_IN || channel == CHANNEL_SIZE;
}

static void take_message(struct join *j, const struct ws_piece *p,
                         struct str *to_runtime)
{
    const char *data = p->data;
    size_t size = p->size;
    if (p->first)
        j->channel = -1;
    if (j->channel < 0 && size > 0) {
        j->channel = (unsigned char)*data++;
        size--;
    }
    if (j->channel == CHANNEL_CLOSE && size > 0) {
        if (takes(j, (unsigned char)*data))
            shut(j, (unsigned char)*data, to_runtime);
        j->channel = CHANNEL_CLOSE - 1; /* of one message one */
    } else if (j->channel >= 0 && takes(j, (size_t)j->channel)) {
        for (size_t at = 0; at < size; at += SPDY_DATA_MAX)
            spdy_data(j->streams[j->channel].id, data + at,
                      size - at < SPDY_DATA_MAX ? size - at : SPDY_DATA_MAX,
                      false, to_runtime);
    }
}

int join_from_client(struct join *j, char *data, size_t size,
                     struct str *to_runtime, struct str *to_client,
                     struct error *err)
{
    size_t at = 0;
    while (at < size && !j->over) {
        struct ws_piece piece;
        ssize_t n = ws_input_read(&j->client, data + at, size - at, &piece,
                                  err);
        if (n < 0)
            return (int)n;
        at += (size_t)n;
        if (piece.kind == WS_CLOSE)
            return error_set(err, ECONNRESET, "the client closed the stream");
        if (piece.kind == WS_BINARY)
            take_message(j, &piece, to_runtime);
        if (piece.kind == WS_PING) {
            ws_frame_head(WS_PONG, false, piece.size, to_client);
            str_add_n(to_client, piece.data, piece.size);
        }
    }
    return 0;
}

/* --- it ends --------------------------------------------------------------- */

void join_end(struct join *j, const char *why, struct str *to_client)
{
    cleanup_str struct str status = STR_INIT(STREAM_STATUS_MAX);
    bool owed = why && !j->told;
    int code = owed ? AWAY : NORMAL;
    if (owed && !j->forward) {
        stream_status_add(503, why, &status);
        say(CHANNEL_END, status.data, status.size, to_client);
    }
    for (size_t i = 1; owed && j->forward && i < j->n_streams; i += 2)
        say(i, why, strnlen(why, JOIN_TEXT_MAX), to_client);
    j->told = j->over = true;
    ws_frame_head(WS_CLOSE, false, 2, to_client);
    str_add_c(to_client, (char)(code >> 8));
    str_add_c(to_client, (char)(code & 0xff));
}
