/* follow - biga-card's word for the logs of many containers at once, which the
 * host takes over round by round, each an ExecSync:
 *
 *   biga-card follow DIR GEN SEQ START WAIT LINGER MAX FILE…
 *
 * Waits until one of the log files has bytes behind its offset, for at most
 * WAIT ms, then for LINGER ms more, and writes them to stdout: MAX bytes (up to
 * 8388608) or little more.  Lines are given whole, as they are; in a line of
 * over 65536 bytes it may stop.  FILE is one argument, five numbers and a path:
 *
 *   "TAG FLAGS OFFSET FREE RATE PATH"
 *
 * TAG is the host's name for it.  FLAGS 1: its container has ended, so give the
 * half line at its end as well, and say when nobody writes it any more.  What
 * is before FREE is durable on the host, and is no more needed here: holes are
 * made of it (in whole 64 KiB).  RATE is in bytes per second, 0 without limit.
 * PATH is absolute, and no part of it may be a symbolic link; it need not be
 * there yet.
 *
 * A round takes over from the one before it without the host in between: while
 * one waits for bytes the next one may be started, and stands by.  They are of
 * one chain, which has a random GEN (1 to 16 hex digits) and numbers its rounds
 * (SEQ).  START "first": from the offsets that are told.  "next": from where
 * the round SEQ - 1 has stopped, for tags that it had.  "hurry": the same, and
 * rounds before it return at once.  A round of another GEN that still waits
 * returns at once when a "first" comes.  DIR, which is made and root's alone,
 * is where they meet; all rounds of a host have the same.
 *
 * stdout is a row of frames:
 *
 *   d TAG OFFSET SIZE\n and SIZE bytes, which are at OFFSET of the file
 *   e TAG OFFSET\n      its end: all up to there was given, nobody writes it
 *   m TAG ERRNO\n       it cannot be read; 2: it is not there (yet)
 *   z SIZE\n            the last one; there were so many bytes before it
 *
 * An offset beyond the one that was awaited: what is between them is not there
 * any more (a hole).  Exit status as of biga-card's other words, and 4: the
 * round before it did not end well, which calls for a "first".
 *
 * One thread; blocks as it is told to. */
#ifndef BIGA_CARD_FOLLOW_H
#define BIGA_CARD_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    FOLLOW_FILES_MAX = 1024,    /* of one round */
    FOLLOW_WAIT_MAX = 60000,    /* ms */
    FOLLOW_HOLE = 65536,        /* holes are multiples of this */
    FOLLOW_PIECE = 256 << 10,   /* bytes of a frame at most */
    FOLLOW_STATUS_STRANGER = 4, /* the exit status: not the successor */
};

/* The arguments behind "follow".  Returns the exit status, and writes why to
 * stderr. */
int card_follow_main(int argc, const char *const *argv);

/* The same with its output elsewhere: 0, -EINVAL for arguments, -ESTALE for
 * the status 4, or another -errno. */
int card_follow(int argc, const char *const *argv, int out, struct error *err);

#endif
