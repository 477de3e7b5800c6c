/* biga run: pairs in one line. */
#include "cli/verb/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/base/say.h"
#include "cli/base/settings.h"
#include "cli/verb/verb.h"
#include "cli/verb/wait.h"
#include "lib/base/mem.h"
#include "lib/base/text.h"
#include "lib/io/yaml_write.h"
#include "model/topo/topo.h"

enum {
    NAME_LETTERS = 5,
    BODY_MAX = 1 << 20,
    PAIRS_MAX = 4096,
    CLUSTER_WAIT_MS = 1500,
};

/* "run-x7k2m", as nobody else has called one. */
static char *make_name(void)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    unsigned char random[NAME_LETTERS];
    char text[NAME_LETTERS + 1] = "";
    if (getrandom(random, sizeof random, 0) != sizeof random)
        abort(); /* it never gives less, once the system is up */
    for (size_t i = 0; i < NAME_LETTERS; i++)
        text[i] = letters[random[i] % (sizeof letters - 1)];
    return xasprintf("run-%s", text);
}

/* -n is that of srun here, too: a namespace of digits alone is how many. */
static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int read_pairs(const struct cli *c, int64_t *ret_pairs,
                      const char **ret_namespace)
{
    const char *namespace = c->set.namespace;
    bool counts = is_number(namespace), given = cli_is_given(c, "pairs");
    const char *other = counts ? getenv("BIGA_NAMESPACE") : namespace;
    *ret_namespace = other && *other && !is_number(other) ? other : "default";
    *ret_pairs = given ? c->set.pairs : 1;
    if (!counts)
        return 0;
    *ret_pairs = strtoll(namespace, NULL, 10);
    if (given && *ret_pairs != c->set.pairs)
        return cli_usage("run: -n is \"%s\", but --pairs is %" PRId64,
                         namespace, c->set.pairs);
    if (*ret_pairs < 1 || *ret_pairs > PAIRS_MAX)
        return cli_usage("run: -n: is \"%s\", must be 1 to %d pairs", namespace,
                         PAIRS_MAX);
    return 0;
}

static int check(const struct cli *c, int64_t *ret_cards)
{
    const struct cli_settings *s = &c->set;
    const char *cards = cli_is_given(c, "card") ? s->card : "1";
    *ret_cards = is_number(cards) ? strtoll(cards, NULL, 10) : 0;
    if (*ret_cards < 1 || *ret_cards > TOPO_CARDS_MAX)
        return cli_usage("run: --card: is \"%s\", must be 1 to %d", cards,
                         TOPO_CARDS_MAX);
    if (!*s->image)
        return cli_usage("run: needs --image IMAGE, that of the host pods");
    if (*s->xpu_command && !*s->xpu_image)
        return cli_usage("run: --xpu-command needs --xpu-image");
    if (*s->timeout && !s->wait && !s->rm)
        return cli_usage("run: --timeout needs --wait or --rm");
    return wait_check(c, "run");
}

static void add_document(struct cli *c, const cJSON *json, struct str *out)
{
    if (c->form == OUTPUT_JSON) {
        cleanup_free char *text = cJSON_Print(json);
        str_addf(out, "%s\n", text);
        return;
    }
    if (out->size)
        str_add(out, "---\n");
    yaml_write(json, out);
}

/* Both, as for a file. */
static int show(struct cli *c, const cJSON *template, const cJSON *job)
{
    if (c->form == OUTPUT_NAME || c->form == OUTPUT_WIDE)
        return cli_usage("run: --dry-run prints YAML, or JSON with -o json");
    if (template)
        add_document(c, template, &c->out);
    add_document(c, job, &c->out);
    if (c->form == OUTPUT_YAML)
        c->form = OUTPUT_TABLE; /* it is made already */
    return 0;
}

/* The same command, as it is of use there. */
static void say_cluster(struct cli *c)
{
    cleanup_with(json) cJSON *cluster = NULL;
    cleanup_str struct str line = STR_INIT(BODY_MAX);
    bool added = false;
    if ((c->status != 403 && c->status != 404) ||
        cli_peek(c, "/v1/cluster", CLUSTER_WAIT_MS, &cluster) < 0)
        return;
    for (char **w = c->words; w && *w; w++) {
        if (!added && strcmp(*w, "--") == 0) {
            str_add(&line, " --dry-run");
            added = true;
        }
        str_add_c(&line, ' ');
        shell_add_word(&line, *w);
    }
    fprintf(stderr,
            "In a cluster kubectl submits jobs, also this one:\n"
            "  biga%s%s | kubectl apply -f -\n",
            str_text(&line), added ? "" : " --dry-run");
}

static int apply(struct cli *c, const struct run *r, const cJSON *template,
                 const cJSON *job)
{
    cleanup_str struct str body = STR_INIT(BODY_MAX);
    cleanup_with(json) cJSON *answer = NULL;
    const cJSON *objects[] = {template, job};
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        cleanup_free char *text = objects[i]
                                      ? cJSON_PrintUnformatted(objects[i])
                                      : xstrdup("");
        str_addf(&body, "%s\n", text);
    }
    if (body.overflow)
        return cli_fail("run: the command has more than 1 MiB");
    int rc = cli_post(c, "/v1/pods", &body, &answer);
    if (rc)
        say_cluster(c);
    if (rc || !answer)
        return rc;
    cli_line(
        c, "Job %s/%s %s: %" PRId64 " pair%s", r->namespace, r->name,
        json_text(cJSON_GetArrayItem(json_list(answer, "items"), 0), "result"),
        r->pairs, r->pairs == 1 ? "" : "s");
    return 0;
}

/* Until the job has ended; what it ended with. */
static int follow(struct cli *c, const struct run *r)
{
    cleanup_free char *name = xasprintf("%s/%s", r->namespace, r->name);
    struct wait_thing thing = {.job = true, .name = name};
    int rc = wait_for_all(c, &thing, 1, WAIT_DONE);
    free(thing.told);
    int ended = c->set.rm && rc != WAIT_TIMED_OUT
                    ? delete_job(c, r->namespace, r->name)
                    : 0;
    return rc ? rc : ended;
}

/* "[NAMESPACE/]NAME" before the "--", and the command behind it. */
int verb_run(struct cli *c, int argc, char **argv)
{
    struct run r = {.set = &c->set};
    int names = c->n_behind < 0 ? argc : argc - c->n_behind;
    int rc = read_pairs(c, &r.pairs, &r.namespace);
    if (rc == 0 && names > 1)
        rc = cli_usage("run: \"%s\": the command stands behind \"--\"",
                       argv[1]);
    if (rc == 0)
        rc = check(c, &r.cards);
    if (rc)
        return rc;
    cleanup_free char *name = names ? xstrdup(argv[0]) : make_name();
    char *slash = strchr(name, '/');
    if (slash) {
        *slash = '\0';
        r.namespace = name;
    }
    r.name = slash ? slash + 1 : name;
    r.command = argv + names;
    r.n_command = argc - names;
    cleanup_with(json) cJSON *template = run_template(&r), *job = run_job(&r);
    if (c->set.dry_run)
        return show(c, template, job);
    rc = apply(c, &r, template, job);
    return rc == 0 && (c->set.wait || c->set.rm) ? follow(c, &r) : rc;
}
