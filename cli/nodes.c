/* biga nodes, biga node */
#include "cli/verbs.h"
