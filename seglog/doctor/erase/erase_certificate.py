"""The certificate of an erase: the erased records, their places, and parts not searched, as plain JSON."""

from __future__ import annotations

from seglog.doctor.erase.erase import Erased, ErasedCopy

CERTIFICATE_VERSION = 1
_KEPT = "properties of the records (keys, tags and all others) are as they were; only bodies were erased"


def certificate(done: Erased, version: str) -> dict[str, object]:
    """Returns the certificate of an erase.

    Args:
        done: The result of the erase.
        version: Version of seglog.
    """
    plan, leftovers = done.plan, done.leftovers
    return {
        "kind": "certificate",
        "version": CERTIFICATE_VERSION,
        "madeBy": f"seglog {version}",
        "timestamp": done.done_ms,
        "store": str(plan.root),
        "wanted": plan.wanted,
        "complete": is_complete(done),
        "copies": [copy_fields(copy) for copy in plan.copies],
        "kept": _KEPT,
        "sealedAnew": [{"store": store, "commitLogOffset": first} for store, first in done.sealed],
        "sealsThatDidNotMatch": [
            {"store": store, "commitLogOffset": first} for store, first in done.unsealed
        ],
        "undoPacks": [
            {"store": store, "pack": pack, "zeroedBytes": count}
            for store, packs in done.packs.items()
            for pack, count in packs.zeroed.items()
        ],
        "bodySearch": {
            "bytes": leftovers.searched_bytes,
            "bodies": leftovers.bodies,
            "tooShort": leftovers.too_short,
            "found": [{"file": one.file, "pos": one.position_bytes} for one in leftovers.found],
        },
        "mentions": [
            {"store": store, "topic": message.topic, "commitLogOffset": message.phy_offset}
            for store, search in plan.searches.items()
            for message in search.mentions
        ],
        "notLookedAt": not_looked_at(done),
    }


def copy_fields(copy: ErasedCopy) -> dict[str, object]:
    """Returns the fields of one record in a certificate."""
    message = copy.message
    return {
        "store": copy.store,
        "role": copy.role,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.message_id,
        "uniqKey": message.unique_key,
        "commitLogOffset": message.phy_offset,
        "file": copy.file,
        "pos": copy.position_bytes,
        "size": message.size_bytes,
        "sha256Before": copy.before,
        "sha256After": copy.after,
        "marked": copy.is_marked,
        "otherNames": copy.other_names,
    }


def not_looked_at(done: Erased) -> list[str]:
    """Returns sentences about parts that may hold the messages and were not searched."""
    said = [
        f"{store or 'the store'}: {text}"
        for store, search in done.plan.searches.items()
        for text in dict.fromkeys(search.not_looked)
    ]
    said += [
        f"{f'{store}/{pack}'.lstrip('/')}, an undo pack that cannot be read: {problem}; remove that folder"
        for store, packs in done.packs.items()
        for pack, problem in packs.unread.items()
    ]
    for copy in done.plan.copies:
        if copy.other_names:
            where = f"{copy.store}/{copy.file}".lstrip("/")
            count = f"{copy.other_names} other name" + ("s" if copy.other_names > 1 else "")
            said.append(
                f"{where} had {count} (backups, branches): outside of this store they keep the message"
            )
    said.append("copies elsewhere: replicas, backups, exports, consumers, bodies inside of inner batches")
    return list(dict.fromkeys(said))


def is_complete(done: Erased) -> bool:
    """Returns whether nothing of the bodies is left in the store, as far as the search can show."""
    unread = any(search.not_looked for search in done.plan.searches.values())
    unread = unread or any(packs.unread for packs in done.packs.values())
    return not done.leftovers.found and not unread
