#include "lib/io/log_line.h"

#include <string.h>

/* The bytes up to and with the next blank; 0 when there is none. */
static size_t word_len(const char *text, size_t size)
{
    const char *blank = memchr(text, ' ', size);
    return blank ? (size_t)(blank - text) + 1 : 0;
}

/* As containerd's and CRI-O's loggers write them, of which
 * k8s.io/kubernetes/pkg/kubelet/kuberuntime/logs is the reader: tags are
 * separated by colons, the first says whether the line is whole. */
struct log_line log_line_read(const char *line, size_t size)
{
    struct log_line other = {.head = 0};
    size_t time = word_len(line, size), at = time;
    /* 2026-01-01T00:00:00.000000001+01:00 */
    if (at < 21 || at > 64 || line[0] < '0' || line[0] > '9' ||
        !memchr(line, 'T', at))
        return other;
    size_t n = word_len(line + at, size - at);
    if (n != 7 || (memcmp(line + at, "stdout ", 7) != 0 &&
                   memcmp(line + at, "stderr ", 7) != 0))
        return other;
    at += n;
    n = word_len(line + at, size - at);
    if (n < 2 || n > 64 || (line[at] != 'F' && line[at] != 'P') ||
        (line[at + 1] != ' ' && line[at + 1] != ':'))
        return other;
    return (struct log_line){
        .time = time - 1, .head = at + n, .partial = line[at] == 'P'};
}
