/* biga wait */
#include "cli/verb/wait.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "cli/base/names.h"
#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/base/watch.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"

enum {
    OVER = 1000, /* what ends a watch, beside an exit code */
    THINGS_MAX = 1000,
    TIMEOUT_MAX_S = 30 * 24 * 3600,
};

static const char *const state_words[WAIT_STATES + 1] = {
    [WAIT_PLACED] = "placed",   [WAIT_RUNNING] = "running",
    [WAIT_READY] = "ready",     [WAIT_DONE] = "done",
    [WAIT_DELETED] = "deleted",
};

/* --- judging --------------------------------------------------------------- */

static bool is(const cJSON *answer, const char *member, const char *text)
{
    return strcmp(json_text(answer, member), text) == 0;
}

static int judge_job(const cJSON *job, enum wait_for state)
{
    static const char *const counts[] = {[WAIT_PLACED] = "placed",
                                         [WAIT_RUNNING] = "running",
                                         [WAIT_READY] = "ready"};
    bool failed = is(job, "state", "Failed");
    bool over = failed || is(job, "state", "Succeeded");
    if (json_true(job, "deleted"))
        return state == WAIT_DELETED ? 1 : failed ? -1 : 1;
    if (state == WAIT_DELETED)
        return 0;
    if (over || state == WAIT_DONE)
        return failed ? -1 : over;
    return json_number(job, counts[state]) >= json_number(job, "size");
}

static int judge_pod(const cJSON *pod, enum wait_for state)
{
    bool failed = is(pod, "state", "failed"), over = is(pod, "state", "gone");
    if (state == WAIT_DELETED)
        return 0;
    if (failed || over || state == WAIT_DONE)
        return failed ? -1 : over;
    if (state == WAIT_PLACED)
        return !is(pod, "state", "pending");
    return is(pod, "state", "running") &&
           (state == WAIT_RUNNING || json_true(pod, "ready"));
}

int wait_judge(const cJSON *answer, bool job, enum wait_for state)
{
    if (!answer)
        return state == WAIT_DELETED ? 1 : -1;
    return job ? judge_job(answer, state) : judge_pod(answer, state);
}

/* --- looking --------------------------------------------------------------- */

struct waiting {
    struct wait_thing *things;
    size_t n;
    enum wait_for state;
    bool talks;
    bool tells; /* on stdout; else that is JSON, which is complete */
};

static const char *kind_of(const struct wait_thing *t)
{
    return t->job ? "job" : "pod";
}

/* What it says of itself now: "Pending: NoPlace: fits none of 4 nodes". */
static void describe(const cJSON *answer, struct str *out)
{
    const char *state = json_text(answer, "state");
    const char *reason = json_text(answer, "reason");
    const char *message = json_text(answer, "message");
    str_reset(out);
    text_clean(answer ? state : "not known to the server", out);
    str_add(out, *reason || *message ? ": " : "");
    text_clean(reason, out);
    str_add(out, *reason && *message ? ": " : "");
    text_clean(message, out);
}

static void tell(const struct waiting *w, struct wait_thing *t,
                 const char *text)
{
    if (t->told && strcmp(t->told, text) == 0)
        return;
    free(t->told);
    t->told = xstrdup(text);
    if (w->talks)
        fprintf(stderr, "%s %s is to be %s: %s\n", kind_of(t), t->name,
                state_words[w->state], text);
}

/* The answer, or NULL: there is none of that name.  An exit code. */
static int ask(struct cli *c, const struct wait_thing *t, cJSON **ret_json)
{
    cleanup_str struct str path = STR_INIT(4096);
    str_add(&path, t->job ? "/v1/jobs/" : "/v1/pods/");
    cli_add_name(&path, t->name);
    return cli_get_known(c, str_text(&path), ret_json);
}

/* What was never there may be called otherwise. */
static int complain(struct cli *c, const struct waiting *w,
                    const struct wait_thing *t, const cJSON *json,
                    const char *text)
{
    int rc = cli_fail("wait: %s %s will not be %s: it is %s", kind_of(t),
                      t->name, state_words[w->state], text);
    if (!json && !t->told)
        names_hint(c, kind_of(t), t->name);
    return rc;
}

/* 0, or an exit code; OVER and CLI_FAILED: it can never be. */
static int look_at(struct cli *c, const struct waiting *w, struct wait_thing *t)
{
    cleanup_with(json) cJSON *json = NULL;
    cleanup_str struct str text = STR_INIT(8192);
    int rc = ask(c, t, &json);
    if (rc)
        return rc;
    int verdict = wait_judge(json, t->job, w->state);
    describe(json, &text);
    t->met = verdict > 0;
    if (verdict < 0)
        return OVER + complain(c, w, t, json, str_text(&text));
    if (t->met && w->tells)
        cli_line(c, "%s %s is %s", kind_of(t), t->name, state_words[w->state]);
    else if (!t->met)
        tell(w, t, str_text(&text));
    return 0;
}

static int look(struct cli *c, void *ctx)
{
    struct waiting *w = ctx;
    size_t met = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct wait_thing *t = &w->things[i];
        int rc = t->met ? 0 : look_at(c, w, t);
        if (rc)
            return rc;
        met += t->met;
    }
    return met == w->n ? OVER : 0;
}

/* --- the deadline ------------------------------------------------------------ */

static atomic_bool expired;

static void on_alarm(int signal)
{
    (void)signal;
    atomic_store(&expired, true);
    watch_stop();
}

static void set_alarm(int64_t seconds)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL); /* 0: none */
}

static int time_out(const struct waiting *w, int64_t seconds)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->things[i].met)
            (void)cli_fail("wait: %s %s is not %s after %lld s: %s",
                           kind_of(&w->things[i]), w->things[i].name,
                           state_words[w->state], (long long)seconds,
                           w->things[i].told ? w->things[i].told : "?");
    return WAIT_TIMED_OUT;
}

int wait_check(const struct cli *c, const char *verb)
{
    int64_t seconds;
    return settings_seconds(c, verb, 0, TIMEOUT_MAX_S, &seconds);
}

int wait_for_all(struct cli *c, struct wait_thing *things, size_t n,
                 enum wait_for state)
{
    struct waiting w = {.things = things,
                        .n = n,
                        .state = state,
                        .talks = isatty(STDERR_FILENO),
                        .tells = c->form < OUTPUT_JSON};
    int64_t seconds;
    int rc = settings_seconds(c, "wait", 0, TIMEOUT_MAX_S, &seconds);
    if (rc)
        return rc;
    const bool as_json = c->set.json;
    struct str made = c->out; /* a watch prints it as it is */
    if (!w.tells)
        c->out = STR_INIT(STR_MAX_DEFAULT);
    c->set.json = false; /* what it asks is for itself */
    set_alarm(seconds);
    rc = watch_run(c, look, &w, false);
    set_alarm(0);
    c->set.json = as_json;
    if (!w.tells) {
        str_fini(&c->out);
        c->out = made;
    }
    if (rc >= OVER)
        return rc - OVER;
    if (rc == 0 && atomic_load(&expired))
        return time_out(&w, seconds);
    return rc ? rc : cli_fail("wait: interrupted");
}

/* --- the command --------------------------------------------------------------- */

struct chosen {
    struct wait_thing *things;
    size_t n, cap;
};

static void choose(struct chosen *s, bool job, const char *name)
{
    s->things = xgrow(s->things, s->n, &s->cap, sizeof *s->things);
    s->things[s->n++] = (struct wait_thing){.job = job, .name = xstrdup(name)};
}

static void chosen_fini(struct chosen *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->things[i].name);
        free(s->things[i].told);
    }
    free(s->things);
}

/* "pod", "pods", "job", "jobs"; the size of the word; 0: it is none. */
static size_t read_kind(const char *text, bool *ret_job)
{
    size_t n = strcspn(text, "/");
    *ret_job = strncmp(text, "job", 3) == 0;
    bool known = *ret_job || strncmp(text, "pod", 3) == 0;
    bool ends = n == 3 || (n == 4 && text[3] == 's');
    return known && ends ? n : 0;
}

/* All of a kind that --selector chooses. */
static int choose_by_selector(struct cli *c, struct chosen *s, bool job)
{
    cleanup_str struct str path = STR_INIT(4096);
    cleanup_with(json) cJSON *json = NULL;
    const cJSON *x;
    str_add(&path, job ? "/v1/jobs?limit=100000" : "/v1/pods?limit=100000");
    cli_add_query(&path, "namespace", cli_namespace(c));
    int rc = cli_get_known(c, str_text(&path), &json);
    if (rc == 0)
        rc = listing_choose_items(c, json);
    cJSON_ArrayForEach(x, json_list(json, "items"))
    {
        cleanup_free char *name = xasprintf("%s/%s", json_text(x, "namespace"),
                                            json_text(x, "name"));
        if (rc == 0 && !json_true(x, "deleted"))
            choose(s, job, name);
    }
    return rc;
}

static int choose_one(struct cli *c, struct chosen *s, const char *arg)
{
    bool job;
    size_t kind = read_kind(arg, &job);
    const char *name = arg + kind + (arg[kind] == '/');
    if (!kind)
        return cli_usage("wait: \"%s\": must be job/NAME or pod/NAME", arg);
    if (arg[kind] && *name) {
        cleanup_free char *own = xstrdup(name);
        char *qualified = own;
        int rc = cli_qualify(c, "wait", &qualified);
        if (rc == 0)
            choose(s, job, qualified);
        return rc;
    }
    if (!cli_is_given(c, "selector"))
        return cli_usage("wait: \"%s\": which one? %s/NAME, or --selector", arg,
                         job ? "job" : "pod");
    return choose_by_selector(c, s, job);
}

static int read_state(const struct cli *c, enum wait_for *ret_state)
{
    const char *word = c->set.wait_for;
    for (size_t i = 0; i < WAIT_STATES; i++)
        if (strcmp(state_words[i], word) == 0) {
            *ret_state = (enum wait_for)i;
            return 0;
        }
    return cli_usage_word("wait: --for", word, state_words);
}

int verb_wait(struct cli *c, int argc, char **argv)
{
    struct chosen s = {0};
    enum wait_for state = WAIT_DONE;
    int rc = read_state(c, &state);
    for (int i = 0; i < argc && rc == 0; i++)
        rc = choose_one(c, &s, argv[i]);
    if (rc == 0 && s.n > THINGS_MAX)
        rc = cli_usage("wait: %zu are more than %d at once", s.n, THINGS_MAX);
    if (rc == 0)
        rc = wait_for_all(c, s.things, s.n, state);
    chosen_fini(&s);
    return rc;
}
