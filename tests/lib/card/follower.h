/* follower - a remote in this process, for log_copier: what would run on a card
 * is called as a function, on folders of this machine. */
#ifndef BIGA_TESTS_CARD_FOLLOWER_H
#define BIGA_TESTS_CARD_FOLLOWER_H

#include <stdatomic.h>

#include "router/log/log_copier.h"

struct follower {
    atomic_int n_fail;  /* so many calls fail, before they begin */
    atomic_int n_cut;   /* so many give their output cut off */
    atomic_int n_calls; /* that have begun */
};
/* `ctx` is a follower. */
log_exec_f follower_exec;

/* A copier of folders in `top`: "pods", "states", "meet", which are made where
 * they are missing. */
struct log_copier *follower_copier(struct follower *f, const char *top);
/* Container `name` of a pod whose log the remote has as TOP/remote/NAME, and
 * the kubelet as TOP/pods/pod/NAME. */
int follower_add(struct log_copier *c, const char *top, const char *name,
                 struct error *err);
/* Append to the remote's file. */
void follower_write(const char *top, const char *name, const char *data,
                    size_t size);

#endif
