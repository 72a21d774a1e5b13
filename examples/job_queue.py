"""A durable job queue: each added job is done at least once, even if a worker is killed.

A job is done when the worker commits it; with SYNC durability the commit is on the disk when it returns. Kill
the program at any moment and run it again: it continues with the jobs that were not committed.
"""

import json

from seglog import Broker, ConsumeFrom, Durability, LitePullConsumer, Message, Producer


def work(job: Message) -> int:
    numbers: list[int] = json.loads(job.body)
    return sum(numbers)


with Broker.open("jobs.store", durability=Durability.SYNC) as broker:
    with Producer(broker, "web") as producer:
        for number in range(5):
            job = json.dumps([number, number]).encode()
            producer.send("jobs", job, keys=f"job-{number}")  # on the disk when this returns

    done = 0
    with LitePullConsumer(broker, "workers", "jobs", consume_from=ConsumeFrom.FIRST) as jobs:
        while done < 5:  # a worker that stays: for job in jobs
            for job_message in jobs.poll(10):
                print(job_message.keys[0], work(job_message))
                done += 1
            jobs.commit()
    assert done >= 5
