/* log - one event, one logfmt line on stderr:
 *   ts=2026-01-02T03:04:05.678Z level=info event=slice-accepted node=h1 gen=3
 * `event` is a stable word; the rest are key=value pairs, quoted when needed,
 * then with all that is hidden (hidden_text.h) escaped as in JSON.
 * An error is logged once, where it is handled. */
#ifndef BIGA_LIB_IO_LOG_H
#define BIGA_LIB_IO_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);
enum log_level log_level(void);
/* "debug", "info", "warn", "error"; -1 when it is none of these. */
int log_level_parse(const char *text);

/* log_event(LOG_INFO, "bound", "node", node, "pod", pod, NULL): pairs of
 * texts, NULL-terminated; a NULL value prints as "". Thread-safe. */
void log_event(enum log_level level, const char *event, ...)
    __attribute__((sentinel));

#endif
