#include "extender/console/change_command.h"

#include <ctype.h>
#include <string.h>

#include "extender/console/html.h"
#include "model/fabric/fabric.h"

/* The annotation that says less, and what it says then; "" for none at all. */
struct wish {
    const char *key;
    char value[32];
};

static void wish_number(struct wish *w, const char *key, uint64_t value)
{
    w->key = key;
    (void)snprintf(w->value, sizeof w->value, "%llu",
                   (unsigned long long)value);
}

static void wish_word(struct wish *w, const char *key, const char *word)
{
    w->key = key;
    (void)snprintf(w->value, sizeof w->value, "%s", word);
    for (char *p = w->value; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

/* False: it is no annotation of the pod. */
static bool wish_of(const struct change *change, struct wish *ret)
{
    *ret = (struct wish){0};
    switch (change->kind) {
    case CHANGE_WITHIN:
        wish_word(ret, "biga.dev/within",
                  change->value == FABRIC_APART
                      ? ""
                      : fabric_tier_name((unsigned)change->value));
        return true;
    case CHANGE_ALIGN:
        wish_word(ret, "biga.dev/align",
                  relation_name((enum relation)change->value));
        return true;
    case CHANGE_EXCLUSIVE:
        wish_word(ret, "biga.dev/exclusive", "");
        return true;
    case CHANGE_NICS:
        wish_number(ret, "biga.dev/nics", change->value);
        return true;
    case CHANGE_PAIRS:
        wish_number(ret, "biga.dev/size", change->value);
        return true;
    default:
        return false;
    }
}

/* The resource of its containers that is asked less of. */
static const char *resource_of(enum change_kind kind)
{
    switch (kind) {
    case CHANGE_CARD_CORES:
        return "biga.dev/card-cores";
    case CHANGE_CARD_MEMORY:
        return "biga.dev/card-memory-mib";
    case CHANGE_CARDS:
        return "biga.dev/card";
    case CHANGE_GPUS:
        return "of its GPUs";
    case CHANGE_CPUS:
        return "cpu, in thousandths";
    case CHANGE_MEMORY:
        return "memory, in MiB";
    default:
        return NULL;
    }
}

/* A name that ends with the namespace, as each of the two commands says it. */
static void add_pod(const char *namespace, const char *name, bool cluster,
                    struct str *out)
{
    if (!cluster) {
        shell_add_word(out, namespace);
        str_add_c(out, '/');
    }
    shell_add_word(out, name);
}

static void add_delete(const struct change *change, bool cluster,
                       struct str *out)
{
    for (size_t i = 0; i < change->n_gone; i++) {
        const struct demand *d = &change->gone[i]->demand;
        str_add(out, i ? " && " : "");
        str_add(out, cluster ? "kubectl delete pod -n " : "biga delete ");
        if (cluster) {
            shell_add_word(out, d->namespace);
            str_add_c(out, ' ');
        }
        add_pod(d->namespace, d->name, cluster, out);
    }
}

/* "NS/NAME" of a job; "": of any. */
static void add_job(const char *verb, const char *job, struct str *out)
{
    if (!*job) {
        str_add(out, "biga jobs");
        return;
    }
    str_addf(out, "biga %s ", verb);
    shell_add_word(out, job);
}

static void add_wish(const struct demand *d, const struct wish *w, bool cluster,
                     struct str *out)
{
    if (!cluster) {
        str_add(out, "biga delete ");
        add_pod(d->namespace, *d->job ? d->job : d->name, false, out);
        str_addf(out, " && biga apply FILE  # %s %s%s",
                 *w->value ? "with" : "without", w->key, *w->value ? ": " : "");
        str_addf(out, *w->value ? "\"%s\"" : "%s", w->value);
        return;
    }
    str_add(out, "kubectl annotate pod -n ");
    shell_add_word(out, d->namespace);
    if (*d->job) {
        str_add(out, " -l biga.dev/job=");
        shell_add_word(out, d->job);
    } else {
        str_add_c(out, ' ');
        shell_add_word(out, d->name);
    }
    if (*w->value)
        str_addf(out, " --overwrite %s=%s", w->key, w->value);
    else
        str_addf(out, " %s-", w->key);
}

static void add_less(const struct demand *d, const struct change *change,
                     bool cluster, struct str *out)
{
    str_add(out, cluster ? "kubectl delete pod -n " : "biga delete ");
    if (cluster) {
        shell_add_word(out, d->namespace);
        str_add_c(out, ' ');
    }
    if (cluster && *d->job) {
        str_add(out, "-l biga.dev/job=");
        shell_add_word(out, d->job);
    } else {
        add_pod(d->namespace, *d->job ? d->job : d->name, cluster, out);
    }
    str_addf(out, " && %s FILE  # with %llu %s",
             cluster ? "kubectl apply -f" : "biga apply",
             (unsigned long long)change->value, resource_of(change->kind));
}

/* Nothing that Biga could do: who has what there is the next question. */
static void add_look(const struct schedule *s, const struct change *change,
                     struct str *out)
{
    if (change->kind == CHANGE_QUOTA || change->node == NODE_NONE) {
        str_add(out, "biga policy");
        return;
    }
    str_add(out, "biga node ");
    shell_add_word(out, snapshot_node(s->snapshot, (size_t)change->node)->name);
}

void change_command(const struct schedule *s, const struct change *change,
                    bool cluster, struct str *out)
{
    struct wish w;
    if (wish_of(change, &w))
        add_wish(s->demand, &w, cluster, out);
    else if (change->kind == CHANGE_RELEASE)
        add_delete(change, cluster, out);
    else if (change->kind == CHANGE_JOB_END && !cluster && *change->job)
        add_job("delete", change->job, out);
    else if (change->kind == CHANGE_LEASE || change->kind == CHANGE_JOB_END)
        add_job("job", change->job, out);
    else if (resource_of(change->kind))
        add_less(s->demand, change, cluster, out);
    else
        add_look(s, change, out);
}
