#include "lib/io/thread_name.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The end of `text` that has room: of whole words, where it can. */
static const char *end_of(const char *text, size_t room)
{
    size_t len = strlen(text);
    const char *last = len > room ? text + (len - room) : text;
    if (last == text || strchr("-.:/", last[-1]))
        return last;
    const char *word = strpbrk(last, "-.:/");
    return word && word[1] ? word + 1 : last;
}

void thread_name(const char *what, const char *whose)
{
    char name[THREAD_NAME_MAX + 1];
    size_t len = strlen(what);
    size_t room = len < THREAD_NAME_MAX ? THREAD_NAME_MAX - len - 1 : 0;
    (void)snprintf(name, sizeof name, "%s%s%s", what, whose && room ? " " : "",
                   whose && room ? end_of(whose, room) : "");
    (void)pthread_setname_np(pthread_self(), name); /* it fits */
}
