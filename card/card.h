/* card - biga-card, the program that Biga has on a card: it does there, in a
 * container of the card's own runtime, what the CRI cannot.  Static, needs
 * nothing of its image and no network.  Its arguments come from the host, and
 * the files that it reads from any container: both are checked here.
 *
 *   biga-card wait                    (also "pause", also without a word)
 *       Sleeps until SIGTERM or SIGINT, then exits with 0; reaps children.
 *       The image "pause" is this program too.
 *
 *   biga-card pad DIR SIZE
 *       Random bytes on stdout, as many as that (1 to 1048576), and a last line
 *       "pad=ID" on stderr.  They are kept in DIR, which is made as by `files`,
 *       for one call of `files` there: no other user of the card sees them, as
 *       all of them see arguments.
 *
 *   biga-card files DIR PAD {NAME MODE N PIECE…}…
 *       Write files below DIR, each whole or not at all.  DIR is absolute and
 *       is made with what is missing above it (mode 0755); it itself is root's
 *       alone (0700) from then on, and folders in it are everybody's (0755),
 *       for the mounts of containers.  NAME is relative, its parts neither
 *       empty nor "." nor ".."; its folders are made too.  MODE is octal, up
 *       to 0777; with a 'd' before it NAME is a folder of that mode, and N 0.
 *       N pieces follow, 0 to 4096, each base64 of its own (with padding; no
 *       blanks) of at most 98304 characters, which is 73728 bytes: Linux has
 *       128 KiB for an argument.  The bytes of all pieces, one after the
 *       other, are XORed with those of the pad whose ID is PAD, which is then
 *       gone; "-": with none.  All pieces of a call together: 1 MiB in 1.4 MiB
 *       of arguments works where the stack's limit is the usual 8 MiB (a
 *       quarter of it is for arguments).  Without a file: DIR alone is made.
 *
 *   biga-card memory DIR {NAME dMODE 0}…
 *       The same, of folders alone, and only where DIR is in memory (tmpfs).
 *
 *   biga-card log PATH OFFSET MAX [ended]
 *       What the container wrote, of a log file in the CRI's form
 *       ("TIME stdout|stderr F|P TEXT"), from byte OFFSET of the file on:
 *       at most MAX bytes (1 to 8388608) on stdout.  The last lines on stderr
 *       are "bytes=SIZE", how many they were, and "next=OFFSET", where to go
 *       on; a line that is not whole yet is left for then.  A file that is
 *       shorter than OFFSET was replaced and is read from 0.  Lines of
 *       another form are given as they are.  "ended": the container has
 *       exited; waits until its runtime has written all of it and closed the
 *       file, but not for long.
 *
 *   biga-card tail PATH MAX
 *       The same of the last MAX bytes of the file, of one that has exited.
 *
 *   biga-card lines PATH OFFSET|end MAX [ended]
 *       As `log`, but whole lines as they stand in the file, with their heads;
 *       "end": those of the last MAX bytes.
 *
 *   biga-card follow …
 *       The logs of many containers as they are written: see card/follow.h.
 *
 *   biga-card disk
 *       "size=BYTES" and "available=BYTES" on stdout: of the file system of its
 *       own root, which is the one that the runtime keeps images on.
 *
 *   biga-card devices DEV PATTERN…
 *       The device nodes of the card at these paths, one in a line, in order
 *       and each once.  DEV is where the card's /dev is mounted; a PATTERN is
 *       a path below /dev, whose parts may have *, ? and [a-f].  Links are not
 *       followed, and are none.  More than 64 are an error.
 *
 *   biga-card rm DIR…
 *       Remove each DIR (absolute, two names or more) with all that is in it.
 *       What is not there is a success.  Mounts are not entered.
 *
 *   biga-card volume, tree, last, pods, forget: volume.h
 *
 *   biga-card version
 *
 * No part of any path may be a symbolic link.  Exit status: 0; 1 with one line
 * "biga-card: PATH: REASON" on stderr; 2 for a wrong command line; 3 when the
 * log file does not exist. */
#ifndef BIGA_CARD_CARD_H
#define BIGA_CARD_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/io/lines.h"

enum {
    CARD_PIECE_MAX = 98304, /* characters of base64 */
    CARD_PIECES_MAX = 4096, /* of one file */
    CARD_PAD_MAX = 1 << 20, /* bytes */
    CARD_PAD_ID_SIZE = 32 + 1,
    CARD_DEVICES_MAX = 64,
    CARD_LOG_MAX = 8 << 20, /* bytes given at once; runtimes take 16 MiB */
    CARD_LINE_MAX = 65536,  /* of a log file, with its head */
};

/* --- text --------------------------------------------------------------- */

/* Decode base64 with padding into `out`, which has room for size / 4 * 3
 * bytes. 0 or -EINVAL. */
int card_decode(const char *text, size_t size, unsigned char *out,
                size_t *ret_size);

/* Whether `name` is relative and stays below where it starts. */
bool card_name_ok(const char *name);

/* --- what it does ------------------------------------------------------- */

/* Open an absolute folder, following no symbolic link; with `make` it and all
 * above it are made where they are missing.  Returns a descriptor or
 * -errno. */
int card_open_dir(const char *path, bool make, struct error *err);

/* Write the bytes to `out`. */
int card_pad(const char *dir, size_t size, int out,
             char ret_id[CARD_PAD_ID_SIZE], struct error *err);
/* argv: NAME MODE N PIECE… and so on; `pad` is an id, or "-". */
int card_files(const char *dir, const char *pad, int argc,
               const char *const *argv, struct error *err);
int card_memory(const char *dir, int argc, const char *const *argv,
                struct error *err);
/* The same below `dir` of a hugetlbfs whose pages have so many bytes. */
int card_hugepages(const char *mount, uint64_t page, const char *dir, int argc,
                   const char *const *argv, struct error *err);
struct card_given {
    size_t size;   /* bytes that were written */
    uint64_t next; /* where to go on */
};
/* Waits, not for long, until nobody writes the file any more. */
void card_log_await(const char *path);
/* Write to `out`. */
int card_log(const char *path, uint64_t offset, size_t max, int out,
             struct card_given *ret_given, struct error *err);
/* The same of the last `max` bytes of the file. */
int card_log_tail(const char *path, size_t max, int out,
                  struct card_given *ret_given, struct error *err);
/* Lines as they are, see lib/io/lines.h. */
int card_lines(const char *path, const struct lines_ask *ask, int out,
               struct card_given *ret_given, struct error *err);
/* The device nodes below `dev`, the card's /dev, at paths of these patterns. */
int card_devices(const char *dev, int argc, const char *const *argv, int out,
                 struct error *err);
int card_disk(const char *path, int out, struct error *err);
int card_remove(const char *dir, struct error *err);
int card_wait(void);
/* The words of volume.h, as main() does them: the exit status; -1: another. */
int card_volume_main(int argc, const char *const *argv);

#endif
