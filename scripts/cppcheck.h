/* cppcheck - macros of libraries that cppcheck does not look into. */
#ifndef BIGA_CPPCHECK_H
#define BIGA_CPPCHECK_H

#define cJSON_ArrayForEach(element, array)                \
    for (element = (array) ? (array)->child : 0; element; \
         element = element->next)

#endif
