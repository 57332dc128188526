/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h -- intrusive doubly linked list. The head is a node; the head of an empty list links to
 * itself. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define LIST_INIT(head)                                                                            \
	{                                                                                          \
		&(head), &(head)                                                                   \
	}

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* Unlink n and link it to itself, so that a second list_del() is harmless. */
static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Returns the first node, or NULL when the list is empty. */
static inline struct list *list_first(const struct list *head)
{
	return head->next == head ? NULL : head->next;
}

static inline struct list *list_pop(struct list *head)
{
	struct list *n = list_first(head);

	if (n)
		list_del(n);
	return n;
}

#define list_for_each(it, head) for ((it) = (head)->next; (it) != (head); (it) = (it)->next)
/* Like list_for_each, but the body may delete `it`. */
#define list_for_each_safe(it, tmp, head)                                                          \
	for ((it) = (head)->next, (tmp) = (it)->next; (it) != (head);                              \
	     (it) = (tmp), (tmp) = (it)->next)

#endif
