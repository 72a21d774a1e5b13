/* Queues that were read before, by topic and number. */
#ifndef SEGLOG_KNOWN_QUEUES_H
#define SEGLOG_KNOWN_QUEUES_H

#include "maps.h"
#include "tips.h"

/* Tip and maps are held. Of the messages of [living_from, living_to) it is known that none is a tombstone. */
struct known_queue {
    QueueTip *tip;
    Maps *maps;
    int64_t living_from, living_to;
};

/* A dict of them, NULL with an exception. */
PyObject *known_queues_new(void);

/* NULL without exception for a queue that is not known. Valid until anything else may run. */
struct known_queue *known_queues_find(PyObject *queues, PyObject *topic, int64_t queue_id);

/* Adds a queue; does nothing for one that is known, or whose number is unusual. False with an exception. */
bool known_queues_add(PyObject *queues, PyObject *topic, int64_t queue_id, QueueTip *tip, Maps *maps);

/* Makes the type of the dict's values. */
int known_queues_prepare(void);

#endif
