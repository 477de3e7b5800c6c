#include "extender/achieved/achieved_marks.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/state/draft.h"
#include "tests/lib/sim/simfleet.h"
#include "tests/lib/sim/simhost.h"

struct heard {
    unsigned n_lost, n_again, n_back;
    char pod[64], text[1024];
};

static void on_lost(void *ctx, const struct allocation *a, const char *text,
                    bool again)
{
    struct heard *h = ctx;
    h->n_lost += !again;
    h->n_again += again;
    (void)snprintf(h->pod, sizeof h->pod, "%s", a->demand.name);
    (void)snprintf(h->text, sizeof h->text, "%s", text);
}

static void on_back(void *ctx, const struct allocation *a)
{
    struct heard *h = ctx;
    h->n_back++;
    (void)snprintf(h->pod, sizeof h->pod, "%s", a->demand.name);
}

/* A pod that was promised the card at 12:00.0. */
static struct snapshot *place(struct snapshot *base, const char *name)
{
    struct demand d = {.namespace = "ns", .role = ROLE_SERVICE};
    (void)snprintf(d.name, sizeof d.name, "%s", name);
    (void)snprintf(d.uid, sizeof d.uid, "uid-%s", name);
    struct draft *draft = draft_create(base);
    struct allocation *a = allocation_create(&d, "node000");
    a->cards = xcalloc(1, sizeof *a->cards);
    (void)snprintf(a->cards[0], sizeof a->cards[0], "card-0000-12-00");
    a->n_cards = 1;
    a->numa = -1;
    draft_allocate(draft, a);
    return draft_commit(draft);
}

static struct achieved_report *on(const char *pod, const char *card)
{
    struct achieved_report *r = NULL;
    struct error err = {0};
    cleanup_free char *json = xasprintf(
        "{\"node\":\"node000\",\"pods\":[{\"namespace\":\"ns\",\"name\":"
        "\"%s\",\"cards\":[\"0000:%s\"]}]}",
        pod, card);
    cr_assert_eq(achieved_report_parse(json, strlen(json), &r, &err), 0, "%s",
                 err.text);
    return r;
}

static void expect(const struct heard *h, unsigned lost, unsigned again,
                   unsigned back)
{
    cr_expect_eq(h->n_lost, lost, "%u, not %u lost", h->n_lost, lost);
    cr_expect_eq(h->n_again, again, "%u, not %u again", h->n_again, again);
    cr_expect_eq(h->n_back, back, "%u, not %u back", h->n_back, back);
}

Test(achieved_marks, tell_each_mismatch_once)
{
    struct heard heard = {0};
    const struct achieved_told told = {on_lost, on_back, &heard};
    struct achieved_marks *m = achieved_marks_create(&told);
    cleanup_with(snapshot) struct snapshot *bare = simfleet_create(1, 4);
    cleanup_with(snapshot) struct snapshot *s = place(bare, "p");
    cleanup_with(snapshot) struct snapshot *more = place(s, "q");
    cleanup_with(achieved_report) struct achieved_report *wrong = on("p",
                                                                     "22:00.0");
    cleanup_with(achieved_report) struct achieved_report *worse = on("p",
                                                                     "23:00.0");
    cleanup_with(achieved_report) struct achieved_report *right = on("p",
                                                                     "12:00.0");
    achieved_marks_look(m, bare, &wrong, 1, false);
    expect(&heard, 0, 0, 0); /* nothing was promised yet */
    achieved_marks_look(m, s, &wrong, 1, false);
    expect(&heard, 1, 0, 0);
    cr_expect_str_eq(heard.pod, "p");
    cr_expect(strstr(heard.text, "is on 0000:22:00.0"), "%s", heard.text);
    achieved_marks_look(m, s, &wrong, 1, false);
    achieved_marks_look(m, more, &wrong, 1, false);
    expect(&heard, 1, 0, 0); /* it was told, whatever changes beside it */
    achieved_marks_look(m, more, &wrong, 1, true);
    expect(&heard, 1, 1, 0);
    achieved_marks_look(m, more, &worse, 1, false);
    expect(&heard, 2, 1, 0); /* another mismatch */
    achieved_marks_look(m, more, &right, 1, false);
    expect(&heard, 2, 1, 1);
    achieved_marks_look(m, more, &right, 1, true);
    expect(&heard, 2, 1, 1);
    achieved_marks_look(m, more, &wrong, 1, false);
    expect(&heard, 3, 1, 1); /* lost anew */
    achieved_marks_destroy(m);
}

/* What is not known any more is no news of a pod that has what it should. */
Test(achieved_marks, forget_with_their_node)
{
    struct heard heard = {0};
    const struct achieved_told told = {on_lost, on_back, &heard};
    struct achieved_marks *m = achieved_marks_create(&told);
    cleanup_with(snapshot) struct snapshot *bare = simfleet_create(1, 4);
    cleanup_with(snapshot) struct snapshot *s = place(bare, "p");
    cleanup_with(achieved_report) struct achieved_report *wrong = on("p",
                                                                     "22:00.0");
    achieved_marks_look(m, s, &wrong, 1, false);
    achieved_marks_look(m, s, NULL, 0, false);
    expect(&heard, 1, 0, 0);
    achieved_marks_look(m, s, &wrong, 1, false);
    expect(&heard, 2, 0, 0);
    achieved_marks_look(m, bare, &wrong, 1, false); /* the pod is gone */
    achieved_marks_look(m, s, &wrong, 1, true);
    expect(&heard, 3, 0, 0);
    achieved_marks_destroy(m);
}
