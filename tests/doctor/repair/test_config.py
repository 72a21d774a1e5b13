"""Config files come back from their backups, backups from them; what neither gives is moved away."""

from __future__ import annotations

import pytest

from seglog.doctor.repair.config import mend_config
from seglog.storage.files.files import RealFiles

OLD, NEW, BROKEN = b'{"old":1}', b'{"new":1}', b'{"new":'
NOTHING = None
NAMES = {"main": "config/topics.json", "backup": "config/topics.json.bak"}
STRAY = "seglog/stray"

CASES = {
    # the file, its backup; both afterwards, and what is moved away
    "both whole": (NEW, OLD, NEW, OLD, set()),
    "no backup yet": (NEW, NOTHING, NEW, NOTHING, set()),
    "being written": (NOTHING, OLD, NOTHING, OLD, set()),
    "the file broken": (BROKEN, OLD, OLD, OLD, set()),
    "the file empty": (b"", OLD, OLD, OLD, set()),
    "the backup broken": (NEW, BROKEN, NEW, NEW, set()),
    "both broken": (BROKEN, BROKEN, NOTHING, NOTHING, {"main", "backup"}),
    "the only one broken": (BROKEN, NOTHING, NOTHING, NOTHING, {"main"}),
    "only the backup, broken": (NOTHING, BROKEN, NOTHING, NOTHING, {"backup"}),
}


def fill(root, main, backup, names):
    for kind, content in (("main", main), ("backup", backup)):
        if content is not NOTHING:
            (root / names[kind]).parent.mkdir(parents=True, exist_ok=True)
            (root / names[kind]).write_bytes(content)


def content_of(path):
    return path.read_bytes() if path.exists() else NOTHING


@pytest.mark.parametrize("names", [
    NAMES, {"main": "compaction/position-checkpoint", "backup": "compaction/position-checkpoint.bak"},
    {"main": "config/timermetrics", "backup": "config/timermetrics.bak"},
], ids=["config", "compaction", "metrics"])  # fmt: skip
@pytest.mark.parametrize("case", CASES)
def test_a_config_file_and_its_backup(case, names, tmp_path):
    main, backup, main_after, backup_after, moved = CASES[case]
    fill(tmp_path, main, backup, names)
    told = list(mend_config(RealFiles(), tmp_path))
    assert content_of(tmp_path / names["main"]) == main_after
    assert content_of(tmp_path / names["backup"]) == backup_after
    before = {"main": main, "backup": backup}
    for kind in moved:
        assert (tmp_path / STRAY / names[kind]).read_bytes() == before[kind]
    changed = {
        kind for kind, after in (("main", main_after), ("backup", backup_after)) if before[kind] != after
    }
    assert {action.file for action in told} == {names[kind] for kind in changed}
    assert list(mend_config(RealFiles(), tmp_path)) == []


def test_what_was_moved_away_before_stays(tmp_path):
    for content in (b"{1", b"{2"):
        fill(tmp_path, content, NOTHING, NAMES)
        list(mend_config(RealFiles(), tmp_path))
    assert (tmp_path / STRAY / NAMES["main"]).read_bytes() == b"{1"
    assert (tmp_path / STRAY / f"{NAMES['main']}.2").read_bytes() == b"{2"


@pytest.mark.parametrize("name", ["timercheck", "tools.yml", "notes.txt"])
def test_other_files_in_config_are_left_alone(name, tmp_path):
    fill(tmp_path, BROKEN, NOTHING, {"main": f"config/{name}", "backup": ""})
    assert list(mend_config(RealFiles(), tmp_path)) == []


def test_rocketmqs_json_with_numbers_for_keys_is_whole(tmp_path):
    fill(tmp_path, b'{\n\t"offsetTable":{"T@g":{0:12,1:5\n\t\t}\n\t}\n}', NOTHING, NAMES)
    assert list(mend_config(RealFiles(), tmp_path)) == []
