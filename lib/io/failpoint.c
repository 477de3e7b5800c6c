#include "lib/io/failpoint.h"

#ifdef FAILPOINTS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum action { ACTION_NONE, ACTION_KILL, ACTION_HANG, ACTION_FAIL };

static const char *const names[] = {
    /* the way of a bind */
    "bind-begin",
    "bind-decided",
    "bind-before-write",
    "bind-holds-written",
    "bind-piece-written",
    "bind-after-write",
    "bind-before-commit",
    "bind-after-commit",
    "bind-before-swap",
    "bind-after-swap",
    "bind-before-reply",
    /* and of making it true in the API server */
    "post-before-call",
    "post-after-call",
    "post-before-look",
    /* the way of an event into the history */
    "history-event",
    "history-place",
    "history-before-commit",
    "history-commit",
    "history-after-commit",
    "history-before-aside", /* it is damaged, and there is another */
    "history-after-aside",
    /* The way of a pod on its card, from what is wanted to running: */
    "act-before-wanted", /* nothing is written down yet */
    "act-after-wanted",  /* it is, and nothing was begun */
    "act-before-save",   /* a step is chosen, and not announced */
    "act-after-save",    /* it is announced, and not begun */
    "act-before-prepare",
    "act-after-pad", /* the helper has one, and no file was written */
    "act-after-prepare",
    "act-before-look-image",
    "act-after-look-image",
    "act-before-pull",
    "act-after-pull",
    "act-before-run-sandbox",
    "act-after-run-sandbox", /* it runs, and its id is not noted */
    "act-before-create",
    "act-after-create",
    "act-before-start",
    "act-after-start",
    "act-before-running", /* all run, and that is not written down */
    /* and from the stop to gone: */
    "act-before-unwanted",
    "act-after-unwanted",
    "act-before-stop",
    "act-after-stop",
    "act-before-stop-sandbox",
    "act-after-stop-sandbox",
    "act-before-remove-sandbox",
    "act-after-remove-sandbox",
    "act-before-kept", /* its logs are where they were */
    "act-after-kept",  /* and have a copy */
    "act-before-clean",
    "act-after-clean",
    "act-before-gone", /* nothing is left, and that is not written down */
    "act-before-forget",
    /* of what is in the way */
    "act-before-list",
    "act-after-list",
    "act-before-look",
    "act-after-look",
    "act-before-remove",
    "act-after-remove",
    "act-before-orphan",
    "act-after-orphan",
    /* The way of a call that makes something on a remote: */
    "cri-before-announce", /* nothing is written down yet */
    "cri-after-announce",  /* it is, and nothing was sent */
    "cri-before-look",
    "cri-after-look",
    "cri-before-remove", /* what is in the way */
    "cri-after-remove",
    "cri-before-send",
    "cri-after-send", /* it is made, and its id is not noted */
    "cri-before-record",
    "cri-after-record", /* it is, and the kubelet has not heard of it */
    /* and of its end: */
    "cri-before-forget",
    "cri-after-forget",
    /* a call about one that is on a remote: to there, and to the kubelet */
    "call-before-StartContainer",
    "call-after-StartContainer", /* it is done, and only the remote knows */
    "call-before-StopContainer",
    "call-after-StopContainer",
    "call-before-RemoveContainer",
    "call-after-RemoveContainer",
    "call-before-StopPodSandbox",
    "call-after-StopPodSandbox",
    "call-before-RemovePodSandbox",
    "call-after-RemovePodSandbox",
    "call-before-ExecSync",
    "call-after-ExecSync",
    "call-before-answer",
    /* a log that is copied */
    "log-half-write", /* "fail" writes one; what comes next is not told */
    "log-before-write",
    "log-after-write",
    "log-before-state",
    "log-after-state",
    "log-before-reopen",
    "log-after-create", /* the new file is there, and nobody knows */
    "log-after-reopen",
    /* The way of a claim that is prepared on its node: */
    "claim-before-record",
    "claim-half-file",    /* beside its place, record or CDI file */
    "claim-after-record", /* it is written down, and no CDI file is there */
    "claim-after-file",   /* that is, too, and the kubelet has not heard */
    "claim-before-answer",
    /* and of its end: */
    "claim-before-unfile",
    "claim-after-unfile", /* its record is there still */
    "claim-after-unrecord",
    "claim-before-unanswer",
    "claim-before-sweep", /* nobody has asked for it */
    /* steps that can fail */
    "act-commit",
    "cri-commit",
    "commit",
    "fsync",
    "put-slice",
    NULL,
};

struct point {
    enum action action;
    unsigned long at; /* the hit that counts, from 1; 0: every one */
    atomic_ulong hits;
};

static struct point points[ARRAY_LEN(names) - 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *const *failpoint_names(void)
{
    return names;
}

/* The index of the name of `size` bytes; an unknown one is a mistake. */
static size_t point_index(const char *name, size_t size)
{
    for (size_t i = 0; names[i]; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
            return i;
    abort();
}

static enum action action_parse(const char *text)
{
    static const char *const words[] = {"", "kill", "hang", "fail"};
    for (int i = ACTION_KILL; i <= ACTION_FAIL; i++)
        if (strncmp(text, words[i], 4) == 0)
            return (enum action)i;
    abort();
}

/* $BIGA_FAILPOINTS: "name=action[:hit],…" */
static void points_read(void)
{
    const char *p = getenv("BIGA_FAILPOINTS");
    while (p && *p) {
        const char *is = strchr(p, '=');
        if (!is)
            abort();
        struct point *point = &points[point_index(p, (size_t)(is - p))];
        point->action = action_parse(is + 1);
        size_t size = strcspn(is, ",");
        const char *colon = memchr(is, ':', size);
        point->at = colon ? strtoul(colon + 1, NULL, 10) : 0;
        p = is + size;
        if (*p == ',')
            p++;
    }
}

bool failpoint(const char *name)
{
    (void)pthread_once(&once, points_read); /* cannot fail on Linux */
    struct point *point = &points[point_index(name, strlen(name))];
    unsigned long hit = atomic_fetch_add(&point->hits, 1) + 1;
    if (point->action == ACTION_NONE || (point->at && point->at != hit))
        return false;
    if (point->action == ACTION_KILL)
        (void)kill(getpid(), SIGKILL);
    while (point->action == ACTION_HANG)
        (void)pause(); /* until somebody kills us */
    return point->action == ACTION_FAIL;
}

#endif
