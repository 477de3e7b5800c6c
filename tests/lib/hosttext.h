/* hosttext - a host with two cards and two GPUs, as the server tells of one,
 * for tests of the command.  Aborts the test when a text cannot be read. */
#ifndef BIGA_TESTS_LIB_HOSTTEXT_H
#define BIGA_TESTS_LIB_HOSTTEXT_H

#include <criterion/criterion.h>
#include <string.h>

#include "cli/verb/host.h"
#include "lib/base/json.h"

#define HOST(name)                                                             \
    "{\"node\":\"" name "\",\"devices\":["                                     \
    "{\"id\":\"card-0\",\"kind\":\"card\",\"pci\":\"0000:10:00.0\","           \
    "\"numa\":0,\"model\":\"BlueField-3\",\"cores\":16,"                       \
    "\"memoryMiB\":32768},"                                                    \
    "{\"id\":\"card-1\",\"kind\":\"card\",\"pci\":\"0000:90:00.0\","           \
    "\"numa\":1},"                                                             \
    "{\"id\":\"gpu-0\",\"kind\":\"gpu\",\"pci\":\"0000:91:00.0\",\"numa\":1}," \
    "{\"id\":\"gpu-1\",\"kind\":\"gpu\",\"pci\":\"0000:11:00.0\",\"numa\":0}," \
    "{\"id\":\"numa-0\",\"kind\":\"numa\",\"pci\":null,\"numa\":0,"            \
    "\"cpus\":56},"                                                            \
    "{\"id\":\"numa-1\",\"kind\":\"numa\",\"pci\":null,\"numa\":1}],"          \
    "\"relations\":{"                                                          \
    "\"card-0\":{\"card-1\":\"SYS\",\"gpu-0\":\"SYS\",\"gpu-1\":\"PIX\","      \
    "\"numa-0\":\"NODE\",\"numa-1\":\"SYS\"},"                                 \
    "\"card-1\":{\"card-0\":\"SYS\",\"gpu-0\":\"PXB\",\"gpu-1\":\"SYS\"},"     \
    "\"gpu-0\":{\"card-0\":\"SYS\",\"card-1\":\"PXB\",\"gpu-1\":\"SYS\"},"     \
    "\"gpu-1\":{\"card-0\":\"PIX\",\"card-1\":\"SYS\",\"gpu-0\":\"SYS\"},"     \
    "\"numa-0\":{\"card-0\":\"NODE\"},\"numa-1\":{}}}"

static inline cJSON *parse(const char *text)
{
    cJSON *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_parse(text, strlen(text), &json, &err), 0, "%s",
                 err.text);
    return json;
}

static inline void make_host(const char *text, struct host *ret_host)
{
    struct error err = {0};
    cJSON *json = parse(text);
    cr_assert_eq(host_read(json, ret_host, &err), 0, "%s", err.text);
    cJSON_Delete(json);
}

#endif
