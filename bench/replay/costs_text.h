/* costs_text - costs.json, compiled in. */
#ifndef BIGA_BENCH_REPLAY_COSTS_TEXT_H
#define BIGA_BENCH_REPLAY_COSTS_TEXT_H

extern const char replay_costs_text[];

#endif
