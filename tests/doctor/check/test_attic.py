"""What openings gave up comes back from the attic where it fits and proves itself, and never once erased."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.clock import SystemClock
from seglog.doctor.check.check import check_store
from seglog.doctor.erase.erase import apply_erase, plan_erase
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.errors import MisnamedFileError
from seglog.storage.files.files import RealFiles
from seglog.storage.scan.holes_file import load_holes
from seglog.storage.small_files.attic import iter_kept
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image, slots, swap
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, copy_store, new_clock, read_all

COUNT = 60
BODY = bytes(range(60))


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "record CRC"])
def whole(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    with MessageStore.open(
        folder / "store", clock=new_clock(), record_crc=request.param, **SMALL, **SMALL_INDEX
    ) as store:
        puts = [store.put("T", b"%d " % slot + BODY, keys=f"k{slot}") for slot in range(COUNT)]
    return Image(folder / "store", [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture
def image(whole, memory_path: Path):
    return Image(copy_store(whole.root, memory_path / "store"), whole.starts, whole.sizes)


def exchange(image, one, other):
    """Swaps two records of the log's last file, which then lie at the places of each other."""
    assert image.sizes[one] == image.sizes[other]
    first, second = image.record(one), image.record(other)
    image.write(image.starts[one], second)
    image.write(image.starts[other], first)


def exchange_in_turn(image, one, other):
    """Does the same with an opening in between, after which no opening gives back what it has given up."""
    assert image.sizes[one] == image.sizes[other]
    first, second = image.record(one), image.record(other)
    image.write(image.starts[other], first)
    open_once(image)
    image.write(image.starts[one], second)


def open_once(image):
    with MessageStore.open(image.root, clock=new_clock()) as store:
        return slots(store)


def codes(image):
    return {finding.code for finding in check_store(image.root, clock=new_clock()).findings}


def repaired(image):
    return repair_store(RealFiles(), image.root, new_clock(), lambda _plan: True)


def test_what_states_another_place_comes_back_there_where_units_lead(image):
    exchange(image, 57, 59)
    opened = Image(copy_store(image.root, image.root.with_name("opened")), image.starts, image.sizes)
    assert open_once(opened) == [*range(COUNT)]
    plan, _pack = repaired(image)
    assert (plan.left, [one for action in plan.actions for one in action.lost]) == ([], [])
    assert open_once(image) == [*range(COUNT)]


def test_what_states_another_place_comes_back_there_behind_an_opening(image):
    exchange_in_turn(image, 57, 59)
    assert open_once(image) == [slot for slot in range(COUNT) if slot not in (57, 59)]
    assert "attic-record" in codes(image)
    before = tree_digest(image.root)
    plan, _pack = repaired(image)
    assert [action.kind for action in plan.actions if action.kind == "attic"] == ["attic"] * 2
    assert "attic-record" not in codes(image)
    assert load_holes(RealFiles(), image.root) == []
    assert not plan_repair(RealFiles(), image.root, new_clock()).changes
    undo_repair(RealFiles(), image.root)
    after = tree_digest(image.root)
    assert {name: after[name] for name in before if name != "lock"} == {
        name: before[name] for name in before if name != "lock"
    }
    repaired(image)
    assert open_once(image) == [*range(COUNT)]


def test_it_comes_back_beside_messages_that_were_put_since(image):
    exchange_in_turn(image, 57, 59)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        store.put("T", b"%d more" % COUNT)
    repaired(image)
    assert open_once(image) == [*range(COUNT + 1)]


@pytest.mark.parametrize("is_queue_there", [True, False], ids=["with its queue", "without queues"])
def test_it_comes_back_into_a_hole_where_its_tombstone_was(image, is_queue_there):
    exchange_in_turn(image, 57, 59)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        for number in range(COUNT, COUNT + 3 * (SEGMENT_BYTES // image.sizes[-1])):
            store.put("T", b"%d more" % number)
        end = store.max_offset("T", 0)
    for slot in (57, 59):
        image.write(image.starts[slot], bytes(image.sizes[slot]))
    if not is_queue_there:
        shutil.rmtree(image.root / "consumequeue")
    repaired(image)
    assert open_once(image) == [*range(end)]


def test_log_files_under_each_others_name_lose_nothing_by_an_opening(image):
    last = (image.end - 1) // SEGMENT_BYTES * SEGMENT_BYTES
    swap(image.segment(last), image.segment(last - SEGMENT_BYTES))
    with pytest.raises(MisnamedFileError):
        open_once(image)
    repaired(image)
    assert open_once(image) == [*range(COUNT)]


def test_what_was_erased_does_not_come_back(image):
    exchange_in_turn(image, 57, 59)
    open_once(image)
    repaired(image)
    plan = plan_erase(RealFiles(), image.root, "k57")
    erased = apply_erase(RealFiles(), plan, SystemClock())
    assert erased.leftovers.found == ()
    assert not any(b"57 " + BODY in kept.data for kept in iter_kept(RealFiles(), image.root))
    assert "attic-record" not in codes(image)


@pytest.mark.parametrize("where", ["an attic of before the erase", "nowhere else"])
def test_what_was_erased_does_not_come_back_from_an_attic_of_before(image, tmp_path, where):
    exchange_in_turn(image, 57, 59)
    open_once(image)
    shutil.copytree(image.root / "seglog" / "attic", tmp_path / "attic")
    repaired(image)
    shutil.rmtree(image.root / "seglog" / "undo")
    if where == "nowhere else":
        # An erase where only the attic had the message left notes as well.
        stone = image.record(56)
        image.write(image.starts[57], bytes(len(stone)))
        open_once(image)
        shutil.rmtree(image.root / "seglog" / "attic")
        shutil.copytree(tmp_path / "attic", image.root / "seglog" / "attic")
        with MessageStore.open(image.root, clock=new_clock()) as store:
            store.put("T", b"%d once more" % COUNT, keys="k57")
    apply_erase(RealFiles(), plan_erase(RealFiles(), image.root, "k57"), SystemClock())
    if where != "nowhere else":
        image.write(image.starts[57], bytes(image.sizes[57]))
        open_once(image)
    shutil.rmtree(image.root / "seglog" / "attic")
    shutil.copytree(tmp_path / "attic", image.root / "seglog" / "attic")
    assert "attic-record" not in codes(image)
    repaired(image)
    with MessageStore.open(image.root, read_only=True) as store:
        assert 57 not in {message.queue_offset for message in read_all(store, "T", 0)}


def test_a_damaged_note_of_erases_says_nothing(image):
    folder = image.root / "seglog" / "erased"
    folder.mkdir(parents=True)
    for name, text in {"a": "[" * 100_000, "b": "{", "c": '{"copies":[1,{"store":""}]}', "d": "7"}.items():
        (folder / f"{name}.json").write_text(text)
    exchange_in_turn(image, 57, 59)
    open_once(image)
    repaired(image)
    assert open_once(image) == [*range(COUNT)]


def test_a_key_that_is_erased_is_erased_where_only_the_attic_has_it(image):
    exchange_in_turn(image, 57, 59)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        store.put("T", b"%d once more" % COUNT, keys="k57")
    apply_erase(RealFiles(), plan_erase(RealFiles(), image.root, "k57"), SystemClock())
    repaired(image)
    with MessageStore.open(image.root, read_only=True) as store:
        bodies = {message.queue_offset: message.body for message in read_all(store, "T", 0)}
    assert (57 in bodies, any(bodies[COUNT]), bodies[59]) == (False, False, b"59 " + BODY)


def kept_copies(image, *pairs):
    """Has one file of the attic with copies of records, which are lost then; returns it.

    Args:
        image: The store.
        pairs: A record, and the one over which it was copied.
    """
    for one, other in pairs:
        image.write(image.starts[other], image.record(one))
    open_once(image)
    (kept,) = (image.root / "seglog" / "attic").glob("*.kept")
    for one, _other in pairs:
        image.write(image.starts[one], bytes(image.sizes[one]))
    open_once(image)
    return kept


def test_a_file_of_the_attic_that_was_damaged_gives_nothing(image):
    kept = kept_copies(image, (53, 55), (57, 59))
    data = bytearray(kept.read_bytes())
    data[5] ^= 1  # the length of the first entry's name: nothing shows where the next begins
    kept.write_bytes(data)
    assert not plan_repair(RealFiles(), image.root, new_clock()).changes


def test_an_entry_of_the_attic_that_is_damaged_costs_only_what_it_holds(image):
    kept = kept_copies(image, (53, 55), (57, 59))
    data = bytearray(kept.read_bytes())
    data[80] ^= 1
    kept.write_bytes(data)
    plan, _pack = repaired(image)
    (back,) = [action for action in plan.actions if action.kind == "attic"]
    assert "T/0 57" in back.detail


def test_nothing_comes_back_where_a_message_lies(image):
    exchange_in_turn(image, 57, 59)
    open_once(image)
    attic = copy_store(image.root / "seglog" / "attic", image.root.with_name("attic"))
    other = Image(
        copy_store(image.root.with_name("store"), image.root.with_name("other")), image.starts, image.sizes
    )
    repaired(other)
    shutil.rmtree(other.root / "seglog" / "attic")
    shutil.copytree(attic, other.root / "seglog" / "attic")
    assert not plan_repair(RealFiles(), other.root, new_clock()).changes
