/* documents - the objects of a file, as Kubernetes' people write them: YAML or
 * JSON, several one after the other. */
#ifndef BIGA_CLI_BASE_DOCUMENTS_H
#define BIGA_CLI_BASE_DOCUMENTS_H

#include "lib/base/str.h"

enum { DOCUMENTS_MAX = 16 << 20 }; /* bytes of a file */

/* All of the file ("-": stdin) as JSON documents.  An exit code, after saying on
 * stderr what is wrong. */
int documents_read(const char *name, struct str *ret_body);

#endif
