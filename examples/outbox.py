"""An outbox: one transaction of SQLite writes an order and its message, and the message is sent once.

A relay that was killed between the send and the DELETE finds the message by its key, and does not send it
again.
"""

import sqlite3

from seglog import Durability, MessageStore

database = sqlite3.connect("shop.db")
database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, what TEXT)")
database.execute("CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY, what TEXT)")


def place_order(what: str) -> None:
    with database:  # both rows or none
        number = database.execute("INSERT INTO orders (what) VALUES (?)", (what,)).lastrowid
        database.execute("INSERT INTO outbox VALUES (?, ?)", (number, what))


def relay(store: MessageStore) -> int:
    sent = 0
    for number, what in database.execute("SELECT id, what FROM outbox ORDER BY id").fetchall():
        key = f"order-{number}"
        if not store.query("orders", key, 1):
            store.put("orders", what.encode(), keys=key, durability=Durability.SYNC)
            sent += 1
        with database:
            database.execute("DELETE FROM outbox WHERE id = ?", (number,))
    return sent


with MessageStore.open("outbox.store") as store:
    for fruit in ("42 apples", "7 pears", "1 melon"):
        place_order(fruit)
    print("sent", relay(store))
    (orders,) = database.execute("SELECT count(*) FROM orders").fetchone()
    assert store.max_offset("orders", 0) == orders
database.close()
