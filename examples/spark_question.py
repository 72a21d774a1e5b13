"""A question to a store in SQL, on Spark: `pip install 'seglog[spark]'` and a JDK 17.

The same runs on a cluster, over the stores of many brokers, at paths or at addresses such as s3://bucket/broker-a.
"""

from seglog import MessageStore, NewMessage
from seglog.spark.session import local_session

with MessageStore.open("spark.store") as store:
    if store.max_offset("orders", 0) == 0:
        store.put_batch(
            "orders",
            [
                NewMessage(b"%d cents" % n, tags="paid" if n % 3 else "open", keys=f"order-{n}")
                for n in range(300)
            ],
        )

with local_session("question") as spark:
    spark.read.format("seglog").load("spark.store").createOrReplaceTempView("messages")
    rows = spark.sql(
        "SELECT tags, count(*) AS orders, sum(size) AS bytes FROM messages"
        " WHERE topic = 'orders' GROUP BY tags ORDER BY tags"
    ).collect()
    for row in rows:
        print(row["tags"], row["orders"], row["bytes"])
    assert [(row["tags"], row["orders"]) for row in rows] == [("open", 100), ("paid", 200)]
