/* biga-card: see card.h for its words. */
#include <string.h>
#include <unistd.h>

#include "card/card.h"
#include "card/follow.h"
#include "card/volume.h"

static int fail(const struct error *err)
{
    (void)fprintf(stderr, "biga-card: %s\n", err->text);
    return 1;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: biga-card wait\n"
                  "       biga-card volume DISK MEMORY PAD STEP...\n"
                  "       biga-card tree DISK MEMORY\n"
                  "       biga-card last PATH MAX\n"
                  "       biga-card pods DIR...\n"
                  "       biga-card forget MEMORY DISK\n"
                  "       biga-card pad DIR SIZE\n"
                  "       biga-card files DIR PAD {NAME MODE N PIECE...}...\n"
                  "       biga-card memory DIR {NAME dMODE 0}...\n"
                  "       biga-card hugepages MOUNT PAGE DIR {NAME dMODE "
                  "0}...\n"
                  "       biga-card log PATH OFFSET MAX [ended]\n"
                  "       biga-card tail PATH MAX\n"
                  "       biga-card lines PATH OFFSET|end MAX [ended]\n"
                  "       biga-card follow DIR GEN SEQ START WAIT LINGER "
                  "MAX FILE...\n"
                  "       biga-card disk\n"
                  "       biga-card devices DEV PATTERN...\n"
                  "       biga-card rm DIR...\n"
                  "       biga-card version\n");
    return 2;
}

static bool number_read(const char *text, uint64_t max, uint64_t *ret_value)
{
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value > max)
        return false;
    *ret_value = value;
    return true;
}

/* How it went, for the host. */
static int told(int rc, const struct card_given *given, const struct error *err)
{
    if (rc) {
        (void)fail(err);
        return rc == -ENOENT ? 3 : 1;
    }
    return fprintf(stderr, "bytes=%zu\nnext=%llu\n", given->size,
                   (unsigned long long)given->next) < 0;
}

/* `offset` NULL: its end. */
static int do_log(const char *path, const char *offset, const char *most,
                  bool ended)
{
    uint64_t from = 0, max;
    struct card_given given;
    struct error err;
    if ((offset && !number_read(offset, INT64_MAX, &from)) ||
        !number_read(most, CARD_LOG_MAX, &max) || max == 0)
        return usage();
    if (ended)
        card_log_await(path);
    int rc =
        offset ? card_log(path, from, (size_t)max, STDOUT_FILENO, &given, &err)
               : card_log_tail(path, (size_t)max, STDOUT_FILENO, &given, &err);
    return told(rc, &given, &err);
}

static int do_lines(const char *path, const char *offset, const char *most,
                    bool ended)
{
    struct card_given given;
    struct error err;
    uint64_t max;
    struct lines_ask ask = {.tail = strcmp(offset, "end") == 0, .ended = ended};
    if ((!ask.tail && !number_read(offset, INT64_MAX, &ask.offset)) ||
        !number_read(most, CARD_LOG_MAX, &max) || max == 0)
        return usage();
    ask.max = (size_t)max;
    if (ended)
        card_log_await(path);
    int rc = card_lines(path, &ask, STDOUT_FILENO, &given, &err);
    return told(rc, &given, &err);
}

static int do_pad(char *const *argv)
{
    uint64_t size;
    char id[CARD_PAD_ID_SIZE];
    struct error err;
    if (!number_read(argv[1], CARD_PAD_MAX, &size) || size == 0)
        return usage();
    if (card_pad(argv[0], (size_t)size, STDOUT_FILENO, id, &err))
        return fail(&err);
    return fprintf(stderr, "pad=%s\n", id) < 0;
}

static int do_files(const char *word, int argc, const char *const *argv)
{
    struct error err;
    int rc = strcmp(word, "files") == 0
                 ? card_files(argv[0], argv[1], argc - 2, argv + 2, &err)
                 : card_memory(argv[0], argc - 1, argv + 1, &err);
    return rc ? fail(&err) : 0;
}

static int do_hugepages(int argc, const char *const *argv)
{
    uint64_t page;
    struct error err;
    if (!number_read(argv[1], INT64_MAX, &page))
        return usage();
    return card_hugepages(argv[0], page, argv[2], argc - 3, argv + 3, &err)
               ? fail(&err)
               : 0;
}

/* Each is tried, whatever became of those before. */
static int do_remove(int argc, char *const *argv)
{
    struct error err;
    int status = 0;
    for (int i = 0; i < argc; i++)
        if (card_remove(argv[i], &err))
            status = fail(&err);
    return status;
}

static int do_wait(void)
{
    struct error err;
    int rc = card_wait();
    if (!rc)
        return 0;
    (void)error_errno(&err, -rc, "wait");
    return fail(&err);
}

static int do_disk(void)
{
    struct error err;
    return card_disk("/", STDOUT_FILENO, &err) ? fail(&err) : 0;
}

static int do_devices(const char *dev, int argc, const char *const *argv)
{
    struct error err;
    return card_devices(dev, argc, argv, STDOUT_FILENO, &err) ? fail(&err) : 0;
}

static int do_version(void)
{
    struct error err;
    if (printf("biga-card %s\n", BIGA_VERSION) > 0 && fflush(stdout) == 0)
        return 0;
    (void)error_errno(&err, errno, "output");
    return fail(&err);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "wait";
    if (argc <= 2 && (strcmp(word, "wait") == 0 || strcmp(word, "pause") == 0))
        return do_wait();
    int status = card_volume_main(argc - 1, (const char *const *)(argv + 1));
    if (status >= 0)
        return status;
    if (argc == 2 && strcmp(word, "version") == 0)
        return do_version();
    if (argc == 2 && strcmp(word, "disk") == 0)
        return do_disk();
    if (argc == 4 && strcmp(word, "pad") == 0)
        return do_pad(argv + 2);
    if ((argc >= 4 && strcmp(word, "files") == 0) ||
        (argc >= 3 && strcmp(word, "memory") == 0))
        return do_files(word, argc - 2, (const char *const *)(argv + 2));
    if (argc >= 5 && strcmp(word, "hugepages") == 0)
        return do_hugepages(argc - 2, (const char *const *)(argv + 2));
    bool ended = argc == 6 && strcmp(argv[5], "ended") == 0;
    if ((argc == 5 || ended) && strcmp(word, "log") == 0)
        return do_log(argv[2], argv[3], argv[4], ended);
    if ((argc == 5 || ended) && strcmp(word, "lines") == 0)
        return do_lines(argv[2], argv[3], argv[4], ended);
    if (argc == 4 && strcmp(word, "tail") == 0)
        return do_log(argv[2], NULL, argv[3], true);
    if (argc >= 3 && strcmp(word, "follow") == 0)
        return card_follow_main(argc - 2, (const char *const *)argv + 2);
    if (argc >= 4 && strcmp(word, "devices") == 0)
        return do_devices(argv[2], argc - 3, (const char *const *)argv + 3);
    if (argc >= 3 && strcmp(word, "rm") == 0)
        return do_remove(argc - 2, argv + 2);
    return usage();
}
