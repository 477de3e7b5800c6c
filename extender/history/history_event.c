#include "extender/history/history_event.h"

#include <string.h>

#include "lib/base/jwrite.h"
#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"

static const char *const kinds[HISTORY_KINDS] = {"pod", "job", "node", "card"};

static const char *const reasons[HISTORY_REASONS] = {
    [HISTORY_PLANNED] = "Planned",
    [HISTORY_HELD] = "Held",
    [HISTORY_BOUND] = "Bound",
    [HISTORY_REFUSED] = "Refused",
    [HISTORY_STARTED] = "Started",
    [HISTORY_LOST] = "Lost",
    [HISTORY_RECOVERED] = "Recovered",
    [HISTORY_DRAINED] = "Drained",
    [HISTORY_UNDRAINED] = "Undrained",
    [HISTORY_ENDED] = "Ended",
    [HISTORY_FAILED] = "Failed",
    [HISTORY_RELEASED] = "Released",
    [HISTORY_NODE_READY] = "NodeReady",
    [HISTORY_NODE_STALE] = "NodeStale",
    [HISTORY_NODE_INCOMPLETE] = "NodeIncomplete",
    [HISTORY_NODE_LOST] = "NodeLost",
    [HISTORY_NODE_DOUBTFUL] = "NodeDoubtful",
    [HISTORY_NODE_GONE] = "NodeGone",
    [HISTORY_CARD_ADDED] = "CardAdded",
    [HISTORY_CARD_GONE] = "CardGone",
    [HISTORY_EVICTED] = "Evicted",
    [HISTORY_DEGRADED] = "Degraded",
    [HISTORY_STOPPED] = "Stopped",
};

const char *history_kind_name(enum history_kind kind)
{
    return kind < HISTORY_KINDS ? kinds[kind] : "";
}

const char *history_reason_name(enum history_reason reason)
{
    return reason < HISTORY_REASONS ? reasons[reason] : "";
}

static unsigned find(const char *const *names, unsigned n, const char *name)
{
    unsigned i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

enum history_kind history_kind_parse(const char *name)
{
    return (enum history_kind)find(kinds, HISTORY_KINDS, name);
}

enum history_reason history_reason_parse(const char *name)
{
    return (enum history_reason)find(reasons, HISTORY_REASONS, name);
}

bool history_object_is_valid(enum history_kind kind, const char *object)
{
    const char *slash = strchr(object, '/');
    if (strlen(object) > HISTORY_OBJECT_MAX)
        return false;
    if (kind == HISTORY_NODE)
        return *object && !slash;
    return slash && slash > object && slash[1] && !strchr(slash + 1, '/');
}

/* The two parts of "NS/NAME" or "NODE/CARD". */
static void write_parts(struct str *out, const char *first, const char *second,
                        const char *object)
{
    const char *slash = strchr(object, '/');
    cleanup_free char *part = xstrndup(object, slash ? (size_t)(slash - object)
                                                     : strlen(object));
    jwrite_text(out, first, part);
    jwrite_text(out, second, slash ? slash + 1 : "");
}

static void write_object(const struct history_event *e, struct str *out)
{
    if (e->kind == HISTORY_NODE)
        jwrite_text(out, "node", e->object);
    else if (e->kind == HISTORY_CARD)
        write_parts(out, "node", "card", e->object);
    else
        write_parts(out, "namespace", "name", e->object);
}

static void write_time(struct str *out, const char *key, int64_t ms)
{
    char text[RFC3339_SIZE];
    rfc3339_format(ms, text);
    jwrite_text(out, key, text);
}

void history_event_write(const struct history_event *e, struct str *out)
{
    const char *slash = e->job ? strchr(e->job, '/') : NULL;
    jwrite_object(out, NULL);
    jwrite_known(out, "seq", e->seq);
    write_time(out, "time", e->time_ms);
    jwrite_text(out, "kind", history_kind_name(e->kind));
    write_object(e, out);
    if (e->kind == HISTORY_POD || e->kind == HISTORY_JOB)
        jwrite_known_text(out, "node", e->node);
    if (slash) /* of the same namespace */
        jwrite_known_text(out, "job", slash + 1);
    if (e->pair >= 0)
        jwrite_int(out, "pair", e->pair);
    jwrite_text(out, "reason", history_reason_name(e->reason));
    jwrite_text(out, "message", e->message ? e->message : "");
    jwrite_uint(out, "count", e->count ? e->count : 1);
    if (e->last_ms > e->time_ms)
        write_time(out, "last", e->last_ms);
    jwrite_end_object(out);
}
