/* A remote that was not heard since this process began: what is written down
 * of it is told, in the state that the router of before told or saw last, and
 * as long as nobody knows better, that it runs.  What no list has the kubelet
 * would take for gone, and begin again. */
#include <stdio.h>
#include <string.h>

#include "lib/io/clock.h"
#include "lib/io/log.h"
#include "router/serve/serve_guess.h"
#include "router/wire/edit.h"

static bool is_of(const struct kept *k, struct far *far, enum kept_kind kind)
{
    return k->kind == kind && k->state == KEPT_MADE &&
           strcmp(k->remote, remote_name(far->remote)) == 0;
}

/* The kubelet passes over a container without an image, and makes it once
 * more. */
static void add_image(const struct kept *k, uint32_t image, uint32_t ref,
                      struct str *out)
{
    size_t opened = proto_open(out, image);
    proto_add_text(out, CRI_ImageSpec_image, k->image);
    proto_close(out, opened);
    proto_add_text(out, ref, k->image);
}

/* Both messages begin with the id. */
static void add_item(const struct kept *k, uint32_t state, struct str *out)
{
    bool container = k->kind == KEPT_CONTAINER;
    size_t opened = proto_open(out, LIST_ITEMS);
    proto_add_text(out, CRI_Container_id, k->id);
    if (container) {
        proto_add_text(out, CRI_Container_pod_sandbox_id, k->sandbox_id);
        add_image(k, CRI_Container_image, CRI_Container_image_ref, out);
    }
    proto_add_varint(
        out, container ? CRI_Container_state : CRI_PodSandbox_state, state);
    proto_close(out, opened);
}

/* Of a sandbox that is ready it is 0. */
static uint32_t state_of(const struct kept *k, const struct remote_view *v)
{
    uint32_t state = k->kind == KEPT_CONTAINER ? CRI_RUNNING : 0;
    (void)remote_view_state(v, k->id, &state);
    return k->ended.size ? CRI_EXITED : state;
}

static enum kept_kind kind_of(const struct method *m)
{
    return m->id == METHOD_LIST_CONTAINERS || m->id == METHOD_STREAM_CONTAINERS
               ? KEPT_CONTAINER
               : KEPT_SANDBOX;
}

void serve_guess_list(struct far *far, const struct method *m, struct str *out)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(far->s->keep);
    cleanup_with(remote_view) struct remote_view *had =
        remote_view(far->remote);
    for (size_t i = 0; i < keep_view_count(v); i++) {
        const struct kept *k = keep_view_at(v, i);
        if (is_of(k, far, kind_of(m)))
            add_item(k, state_of(k, had), out);
    }
}

void serve_guess_status(const struct kept *k, struct str *out)
{
    size_t opened = proto_open(out, CRI_ContainerStatusResponse_status);
    proto_add_text(out, CRI_ContainerStatus_id, k->id);
    if (k->kind == KEPT_CONTAINER && !k->ended.size) {
        proto_add_varint(out, CRI_ContainerStatus_state, CRI_RUNNING);
        proto_add_varint(out, CRI_ContainerStatus_started_at, 1); /* as made */
        add_image(k, CRI_ContainerStatus_image, CRI_ContainerStatus_image_ref,
                  out);
    }
    str_add_n(out, k->ended.data, k->ended.size);
    proto_close(out, opened);
}

bool serve_is_silent(struct far *far)
{
    cleanup_with(remote_view) struct remote_view *v = remote_view(far->remote);
    return remote_view_time(v) == 0;
}

/* --- what was just made --------------------------------------------------------
 */

struct just_made {
    char id[KEPT_ID_MAX + 1];
    int64_t ms;
};

void serve_made(struct far *far, const char *id)
{
    hold_lock(&far->s->hearing);
    far->made = xgrow(far->made, far->n_made, &far->cap_made,
                      sizeof *far->made);
    struct just_made *m = &far->made[far->n_made++];
    (void)snprintf(m->id, sizeof m->id, "%s", id);
    m->ms = clock_ms();
}

static bool has(struct proto_bytes list, const char *id)
{
    struct proto_reader r;
    struct proto_field f;
    proto_reader_init(&r, list);
    while (proto_next(&r, &f, NULL) > 0)
        if (f.kind == PROTO_BYTES &&
            proto_equals(edit_bytes(f.bytes, CRI_Container_id), id))
            return true;
    return false;
}

void serve_guess_made(struct far *far, const struct method *m, int64_t view_ms,
                      struct proto_bytes list, struct str *out)
{
    size_t n = 0;
    hold_lock(&far->s->hearing);
    for (size_t i = 0; i < far->n_made; i++) {
        const struct just_made made = far->made[i];
        if (made.ms < view_ms)
            continue; /* lists know better from then on */
        far->made[n++] = made;
        struct kept *k = keep_find(far->s->keep, made.id);
        if (k && is_of(k, far, kind_of(m)) && !has(list, made.id))
            add_item(k, 0, out); /* created, or ready */
        kept_unref(k);
    }
    far->n_made = n;
}

/* --- at the start ---------------------------------------------------------------
 */

void serve_heard(struct far *far)
{
    hold_lock(&far->s->hearing);
    far->heard = true;
    (void)pthread_cond_broadcast(&far->s->heard);
}

/* A card that answers has been listed within some ms: then nothing need be
 * guessed. */
static bool wait_one(struct far *far, int64_t due_ms)
{
    hold_lock(&far->s->hearing);
    while (!far->heard)
        if (!clock_wait(&far->s->heard, &far->s->hearing, due_ms))
            return false;
    return true;
}

static bool has_any(struct far *far)
{
    cleanup_with(keep_view) struct keep_view *v = keep_view(far->s->keep);
    for (size_t i = 0; i < keep_view_count(v); i++)
        if (strcmp(keep_view_at(v, i)->remote, remote_name(far->remote)) == 0)
            return true;
    return false;
}

void serve_hear_all(struct serve *s)
{
    int64_t due_ms = clock_ms() + SERVE_HEAR_MS;
    for (size_t i = 0; i < s->n_fars; i++) {
        struct far *far = &s->fars[i];
        if (has_any(far) && wait_one(far, due_ms) && serve_is_silent(far))
            (void)remote_fresh(far->remote, due_ms, NULL); /* else guessed */
        if (has_any(far) && serve_is_silent(far))
            log_event(LOG_WARN, "remote-guessed", "remote",
                      remote_name(far->remote), NULL);
    }
}
