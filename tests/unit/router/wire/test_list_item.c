/* How lists are made: of each that is merged there is a form. */
#include <criterion/criterion.h>

#include "router/wire/list_item.h"

Test(list_item, each_list_has_a_form)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        const struct method *m = method_get((enum method_id)i);
        cr_expect_eq(list_form_get(m) != NULL, m->key == METHOD_BY_FILTER, "%s",
                     method_name(m));
    }
}

/* Labels are a map, a filter's too, and items have an id at 1. */
Test(list_item, forms_agree_with_the_fields)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        const struct list_form *form =
            list_form_get(method_get((enum method_id)i));
        if (!form)
            continue;
        enum fields_message labelled = form->item_attributes ? form->attributes
                                                             : form->item;
        const struct fields_row *row = fields_find(labelled, form->item_labels);
        cr_assert_not_null(row);
        cr_expect_eq(row->kind, FIELDS_PAIRS);
        row = fields_find(form->filter, form->filter_labels);
        cr_assert_not_null(row);
        cr_expect_eq(row->kind, FIELDS_PAIRS);
        row = fields_find(labelled, 1);
        cr_assert_not_null(row);
        cr_expect_str_eq(row->name, "id");
    }
}
