/* allreduce: an MPI job's sum of buffers, taken off the hosts by workers on
 * their cards; usage() says how it is run. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deploy/examples/allreduce/arfile.h"
#include "deploy/examples/allreduce/arrole.h"
#include "lib/base/mem.h"

static const char usage_text[] =
    "usage: allreduce worker [--port N] [--timeout S] [--once]\n"
    "       allreduce rank --workers FILE [--wait S] [--port N] [--kib N]\n"
    "                      [--rounds N] [--timeout S] [--hosts FILE]\n"
    "                      [--offload-only]\n"
    "       allreduce map FILE TEXT\n"
    "\n"
    "The sum of a buffer of all ranks, at all ranks: by a worker on each "
    "card,\n"
    "and for comparison by the hosts.\n"
    "\n"
    "--workers FILE  the workers' hosts, of `biga job NAME --dpu-hostfile`\n"
    "--wait S        wait so long for FILE; default 0, at most 86400\n"
    "--port N        of the worker of rank 0; that of rank r has N + r, and "
    "the\n"
    "                rank itself N + 300 + r; default 7700, 1024 to 64000\n"
    "--kib N         of each buffer; default 4096, at most 262144\n"
    "--rounds N      that are measured; default 8, at most 100000\n"
    "--timeout S     a job in which somebody is silent or dead for so long\n"
    "                ends, with the reason; default 30, 1 to 3600\n"
    "--hosts FILE    where ranks are; default: where they reach their cards\n"
    "--offload-only  do not compare\n"
    "--once          a worker ends with its first job\n"
    "\n"
    "map writes TEXT, lines \"HOST [slots=N]\", to FILE, whole or not at all.\n"
    "BIGA_RANK, BIGA_SIZE (at most 256) and BIGA_PEER_ADDRESS are what Biga\n"
    "gives its pods.\n"
    "\n"
    "For trusted networks only: whoever reaches a port may take part, and\n"
    "nothing is encrypted.\n";

static int usage(void)
{
    (void)fputs(usage_text, stderr);
    return 2;
}

/* A number of 1 (or 0) to `max`, or an exit with what is wrong. */
static unsigned take(const char *name, const char *text, unsigned min,
                     unsigned max)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (text && *text >= '0' && *text <= '9' && !*end && !errno &&
        value >= min && value <= max)
        return (unsigned)value;
    (void)fprintf(stderr, "allreduce: %s: is \"%s\", must be %u to %u\n", name,
                  text ? text : "", min, max);
    exit(2);
}

/* Where files of hosts are, and how long that of workers is waited for. */
struct files {
    const char *workers, *hosts;
    unsigned wait_s;
};

static bool read_options(int argc, char **argv, struct ar_options *o,
                         struct files *files)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"timeout", required_argument, NULL, 't'},
        {"once", no_argument, NULL, 'o'},
        {"workers", required_argument, NULL, 'w'},
        {"hosts", required_argument, NULL, 'h'},
        {"wait", required_argument, NULL, 'W'},
        {"offload-only", no_argument, NULL, 'O'},
        {"kib", required_argument, NULL, 'k'},
        {"rounds", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'p')
            o->port = take("--port", optarg, 1024, 64000);
        else if (c == 't')
            o->timeout_s = take("--timeout", optarg, 1, 3600);
        else if (c == 'k')
            o->kib = take("--kib", optarg, 1, AR_DATA_MAX >> 10);
        else if (c == 'r')
            o->rounds = take("--rounds", optarg, 1, 100000);
        else if (c == 'w')
            files->workers = optarg;
        else if (c == 'h')
            files->hosts = optarg;
        else if (c == 'W')
            files->wait_s = take("--wait", optarg, 0, 86400);
        else if (c == 'O')
            o->offload_only = true;
        else if (c == 'o')
            o->once = true;
        else
            return false;
    }
    return optind == argc;
}

static void read_hosts(const char *name, const char *path, unsigned wait_s,
                       struct ar_hosts *ret_hosts)
{
    struct error err = {0};
    if (arfile_read(path, wait_s, ret_hosts, &err) == 0)
        return;
    (void)fprintf(stderr, "allreduce: %s: %s\n", name, err.text);
    exit(2);
}

static int write_map(int argc, char **argv)
{
    struct error err = {0};
    if (argc != 2)
        return usage();
    if (arfile_write(argv[0], argv[1], &err) == 0)
        return 0;
    (void)fprintf(stderr, "allreduce: map: %s\n", err.text);
    return 1;
}

/* The first process of a container has no other way to be ended. */
static void end_by_signal(int signal)
{
    _exit(128 + signal);
}

static void read_env(struct ar_options *o)
{
    o->size = (uint16_t)take("BIGA_SIZE", getenv("BIGA_SIZE"), 1, AR_RANKS_MAX);
    o->rank = (uint16_t)take("BIGA_RANK", getenv("BIGA_RANK"), 0, o->size - 1U);
    o->peer = getenv("BIGA_PEER_ADDRESS");
    if (o->peer && !*o->peer)
        o->peer = NULL; /* it is not known */
}

static int run_role(bool worker, int argc, char **argv)
{
    static struct ar_hosts cards, hosts;
    struct ar_options o = {
        .port = 7700, .timeout_s = 30, .kib = 4096, .rounds = 8};
    struct files files = {0};
    struct error err = {0};
    if (!read_options(argc, argv, &o, &files) || (!worker && !files.workers))
        return usage();
    read_env(&o);
    if (!worker) {
        read_hosts("--workers", files.workers, files.wait_s, &cards);
        o.cards = &cards;
    }
    if (!worker && files.hosts) {
        read_hosts("--hosts", files.hosts, 0, &hosts);
        o.hosts = &hosts;
    }
    if ((worker ? arworker_run(&o, &err) : arrank_run(&o, &err)) == 0)
        return 0;
    (void)fprintf(stderr, "allreduce: %s of rank %u: %s\n",
                  worker ? "worker" : "program", o.rank, err.text);
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    (void)signal(SIGTERM, end_by_signal); /* there is such a signal */
    (void)signal(SIGINT, end_by_signal);
    if (strcmp(what, "map") == 0)
        return write_map(argc - 2, argv + 2);
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
        return fputs(usage_text, stdout) < 0 || fflush(stdout) != 0;
    if (strcmp(what, "worker") != 0 && strcmp(what, "rank") != 0)
        return usage();
    return run_role(*what == 'w', argc - 1, argv + 1);
}
