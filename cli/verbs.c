#include "cli/verbs.h"

#include <string.h>

#include "cli/base/say.h"
#include "cli/demo/demo.h"
#include "cli/pod/pod_verbs.h"
#include "cli/verb/verb.h"
#include "lib/base/mem.h"
#include "lib/base/nearest_word.h"

enum { VERB_ARGS_MAX = 1000 };

const struct verb verbs[] = {
    {"nodes", "", "all nodes: their status, their cards, what is free", 0, 0,
     verb_nodes, VERB_ASK VERB_LIST, NAMED_NONE},
    {"node", "NODE", "one node: its state, its cards, the pods on them", 1, 1,
     verb_node, VERB_ASK VERB_WATCH, NAMED_NONE},
    {"cards", "[NODE]", "all cards, or those of one node", 0, 1, verb_cards,
     VERB_ASK VERB_LIST, NAMED_NONE},
    {"topo", "NODE", "a node as a tree: its devices, and who has which", 1, 1,
     verb_topo, VERB_ASK VERB_WATCH " svg", NAMED_NONE},
    {"matrix", "NODE", "how close its devices are, as `nvidia-smi topo -m`", 1,
     1, verb_matrix, VERB_ASK VERB_WATCH, NAMED_NONE},
    {"fabric", "", "the switches above the hosts, and idle cards below them", 0,
     0, verb_fabric, VERB_ASK VERB_WATCH " dot svg", NAMED_NONE},
    {"allocations", "", "which pod has which card, and how well aligned", 0, 0,
     verb_allocations, VERB_ASK VERB_LIST_NAMED, NAMED_NONE},
    {"jobs", "", "all jobs: how many of their pairs are placed, how aligned", 0,
     0, verb_jobs, VERB_ASK VERB_LIST_NAMED, NAMED_NONE},
    {"job", "[NAMESPACE/]NAME",
     "one job: where its pairs are; or print a file that it needs to run", 1, 1,
     verb_job,
     VERB_ASK VERB_WATCH
     " namespace hostfile pod-hostfile dpu-hostfile rankfile ucx "
     "nccl urom svg",
     NAMED_FIRST},
    {"top", "[nodes|cards|pods] [NODE]",
     "cores and memory: used of what was given", 0, 2, verb_top,
     VERB_ASK VERB_LIST_NAMED, NAMED_NONE},
    {"policy", "", "what namespaces use of their quotas, and services' shares",
     0, 0, verb_policy, VERB_ASK VERB_WATCH " namespace all-namespaces check",
     NAMED_NONE},
    {"cluster", "", "which replica binds, and how it follows the API server", 0,
     0, verb_cluster, VERB_ASK VERB_WATCH, NAMED_NONE},
    {"why", "[NAMESPACE/]POD", "why a pod is where it is, or why it is pending",
     1, 1, verb_why, VERB_ASK VERB_WATCH " namespace", NAMED_FIRST},
    {"events", "[KIND/NAME]",
     "what happened, or what happened to a node, card, pod or job", 0, 1,
     verb_events, VERB_ASK VERB_LIST_NAMED " since until reason limit",
     NAMED_NONE},
    {"history", "KIND/NAME",
     "what a node, card, pod or job was at a moment, and what happened then", 1,
     1, verb_history, VERB_ASK VERB_WATCH " namespace at", NAMED_NONE},
    {"simulate", "FILE",
     "where the pods and jobs in FILE (YAML or JSON; - is stdin) would go", 1,
     1, verb_simulate, VERB_ASK VERB_FORM " applied", NAMED_NONE},
    {"run", "[[NAMESPACE/]NAME] [-- COMMAND…]",
     "run a job of pairs: COMMAND in its host pods", 0, VERB_ARGS_MAX, verb_run,
     VERB_ASK VERB_FORM
     " namespace pairs image xpu-image xpu-command card card-cores "
     "card-memory-mib gpus gpu-resource nics cpus align prefer-align within "
     "prefer-within dry-run wait rm timeout",
     NAMED_NONE},
    {"apply", "FILE",
     "run the pods and jobs in FILE (YAML or JSON; - is stdin)", 1, 1,
     verb_apply, VERB_ASK VERB_FORM, NAMED_NONE},
    {"ps", "[[NAMESPACE/]POD]",
     "the pods that were applied, or a cluster's, and their states", 0, 1,
     verb_ps, VERB_ASK VERB_LIST_NAMED, NAMED_FIRST},
    {"delete", "[KIND] NAME",
     "end and delete an applied pod or job; KIND: configmap or secret", 1, 2,
     verb_delete, VERB_ASK VERB_FORM " namespace grace wait timeout",
     NAMED_NONE},
    {"wait", "KIND[/NAME]…",
     "until pods or jobs are placed, running, ready, done or deleted", 1,
     VERB_ARGS_MAX, verb_wait, VERB_ASK " namespace selector for timeout",
     NAMED_NONE},
    {"release", "[NAMESPACE/]POD",
     "free the cards of a deleted pod whose host will never come back", 1, 1,
     verb_release, VERB_ASK VERB_FORM " namespace", NAMED_FIRST},
    {"drain", "NODE[/CARD]",
     "have a card, or all of a node, take no new pod: NODE/0000:17:00.0", 1, 1,
     verb_drain, VERB_ASK VERB_FORM " reason evict", NAMED_NONE},
    {"undrain", "NODE[/CARD]", "have it take new pods again", 1, 1,
     verb_undrain, VERB_ASK VERB_FORM, NAMED_NONE},
    {"trust", "[NODE]",
     "after damage to the state: trust NODE, or all nodes, again", 0, 1,
     verb_trust, VERB_ASK VERB_FORM, NAMED_NONE},
    {"pods", "", "the pods on this host and its cards, and their states", 0, 0,
     verb_pods, VERB_LOCAL VERB_LIST_NAMED, NAMED_NONE},
    {"card", "COMMAND [CARD]…",
     "this host's cards: ps, ps CARD, show CARD, drain CARD, undrain CARD, "
     "flash CARD, objects CARD, logs CARD POD, exec CARD POD -- COMMAND…",
     1, VERB_ARGS_MAX, verb_card,
     VERB_LOCAL VERB_LIST_NAMED " container follow limit-bytes exec-timeout "
                                "bfb sha256 expect timeout force",
     NAMED_NONE},
    {"logs", "[[NAMESPACE/]POD|job/NAME]",
     "print what a pod, or each pod of a job, writes", 0, 1, verb_logs,
     VERB_ASK " socket selector namespace all-namespaces container follow "
              "limit-bytes tail since previous timestamps",
     NAMED_NONE},
    {"exec", "[NAMESPACE/]POD -- COMMAND…", "run a command in a pod", 2,
     VERB_ARGS_MAX, verb_exec,
     VERB_ASK " socket" VERB_FORM
              " namespace container interactive tty exec-timeout",
     NAMED_FIRST},
    {"attach", "[NAMESPACE/]POD", "be at the pod's own input and output", 1, 1,
     verb_attach, VERB_ASK " namespace container interactive tty", NAMED_FIRST},
    {"cp", "FROM TO", "copy a file or folder from a pod, POD:PATH, or to one",
     2, 2, verb_cp, VERB_ASK " namespace container", NAMED_NONE},
    {"port-forward", "[NAMESPACE/]POD [HERE:]THERE…",
     "have ports of a pod on this machine", 2, 33, verb_port_forward,
     VERB_ASK " namespace address", NAMED_FIRST},
    {"rsh", "HOST COMMAND…",
     "run a command in the host pod of a job on HOST: mpirun's launch agent", 2,
     VERB_ARGS_MAX, verb_rsh, VERB_ASK " namespace job container socket",
     NAMED_NONE},
    {"demo", "", "start a server and a fleet, schedule a job, show it", 0, 0,
     verb_demo,
     "once then hosts pairs scheduler-listen publish-listen read-listen",
     NAMED_NONE},
    {"replay", "[OPTION]... [FILE]",
     "replay a trace of jobs under several policies; see man biga-replay", 0,
     VERB_ARGS_MAX, verb_replay, "", NAMED_NONE},
    {"completion", "SHELL",
     "print a script for bash, zsh or fish: commands, options, names", 1, 1,
     verb_completion, "", NAMED_NONE},
    {"version", "", "print the version", 0, 0, verb_version, "output json",
     NAMED_NONE},
    {"help", "[COMMAND]", "print this, or the help of one command", 0, 1,
     verb_help, "", NAMED_NONE},
};
const size_t n_verbs = ARRAY_LEN(verbs);

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < n_verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

const struct verb *verb_suggest(const char *word)
{
    const struct verb *best = NULL;
    size_t least = NEAREST_WORD_NOT;
    for (size_t i = 0; i < n_verbs; i++) {
        size_t d = nearest_word_guess(word, verbs[i].name);
        if (d < least) {
            least = d;
            best = &verbs[i];
        }
    }
    return best;
}

int verb_complain(const char *word)
{
    const struct verb *v = verb_suggest(word);
    return v ? cli_usage("%s: no such command; did you mean `biga %s`?", word,
                         v->name)
             : cli_usage("%s: no such command; see biga help", word);
}

int verb_version(struct cli *c, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (c->set.json)
        str_add(&c->out, "{\"version\":\"" BIGA_VERSION "\"}\n");
    else
        str_add(&c->out, "biga " BIGA_VERSION "\n");
    return 0;
}
