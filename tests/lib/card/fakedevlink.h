/* fakedevlink - a command `devlink` for tests, of one PCI function: what there
 * is stands in files below a folder, and devices appear in a tree like sysfs.
 *
 *     DIR/devlink      the command
 *     DIR/sys          as /sys, with the function FAKEDEVLINK_PCI
 *     DIR/ports/N      "SFNUM STATE" of the port pci/…/N
 *     DIR/calls        a line for each call but those that show
 *     DIR/fail         "VERB TEXT": calls of that verb (show, add, set, del)
 *                      say TEXT and fail
 *     DIR/hang, DIR/mute  while there: calls take for ever; no device appears
 *     DIR/info, DIR/eswitch  the answers of `dev info` and `dev eswitch show` */
#ifndef BIGA_TESTS_LIB_CARD_FAKEDEVLINK_H
#define BIGA_TESTS_LIB_CARD_FAKEDEVLINK_H

#define FAKEDEVLINK_PCI "0000:17:00.0"

struct fakedevlink {
    char *dir, *command, *sysfs;
};

/* Makes `dir`.  Each of these ends the test when it cannot. */
void fakedevlink_init(struct fakedevlink *d, const char *dir);
void fakedevlink_fini(struct fakedevlink *d);
/* The file of that name has that text; NULL: there is none. */
void fakedevlink_put(const struct fakedevlink *d, const char *name,
                     const char *text);
/* Its text, "" none; the caller frees it. */
char *fakedevlink_get(const struct fakedevlink *d, const char *name);
/* How many ports there are. */
unsigned fakedevlink_ports(const struct fakedevlink *d);

#endif
