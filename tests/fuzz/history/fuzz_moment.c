/* Times as people say them, and what a URL asks of the past: ten lines, each a
 * parameter, "-" for one that is not given.  What is accepted is within bounds,
 * and means the same when it is written again; what is not names itself. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/moment.h"
#include "extender/history/history_query.h"
#include "lib/base/mem.h"
#include "lib/io/rfc3339.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW INT64_C(1793541907123)

static void check_moment(const char *text)
{
    char again[RFC3339_SIZE];
    struct error err = {0};
    int64_t ms = -1, back = -1;
    if (moment_parse(text, NOW, &ms, &err) < 0) {
        assert(err.code == EINVAL && err.text[0] && ms == -1);
        return;
    }
    assert(ms >= 0 && ms <= RFC3339_MAX_MS);
    rfc3339_format(ms, again);
    assert(moment_parse(again, NOW, &back, &err) == 0 && back == ms);
}

static void check_query(char *const *line)
{
    const struct history_query_texts t = {line[0], line[1], line[2], line[3],
                                          line[4], line[5], line[6], line[7],
                                          line[8], line[9]};
    struct history_query q;
    struct error err = {0};
    if (history_query_parse(&t, &q, &err) < 0) {
        assert(err.code == EINVAL && err.text[0]);
        return;
    }
    struct history_filter f = history_query_filter(&q);
    assert(!f.object || (f.kind != HISTORY_KINDS &&
                         history_object_is_valid(f.kind, f.object)));
    assert(!f.job || history_object_is_valid(HISTORY_JOB, f.job));
    assert(!f.node || history_object_is_valid(HISTORY_NODE, f.node));
    assert(f.since_ms >= 0 && f.until_ms >= 0);
    assert(f.after <= INT64_MAX);
}

static void check_object(const char *kind, const char *name)
{
    enum history_kind which;
    struct error err = {0};
    int r = history_query_object(kind, name, &which, &err);
    assert(r == 0 || ((r == -ENOENT || r == -EINVAL) && err.text[0]));
    assert(r < 0 || history_object_is_valid(which, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = xstrndup((const char *)data, size);
    char *lines[10] = {0}, *rest = text;
    size_t n = 0;
    for (char *at; n < ARRAY_LEN(lines) && (at = strsep(&rest, "\n"));)
        lines[n++] = strcmp(at, "-") == 0 ? NULL : at;
    for (size_t i = 0; i < n; i++)
        if (lines[i])
            check_moment(lines[i]);
    check_query(lines);
    if (lines[0] && lines[2])
        check_object(lines[0], lines[2]);
    return 0;
}
