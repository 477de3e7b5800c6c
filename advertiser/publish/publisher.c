#include "advertiser/publish/publisher.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "lib/base/mem.h"

struct publisher {
    const struct publish_kind *kind;
    const struct publish_config *config;
    publisher_send_f *send;
    void *ctx;
    struct publish_machine **machines; /* of that kind */
    size_t n, machines_cap;
    size_t *heap; /* indexes of machines, the earliest due on top */
    size_t heap_cap;
    size_t n_published;
    bool down; /* the last request had no answer: only the top tries on */
    struct publish_request request;
    struct http_answer answer;
};

struct publisher *publisher_create(const struct publish_kind *kind,
                                   const struct publish_config *config,
                                   publisher_send_f *send, void *ctx)
{
    struct publisher *f = xcalloc(1, sizeof *f);
    f->kind = kind;
    f->config = config;
    f->send = send;
    f->ctx = ctx;
    f->request.body.max = SLICE_BODY_MAX;
    f->answer.body.max = SLICE_POOL_SLICES_MAX * SLICE_BODY_MAX;
    return f;
}

void publisher_destroy(struct publisher *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        f->kind->destroy(f->machines[i]);
    free(f->machines);
    free(f->heap);
    str_fini(&f->request.body);
    str_fini(&f->answer.body);
    free(f);
}

/* --- the heap ----------------------------------------------------------- */

static int64_t due_at(const struct publisher *f, size_t place)
{
    return f->machines[f->heap[place]]->due;
}

static void swap_places(struct publisher *f, size_t a, size_t b)
{
    size_t held = f->heap[a];
    f->heap[a] = f->heap[b];
    f->heap[b] = held;
}

static void sift_up(struct publisher *f, size_t place)
{
    while (place > 0 && due_at(f, place) < due_at(f, (place - 1) / 2)) {
        swap_places(f, place, (place - 1) / 2);
        place = (place - 1) / 2;
    }
}

static void sift_down(struct publisher *f, size_t place)
{
    for (;;) {
        size_t least = place;
        for (size_t c = 2 * place + 1; c <= 2 * place + 2 && c < f->n; c++)
            if (due_at(f, c) < due_at(f, least))
                least = c;
        if (least == place)
            return;
        swap_places(f, place, least);
        place = least;
    }
}

static void rebuild_heap(struct publisher *f)
{
    for (size_t i = f->n / 2; i-- > 0;)
        sift_down(f, i);
}

/* --- nodes -------------------------------------------------------------- */

size_t publisher_add(struct publisher *f, struct topo *topo, int64_t now_ms)
{
    const char *node = topo_node(topo);
    uint64_t seed = hash_bytes(node, strlen(node)) ^ (uint64_t)now_ms;
    f->machines = xgrow(f->machines, f->n, &f->machines_cap,
                        sizeof *f->machines);
    f->heap = xgrow(f->heap, f->n, &f->heap_cap, sizeof *f->heap);
    f->machines[f->n] = f->kind->create(f->config, topo, seed, now_ms);
    f->heap[f->n] = f->n;
    f->n++;
    sift_up(f, f->n - 1);
    f->down = false;
    return f->n - 1;
}

void publisher_update(struct publisher *f, size_t index, struct topo *topo,
                      int64_t now_ms)
{
    f->kind->update(f->machines[index], topo, now_ms);
    if (!f->down)
        rebuild_heap(f);
}

void publisher_notice(struct publisher *f, size_t index,
                      const struct publish_notice *notice, int64_t now_ms)
{
    if (!f->kind->notice)
        return;
    f->kind->notice(f->machines[index], notice, now_ms);
    if (!f->down)
        rebuild_heap(f);
}

void publisher_stop(struct publisher *f, bool withdraw, int64_t now_ms)
{
    for (size_t i = 0; i < f->n; i++)
        f->kind->stop(f->machines[i], withdraw, now_ms);
    f->down = false;
    rebuild_heap(f);
}

int64_t publisher_due(const struct publisher *f)
{
    return f->n ? due_at(f, 0) : PUBLISH_NEVER;
}

bool publisher_step(struct publisher *f, int64_t now_ms)
{
    if (f->n == 0)
        return false;
    struct publish_machine *m = f->machines[f->heap[0]];
    if (!f->kind->next(m, now_ms, &f->request))
        return false;

    cleanup_str struct str text = STR_INIT(ERROR_TEXT_MAX);
    struct error err;
    struct publish_answer a = {0};
    bool before = m->published;
    if (f->send(f->ctx, &f->request, &f->answer, &err) == 0) {
        a.status = f->answer.status;
        a.body = f->answer.body.data;
        a.body_size = f->answer.body.size;
        if (a.status >= 300) {
            http_answer_error(&f->answer, &text);
            a.error = str_text(&text);
        }
    } else {
        a.error = err.text;
    }
    f->kind->answer(m, now_ms, &a);
    f->n_published += !before && m->published;
    bool was_down = f->down;
    f->down = a.status == 0 && !m->stopping;
    if (was_down && !f->down)
        rebuild_heap(f); /* updates may have come in between */
    else if (!f->down)
        sift_down(f, 0);
    return true;
}

size_t publisher_n_published(const struct publisher *f)
{
    return f->n_published;
}

bool publisher_left_slices(const struct publisher *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->machines[i]->left_slices)
            return true;
    return false;
}
