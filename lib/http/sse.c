#include "lib/http/sse.h"

#include <string.h>

void sse_init(struct sse *s, sse_event_f *each, void *ctx)
{
    *s = (struct sse){.each = each,
                      .ctx = ctx,
                      .line = STR_INIT(SSE_MAX),
                      .event = STR_INIT(SSE_MAX),
                      .data = STR_INIT(SSE_MAX),
                      .id = STR_INIT(SSE_MAX)};
}

void sse_fini(struct sse *s)
{
    str_fini(&s->line);
    str_fini(&s->event);
    str_fini(&s->data);
    str_fini(&s->id);
}

static bool dispatch(struct sse *s)
{
    const struct sse_event event = {.event = s->event.size ? str_text(&s->event)
                                                           : "message",
                                    .id = str_text(&s->id),
                                    .data = str_text(&s->data)};
    bool more = !s->has_data || s->each(s->ctx, &event);
    str_reset(&s->event);
    str_reset(&s->data);
    s->has_data = false;
    return more;
}

static void set(struct str *field, const char *value)
{
    str_reset(field);
    str_add(field, value);
}

/* "field: value", "field:value", "field"; ": a comment" is of no field. */
static bool take_line(struct sse *s)
{
    const char *line = str_text(&s->line);
    size_t n = strcspn(line, ":");
    const char *value = line + n + (line[n] == ':');
    if (!*line)
        return dispatch(s);
    value += *value == ' ';
    if (n == 4 && strncmp(line, "data", n) == 0) {
        if (s->has_data)
            str_add_c(&s->data, '\n');
        str_add(&s->data, value);
        s->has_data = true;
    } else if (n == 5 && strncmp(line, "event", n) == 0) {
        set(&s->event, value);
    } else if (n == 2 && strncmp(line, "id", n) == 0) {
        set(&s->id, value);
    }
    return !s->data.overflow;
}

bool sse_feed(struct sse *s, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char byte = data[i];
        bool same_end = s->cr && byte == '\n';
        s->cr = byte == '\r';
        if (same_end)
            continue;
        if (byte != '\n' && byte != '\r') {
            str_add_c(&s->line, byte ? byte : '?');
            if (s->line.overflow)
                return false;
            continue;
        }
        bool more = take_line(s);
        str_reset(&s->line);
        if (!more)
            return false;
    }
    return true;
}
