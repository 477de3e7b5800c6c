/* demo - `biga demo`: a server and a fleet on this machine, a job that is
 * scheduled on them, and what became of it. */
#ifndef BIGA_CLI_DEMO_DEMO_H
#define BIGA_CLI_DEMO_DEMO_H

#include "cli/base/cli.h"

verb_f verb_demo;

#endif
