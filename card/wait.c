#include "card/card.h"

#include <signal.h>
#include <sys/wait.h>

int card_wait(void)
{
    sigset_t set;
    siginfo_t info;
    (void)sigemptyset(&set); /* cannot fail */
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    for (;;) {
        /* a child that ended before the signal was blocked, too */
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (sigwaitinfo(&set, &info) < 0 && errno != EINTR)
            return -errno;
        if (info.si_signo == SIGTERM || info.si_signo == SIGINT)
            return 0;
    }
}
