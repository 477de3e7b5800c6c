/* allreduce: an MPI job's sum of buffers, taken off the hosts by workers on
 * their cards; usage() says how it is run. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deploy/examples/allreduce/arrole.h"
#include "lib/base/mem.h"

static int usage(void)
{
    (void)fprintf(
        stderr,
        "usage: allreduce worker [--port N] [--timeout S] [--once]\n"
        "       allreduce rank --workers FILE [--hosts FILE] [--port N]\n"
        "                      [--kib N] [--rounds N] [--timeout S]\n"
        "BIGA_RANK, BIGA_SIZE and, of a rank, BIGA_PEER_ADDRESS are what Biga\n"
        "gives its pods.\n");
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

static void take_hosts(const char *name, const char *path,
                       struct ar_hosts *ret_hosts)
{
    static char text[AR_HELLO_MAX + 1];
    struct error err = {0};
    FILE *f = fopen(path, "re");
    size_t size = f ? fread(text, 1, sizeof text, f) : 0;
    int r = !f || ferror(f) ? error_errno(&err, errno, "cannot be read")
                            : arhosts_read(text, size, ret_hosts, &err);
    if (f)
        (void)fclose(f); /* it was only read */
    if (r == 0)
        return;
    (void)fprintf(stderr, "allreduce: %s: %s: %s\n", name, path, err.text);
    exit(2);
}

static bool read_options(int argc, char **argv, struct ar_options *o)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"timeout", required_argument, NULL, 't'},
        {"once", no_argument, NULL, 'o'},
        {"workers", required_argument, NULL, 'w'},
        {"hosts", required_argument, NULL, 'h'},
        {"kib", required_argument, NULL, 'k'},
        {"rounds", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    static struct ar_hosts cards, hosts;
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
            take_hosts("--workers", optarg, &cards), o->cards = &cards;
        else if (c == 'h')
            take_hosts("--hosts", optarg, &hosts), o->hosts = &hosts;
        else if (c == 'o')
            o->once = true;
        else
            return false;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct ar_options o = {
        .port = 7700, .timeout_s = 30, .kib = 4096, .rounds = 8};
    struct error err = {0};
    bool worker = argc > 1 && strcmp(argv[1], "worker") == 0;
    if (!worker && (argc < 2 || strcmp(argv[1], "rank") != 0))
        return usage();
    if (!read_options(argc - 1, argv + 1, &o) || (!worker && !o.cards))
        return usage();
    o.size = (uint16_t)take("BIGA_SIZE", getenv("BIGA_SIZE"), 1, AR_RANKS_MAX);
    o.rank = (uint16_t)take("BIGA_RANK", getenv("BIGA_RANK"), 0, o.size - 1U);
    o.peer = getenv("BIGA_PEER_ADDRESS");
    if (!worker && (!o.peer || !*o.peer)) {
        (void)fprintf(stderr, "allreduce: BIGA_PEER_ADDRESS: is empty, must be "
                              "the card's address\n");
        return 2;
    }
    if ((worker ? arworker_run(&o, &err) : arrank_run(&o, &err)) == 0)
        return 0;
    (void)fprintf(stderr, "allreduce: %s of rank %u: %s\n",
                  worker ? "worker" : "program", o.rank, err.text);
    return 1;
}
