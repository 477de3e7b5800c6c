/* What biga run asks for is what an extender understands. */
#include "cli/verb/run.h"

#include <criterion/criterion.h>
#include <string.h>

#include "extender/pods/applied_apply.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

static const struct cli_settings plain = {
    .cpus = "",
    .gpu_resource = "nvidia.com/gpu",
    .image = "solver:1",
    .xpu_image = "",
    .xpu_command = "",
    .align = "",
    .prefer_align = "",
    .within = "",
    .prefer_within = "",
};

/* As it is sent, read by the extender. */
static void apply(const struct run *r, struct applied_body *ret_body)
{
    cleanup_with(json) cJSON *job = run_job(r), *template = run_template(r);
    cleanup_free char *a = cJSON_PrintUnformatted(job);
    cleanup_free char *b = template ? cJSON_PrintUnformatted(template)
                                    : xstrdup("");
    cleanup_free char *text = xasprintf("%s\n%s\n", b, a);
    struct demand_config config;
    struct error err = {0};
    demand_config_default(&config);
    cr_assert_eq(applied_body_read(text, strlen(text), &config, ret_body, &err),
                 0, "%s in %s", err.text, text);
}

Test(run, host_pods_alone)
{
    struct run r = {.namespace = "default",
                    .name = "a",
                    .set = &plain,
                    .pairs = 1,
                    .cards = 1};
    struct applied_body body;
    apply(&r, &body);
    cr_assert_eq(body.n, 1);
    const struct applied_pod *p = body.changes[0].pod;
    cr_expect_str_eq(p->name, "a-0");
    cr_expect_eq(p->demand.role, ROLE_HOST);
    cr_expect_eq(p->demand.cards, 1);
    cr_expect_eq(p->demand.gpus, 0);
    cr_expect_null(strstr(p->json, "\"command\""), "that of its image");
    applied_body_fini(&body);
}

Test(run, pairs_with_all_that_can_be_asked)
{
    char solver[] = "solver", steps[] = "--steps", last[] = "a \"b\"";
    char *command[] = {solver, steps, last};
    struct cli_settings set = plain;
    set.xpu_image = "worker:1";
    set.xpu_command = "worker --card $BIGA_CARD_PCI";
    set.card_cores = 4;
    set.card_memory_mib = 512;
    set.gpus = 2;
    set.nics = 1;
    set.cpus = "8";
    set.align = "pix";
    set.prefer_align = "pix";
    set.within = "spine";
    set.prefer_within = "leaf";
    struct run r = {.namespace = "lab",
                    .name = "ring",
                    .set = &set,
                    .pairs = 3,
                    .cards = 2,
                    .command = command,
                    .n_command = 3};
    struct applied_body body;
    apply(&r, &body);
    cr_assert_eq(body.n, 6);
    for (size_t i = 0; i < body.n; i++) {
        const struct applied_pod *p = body.changes[i].pod;
        const struct demand *d = &p->demand;
        bool host = i < 3;
        cr_expect_str_eq(p->namespace, "lab");
        cr_expect_str_eq(d->job, "ring");
        cr_expect_eq(d->role, host ? ROLE_HOST : ROLE_XPU);
        cr_expect_eq(d->pair, i % 3);
        cr_expect_eq(d->size, 3);
        cr_expect_eq(d->pair_cards, 2);
        cr_expect_eq(d->card_cores, host ? 0 : 4);
        cr_expect_eq(d->card_memory_mib, host ? 0 : 512);
        cr_expect_eq(d->pair_gpus, 2);
        cr_expect_eq(d->align, RELATION_PIX);
        cr_expect_eq(d->within, 1);
        cr_expect_eq(d->prefer_within, 0);
        cr_expect(
            strstr(p->json, host ? "[\"solver\",\"--steps\",\"a \\\"b\\\"\"]"
                                 : "[\"sh\",\"-c\",\"worker --card "
                                   "$BIGA_CARD_PCI\"]"),
            "%s", p->json);
    }
    applied_body_fini(&body);
}

/* What the cards must hold is the host pod's to say where it has no xPU pod. */
Test(run, what_of_the_cards_is_asked_without_xpu_pods)
{
    struct cli_settings set = plain;
    set.card_cores = 3;
    struct run r = {.namespace = "default",
                    .name = "a",
                    .set = &set,
                    .pairs = 1,
                    .cards = 1};
    struct applied_body body;
    apply(&r, &body);
    cr_expect_eq(body.changes[0].pod->demand.card_cores, 3);
    applied_body_fini(&body);
}
