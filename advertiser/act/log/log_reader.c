#include "advertiser/act/log/log_reader.h"

enum {
    TAIL_MAX = CRI_EXEC_OUTPUT_MAX, /* looked at for the last lines first */
    COUNT_MAX = ACT_LOG_MAX,        /* of a piece when all are counted */
};

void log_reader_init(struct log_reader *r, const struct act_log_ask *ask,
                     const struct log_want *want)
{
    *r = (struct log_reader){.ask = *ask, .want = *want};
    r->ask.lines = true;
    r->ask.max = ask->max ? ask->max : LOG_READER_PIECE;
    r->began = want->tail_lines < 0 || ask->attempt > 0;
}

static void take(struct log_reader *r, const struct act_log *log,
                 struct str *out)
{
    bool other = r->ask.attempt && log->attempt != r->ask.attempt;
    r->pick.want = &r->want; /* it may have been copied */
    log_pick_lines(&r->pick, str_text(&log->text), log->text.size, out);
    r->news = other || log->next != r->ask.offset;
    r->n_short = log->text.size < r->ask.max / 2 ? r->n_short + 1 : 0;
    r->ended = r->pick.full || (r->ask.previous && (other || !r->news));
    if (other)
        r->pick.inside = false; /* half a line at its end is one */
    r->ask.attempt = log->attempt;
    r->ask.offset = log->next;
}

/* More lines are wanted than stand in its last part. */
static int count_all(struct log_reader *r, struct actuator *a, uint64_t end,
                     struct error *err)
{
    struct act_log_ask ask = r->ask;
    uint64_t n = 0, wanted = (uint64_t)r->want.tail_lines;
    while (ask.offset < end) {
        struct act_log log;
        ask.max = COUNT_MAX;
        int e = actuator_logs(a, &ask, &log, err);
        if (e < 0)
            return e;
        bool over = log.attempt != ask.attempt || log.next <= ask.offset;
        n += log_pick_count(str_text(&log.text), log.text.size);
        ask.offset = log.next;
        str_fini(&log.text);
        if (over)
            break;
    }
    r->pick.skip = n > wanted ? n - wanted : 0;
    return 0;
}

static int begin(struct log_reader *r, struct actuator *a, struct str *out,
                 struct error *err)
{
    struct act_log log;
    uint64_t wanted = (uint64_t)r->want.tail_lines;
    struct act_log_ask ask = r->ask;
    ask.tail = true;
    ask.max = TAIL_MAX;
    int e = actuator_logs(a, &ask, &log, err);
    if (e < 0)
        return e;
    uint64_t n = log_pick_count(str_text(&log.text), log.text.size);
    if (n >= wanted || log.next <= log.text.size) {
        r->pick.skip = n > wanted ? n - wanted : 0;
        take(r, &log, out);
        r->news = true; /* how it goes on is asked */
        r->ended = r->pick.full;
    } else {
        r->ask.attempt = log.attempt;
        e = count_all(r, a, log.next, err);
        r->news = true;
    }
    str_fini(&log.text);
    r->began = e == 0;
    return e;
}

int log_reader_next(struct log_reader *r, struct actuator *a, struct str *out,
                    struct error *err)
{
    struct act_log log;
    if (!r->began)
        return begin(r, a, out, err);
    int e = actuator_logs(a, &r->ask, &log, err);
    if (e < 0)
        return e;
    take(r, &log, out);
    str_fini(&log.text);
    return 0;
}
