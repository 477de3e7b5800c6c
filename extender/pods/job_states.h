/* job_states - of pods in the order of their jobs, a byte each: its state, and
 * whether it is the first of its job.  Jobs are walked by it without a look at
 * their pods, which lie anywhere in memory. */
#ifndef BIGA_EXTENDER_PODS_JOB_STATES_H
#define BIGA_EXTENDER_PODS_JOB_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/lower_bound.h"

enum { JOB_STATES_FIRST = 0x80 };

/* Whose place in its job is where: there are no others, before all of them, or
 * behind one. */
enum job_place { JOB_PLACE_ALONE, JOB_PLACE_FIRST, JOB_PLACE_LATER };

/* That of one at `at`, where its job begins at `first` and has others or not. */
static inline enum job_place job_place_of(size_t at, size_t first, bool others)
{
    if (at > first)
        return JOB_PLACE_LATER;
    return others ? JOB_PLACE_FIRST : JOB_PLACE_ALONE;
}

/* One is put in among `n`, which the array has room for.  A state is an enum
 * pod_state. */
static inline void job_states_insert(uint8_t *states, size_t n, size_t at,
                                     uint8_t state, enum job_place place)
{
    uint8_t byte = state;
    if (place != JOB_PLACE_LATER)
        byte |= JOB_STATES_FIRST;
    if (place == JOB_PLACE_FIRST)
        states[at] &= (uint8_t)~JOB_STATES_FIRST;
    ordered_insert(states, n, 1, at, &byte);
}

static inline void job_states_remove(uint8_t *states, size_t n, size_t at)
{
    if (at + 1 < n)
        states[at + 1] |= states[at] & JOB_STATES_FIRST;
    ordered_remove(states, n, 1, at);
}

static inline void job_states_set(uint8_t *states, size_t at, uint8_t state)
{
    states[at] = (uint8_t)((states[at] & JOB_STATES_FIRST) | state);
}

/* Where the job ends that begins there. */
static inline size_t job_states_end(const uint8_t *states, size_t n,
                                    size_t first)
{
    size_t end = first + 1;
    while (end < n && !(states[end] & JOB_STATES_FIRST))
        end++;
    return end;
}

/* In which states they are, each as 1 << enum pod_state. */
static inline unsigned job_states_of(const uint8_t *states, size_t first,
                                     size_t end)
{
    unsigned all = 0;
    for (size_t i = first; i < end; i++)
        all |= 1u << (states[i] & ~JOB_STATES_FIRST);
    return all;
}

#endif
