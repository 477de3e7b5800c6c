#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/log/log_copier_private.h"
#include "router/log/log_stream.h"

enum { FILE_RETRY_MS = 1000 }; /* after a file could not be written */

static struct log_container *find_tag(const struct log_remote *r, uint32_t tag)
{
    size_t from = 0, to = r->n;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (r->list[mid]->tag < tag)
            from = mid + 1;
        else
            to = mid;
    }
    return from < r->n && r->list[from]->tag == tag ? r->list[from] : NULL;
}

static struct log_container *take_tag(struct log_remote *r, uint32_t tag)
{
    struct log_copier *c = r->copier;
    struct log_container *k;
    /* looked for again each time: it may be gone by then */
    while (!c->stopped && (k = find_tag(r, tag)) && k->busy)
        (void)clock_wait(&r->wake, &c->lock, INT64_MAX);
    if (c->stopped || !k)
        return NULL;
    k->busy = true;
    return k;
}

static void complain(struct log_container *k, const char *text)
{
    if (!k->told)
        log_event(LOG_WARN, "log-file", "remote", k->remote->name, "path",
                  k->path, "error", text, NULL);
    k->told = true;
}

/* Its file cannot be written: what is under way for it is void, as it comes
 * again from where the file ends. */
static void put_off(struct log_container *k, const struct error *err)
{
    complain(k, err->text);
    log_container_renew(k);
    k->retry_ms = clock_ms() + FILE_RETRY_MS;
}

static int write_frame(struct log_sink *sink, const struct log_frame *frame,
                       struct error *err)
{
    int rc = frame->offset > log_sink_next(sink)
                 ? log_sink_skip(sink, frame->offset, err)
                 : 0;
    return rc ? rc : log_sink_write(sink, frame->data, frame->size, err);
}

static int apply_data(struct log_remote *r, const struct log_frame *frame,
                      struct error *err)
{
    struct log_copier *c = r->copier;
    struct error fault = {0};
    struct log_container *k = take_tag(r, frame->tag);
    if (!k)
        return 0;
    if (frame->offset < k->next) {
        log_copier_give(k);
        return error_set(err, EPROTO,
                         "remote %s gives byte %" PRIu64 " of %s again",
                         r->name, frame->offset, k->remote_path);
    }
    uint64_t lost = frame->offset - k->next;
    (void)pthread_mutex_unlock(&c->lock);
    int rc = write_frame(k->sink, frame, &fault);
    (void)pthread_mutex_lock(&c->lock);
    k->next = log_sink_next(k->sink);
    if (lost)
        log_event(LOG_WARN, "log-lost", "remote", r->name, "path", k->path,
                  NULL);
    c->counts.lost += lost;
    if (rc) {
        put_off(k, &fault);
    } else {
        c->counts.bytes += frame->size;
        k->told = false;
    }
    log_copier_give(k);
    return 0;
}

/* Make durable what may then go from the remote. */
static void sync_one(struct log_remote *r, uint32_t tag)
{
    struct log_copier *c = r->copier;
    struct error fault = {0};
    uint64_t offset = 0;
    struct log_container *k = take_tag(r, tag);
    if (!k)
        return;
    (void)pthread_mutex_unlock(&c->lock);
    int rc = log_sink_sync(k->sink, &offset, &fault);
    (void)pthread_mutex_lock(&c->lock);
    if (rc)
        complain(k, fault.text);
    else if (offset > k->freed)
        k->freed = offset;
    log_copier_give(k);
}

static void sync_all(struct log_remote *r, uint64_t seq)
{
    for (size_t i = 0; i < r->n; i++) {
        struct log_container *k = r->list[i];
        if (k->sent_seq && k->sent_seq <= seq) {
            k->freed_done = k->freed_sent;
            k->sent_seq = 0;
        }
        if (k->next - k->freed >= r->copier->config.free_step &&
            k->next > k->freed)
            sync_one(r, k->tag);
    }
}

static void apply_word(struct log_remote *r, const struct log_frame *frame)
{
    struct log_container *k = find_tag(r, frame->tag);
    if (!k)
        return;
    bool fault = frame->kind == LOG_FRAME_FAULT;
    if (fault && frame->fault != ENOENT) {
        struct error err;
        (void)error_errno(&err, frame->fault, "%s", k->remote_path);
        complain(k, err.text);
    }
    /* of what cannot be read nothing more comes */
    if (k->ends && (fault || frame->offset == k->next))
        k->done = true;
}

int log_apply(struct log_remote *r, const struct cri_exec *exec, uint64_t seq,
              struct error *err)
{
    struct log_stream s = {.data = str_text(&exec->out),
                           .size = exec->out.size};
    struct log_frame frame;
    size_t size = 0;
    int rc;
    while ((rc = log_stream_next(&s, &frame, err)) > 0) {
        if (frame.kind != LOG_FRAME_DATA) {
            apply_word(r, &frame);
            continue;
        }
        size += frame.size;
        rc = apply_data(r, &frame, err);
        if (rc)
            return rc;
    }
    if (rc)
        return rc;
    r->chatty = size > 0;
    r->full = size >= r->copier->config.round_max / 2;
    sync_all(r, seq);
    return 0;
}
