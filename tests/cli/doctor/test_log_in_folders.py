"""The doctor on a log in several folders: read as one, never called lost, repaired where a broker.conf is."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.broker_start import Start
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.copies.backup import make_backup
from seglog.errors import Ending
from seglog.storage.directory import LogRoot
from seglog.storage.findings.code import Severity
from tests.doctor.check.test_lengths import SEGMENT, served
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock

FOLDERS = ("commitlog", "commitlog2")
LENGTHS = "mappedFileSizeConsumeQueue=2000\nmaxHashSlotNum=500\nmaxIndexNum=2000\n"


@pytest.fixture
def root(tmp_path):
    """A real store of RocketMQ with its log files in two folders, in turn."""
    root = golden.extract("roll", tmp_path)
    (root / "commitlog2").mkdir()
    for path in sorted((root / "commitlog").iterdir())[1::2]:
        path.rename(root / "commitlog2" / path.name)
    return root


@pytest.fixture
def whole():
    return served(golden.shared("roll"))


def conf(folder, *folders):
    path = folder / "broker.conf"
    paths = ",".join(f"/a/store/{one}" for one in folders)
    path.write_text(f"storePathCommitLog={paths}\nmappedFileSizeCommitLog={SEGMENT}\n{LENGTHS}")
    return path


def content(root):
    return {name: one for name, one in tree_digest(root).items() if name != "lock"}


def files_of(root):
    return sorted(
        path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).iterdir()
    )


def damage(root):
    """Damages a record in each folder beyond what is certain to be mended."""
    for folder in FOLDERS:
        path = min((root / folder).iterdir())
        data = bytearray(path.read_bytes())
        data[5_000:6_000] = bytes(1_000)
        path.write_bytes(data)


def wrong(report):
    return [(one.code, one.file) for one in report.findings if one.severity is not Severity.NOTE]


def other_conf(root):
    """Puts a configuration into the store that states no folder of the log."""
    (root / "broker.conf").write_text("brokerName=b\n")


@pytest.mark.parametrize("also", [lambda _root: None, other_conf])
def test_a_folder_that_no_configuration_states_is_named_and_no_loss(also, root, whole, seglog):
    also(root)
    report = check_store(root, clock=new_clock())
    assert wrong(report) == [("log-folder", "commitlog2")]
    assert "commitlog2" not in {one.file for one in report.findings if one.code == "stray"}
    verdict = verdict_on(report)
    assert verdict.start.start is Start.UNKNOWN
    assert verdict.lost == 0
    ran = seglog("check", root)
    assert ran.exit_code == Ending.FINDINGS
    assert f"next      seglog repair --broker-conf FILE {root}" in ran.stdout
    assert served(root) == whole
    ran = seglog("info", root)
    assert "none: opening for writing is refused" in ran.stdout
    assert f"storePathCommitLog={root}/commitlog,{root}/commitlog2\n" in ran.stdout
    ran = seglog("verify", root)
    assert (ran.exit_code, "as it was written" in ran.stdout) == (0, True)


def test_a_folder_that_a_configuration_states_is_no_finding(root, tmp_path, seglog):
    given = conf(tmp_path, *FOLDERS)
    ran = seglog("check", "--broker-conf", given, root)
    assert (ran.exit_code, "log-folder" in ran.stdout) == (0, False)
    assert seglog("repair", "--broker-conf", given, root).exit_code == 0
    conf(root, *FOLDERS)
    report = check_store(root, clock=new_clock())
    assert verdict_on(report).start.start is Start.YES
    assert report.is_clean
    ran = seglog("info", root)
    assert f"storePathCommitLog={root}/commitlog,{root}/commitlog2\n" in ran.stdout
    assert "log-folder" not in ran.stdout


def test_info_names_a_log_that_is_in_another_folder_alone(root, seglog):
    for path in list((root / "commitlog").iterdir()):
        path.rename(root / "commitlog2" / path.name)
    assert f"storePathCommitLog={root}/commitlog2\n" in seglog("info", root).stdout


def test_what_a_configuration_says_beside_the_folders_is_in_what_info_says(root, seglog):
    path = conf(root, *FOLDERS)
    path.write_text(path.read_text() + "readOnlyCommitLogStorePaths=/a/store/commitlog2\n")
    ran = seglog("info", root)
    assert f"storePathCommitLog={root}/commitlog,{root}/commitlog2\n" in ran.stdout
    assert f"readOnlyCommitLogStorePaths={root}/commitlog2\n" in ran.stdout


@pytest.mark.parametrize("words", [
    ("repair",), ("repair", "--apply", "--yes"), ("put", "--sync"),
    ("serve", "--port", "0"),
])  # fmt: skip
def test_what_writes_is_refused_and_changes_nothing(words, root, seglog):
    more = ("Topic", "body") if words[0] == "put" else ()
    before = content(root)
    ran = seglog(*words, root, *more)
    assert ran.exit_code == 21, ran
    assert "commitlog, commitlog2" in ran.stderr
    assert content(root) == before


@pytest.mark.parametrize("stated", [True, False])
def test_a_branch_has_the_log_in_as_many_folders(stated, root, whole, seglog):
    if stated:
        conf(root, *FOLDERS)
    ran = seglog("branch", "create", root, "trial")
    assert ran.exit_code == 0, ran
    branch = root / "seglog/branches/trial"
    assert files_of(branch) == files_of(root)
    assert served(branch) == whole
    assert seglog("branch", "list", root).exit_code == 0
    ran = seglog("put", branch, "Topic", "body")
    assert ran.exit_code == (0 if stated else 21), ran
    ran = seglog("branch", "diff", root, "trial")
    assert (ran.exit_code, "Topic" in ran.stdout) == (0, stated)
    assert seglog("branch", "drop", "--apply", root, "trial").exit_code == 0
    assert served(root) == whole


def test_a_trial_of_the_doctor_repairs_both_folders_of_a_branch(root, tmp_path, seglog):
    damage(root)
    given = conf(tmp_path, *FOLDERS)
    ran = seglog("doctor", "--yes", "--broker-conf", given, root)
    assert ran.exit_code in (0, 6), ran
    assert "log-hole" not in {one.code for one in check_store(root, clock=new_clock()).findings}
    assert not list((root / "seglog").glob("branches/*"))


def test_nothing_is_called_lost_while_two_folders_have_a_file_of_one_name(root, seglog):
    conf(root, *FOLDERS)
    first, _second, _third, fourth = logs(root)[:4]
    first.rename(root / "commitlog" / fourth.name)
    before = content(root)
    report = check_store(root, clock=new_clock())
    assert ("log-file-doubled", f"commitlog2/{fourth.name}") in wrong(report)
    verdict = verdict_on(report)
    assert (verdict.start.start, verdict.lost) == (Start.UNKNOWN, None)
    for words in (("repair",), ("repair", "--apply", "--yes"), ("put",)):
        ran = seglog(*words, root, *(("Topic", "body") if words == ("put",) else ()))
        assert ran.exit_code == 21
        assert f"commitlog2/{fourth.name}" in ran.stderr
    assert content(root) == before


def test_a_repair_that_knows_the_folders_repairs_in_both_and_is_undone_in_both(root, tmp_path, seglog):
    damage(root)
    lost = {one.file for one in check_store(root, clock=new_clock()).findings if one.code == "log-hole"}
    assert len(lost) == 2
    before, names = content(root), files_of(root)
    assert seglog("repair", root).exit_code == 21
    assert content(root) == before
    given = conf(tmp_path, *FOLDERS)
    ran = seglog("repair", "--apply", "--yes", "--broker-conf", given, root)
    assert ran.exit_code in (0, 6), ran
    assert files_of(root) == names
    findings = check_store(root, clock=new_clock()).findings
    assert "log-hole" not in {one.code for one in findings}
    assert seglog("undo", root).exit_code == 0  # its pack has all that it needs
    assert content(root) == before


def logs(root):
    """Returns the log files of both folders, by number."""
    return sorted((path for folder in FOLDERS for path in (root / folder).iterdir()), key=lambda at: at.name)


def exchange(root):
    """Exchanges the contents of two files in different folders."""
    first, second = logs(root)[:2]
    first.rename(root / "aside")
    second.rename(first)
    (root / "aside").rename(second)


def renumber(root):
    """Gives the last file with records, which is in the second folder, the number of the next but one."""
    for path in logs(root)[2:]:
        path.unlink()
    last = logs(root)[1]
    last.rename(last.with_name(f"{4 * SEGMENT:020d}"))


def copy_over(root):
    """Copies a file of the first folder over one of the second."""
    first, _second, _third, fourth = logs(root)[:4]
    shutil.copyfile(first, fourth)


def lose(root):
    """Removes a file of the second folder: a repair creates it, with tombstones."""
    logs(root)[1].unlink()


HARMS = (exchange, renumber, copy_over, lose, damage)


@pytest.mark.parametrize("harm", HARMS)
def test_a_repair_of_names_in_both_folders_is_undone_without_a_configuration(harm, root, tmp_path, seglog):
    harm(root)
    before = content(root)
    given = conf(tmp_path, *FOLDERS)
    ran = seglog("repair", "--apply", "--yes", "--broker-conf", given, root)
    assert ran.exit_code in (0, 6), ran
    assert content(root) != before
    told = {one.code for one in check_store(root, clock=new_clock()).findings}
    assert not told & {"undo-unsound", "log-file-misnamed", "log-hole"}
    packs = len(list((root / "seglog/undo").iterdir()))
    for left in reversed(range(packs)):
        ran = seglog("undo", root)
        assert ran.exit_code == 0, ran
        assert (f"repair {left} next" in ran.stdout) == (left > 0)
    assert content(root) == before


@pytest.mark.parametrize("name", ["99999999999999999999", "notes.txt"])
def test_a_file_of_another_name_in_the_second_folder_is_moved_away_and_back(name, root, tmp_path, seglog):
    given = conf(tmp_path, *FOLDERS)
    (root / "commitlog2" / name).write_bytes(b"of nothing here")
    before = content(root)
    ran = seglog("check", "--broker-conf", given, root)
    assert ("log-file-stray" in ran.stdout, "does not start" in ran.stdout) == (True, True)
    assert seglog("repair", "--broker-conf", given, "--apply", "--yes", root).exit_code == Ending.CLEAN
    assert not (root / "commitlog2" / name).exists()
    assert seglog("check", "--broker-conf", given, root).exit_code == Ending.CLEAN
    assert seglog("undo", root).exit_code == Ending.CLEAN
    assert content(root) == before


@pytest.mark.parametrize("harm", HARMS)
def test_a_stopped_repair_in_both_folders_is_taken_back_first(harm, root, tmp_path, seglog):
    harm(root)
    before = content(root)
    given = conf(tmp_path, *FOLDERS)
    repair = ("repair", "--broker-conf", given, root)
    assert seglog(*repair, "--apply", "--yes").exit_code in (0, 6)
    whole = served(root)
    for pack in (root / "seglog/undo").iterdir():
        (pack / "after").unlink()
    stopped = content(root)
    shown = seglog(*repair)
    assert shown.exit_code in (1, 5), shown
    assert content(root) == stopped
    assert seglog(*repair, "--apply", "--yes").exit_code in (0, 6)
    assert served(root) == whole
    while seglog("undo", root).exit_code == 0:
        pass
    assert content(root) == before


def test_no_repair_is_taken_back_after_a_file_in_the_second_folder_was_changed(root, tmp_path, seglog):
    copy_over(root)
    given = conf(tmp_path, *FOLDERS)
    assert seglog("repair", "--apply", "--yes", "--broker-conf", given, root).exit_code in (0, 6)
    with logs(root)[1].open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"late")
    changed = content(root)
    ran = seglog("undo", root)
    assert ran.exit_code != 0
    assert "commitlog2/" in ran.stderr
    assert content(root) == changed


def test_a_configuration_that_names_a_folder_that_is_not_here_is_refused(root, tmp_path, seglog):
    shutil.rmtree(root / "commitlog2")
    given = conf(tmp_path, *FOLDERS)
    before = content(root)
    for words in (("check",), ("repair",), ("repair", "--apply", "--yes")):
        ran = seglog(*words, "--broker-conf", given, root)
        assert ran.exit_code == 21
        assert "/a/store/commitlog2" in ran.stderr
    assert content(root) == before


def test_nothing_is_called_lost_for_good_while_a_link_may_lead_to_it(root, tmp_path, whole, seglog):
    (root / "commitlog2").rename(tmp_path / "disk2")
    (root / "commitlog2").symlink_to(tmp_path / "disk2")
    verdict = verdict_on(check_store(root, clock=new_clock()))
    assert verdict.lost is None
    assert "not known: the log, or a part of it" in seglog("check", root).stdout
    before = content(root)
    assert seglog("put", root, "Topic", "body").exit_code == 29
    assert seglog("repair", "--apply", "--yes", root).exit_code == 29
    assert content(root) == before
    assert wrong(check_store(root, clock=new_clock(), follow=("commitlog2",))) == [
        ("log-folder", "commitlog2")
    ]
    assert seglog("put", "--follow", "commitlog2", root, "Topic", "body").exit_code == 21
    conf(root, *FOLDERS)
    assert seglog("put", "--follow", "commitlog2", root, "Topic", "body").exit_code == 0


@pytest.mark.parametrize("links", [True, False])
def test_a_backup_has_each_file_in_its_folder(links, root, tmp_path, whole):
    make_backup(LogRoot(root), root, tmp_path / "backup", links=links)
    assert files_of(tmp_path / "backup") == files_of(root)
    assert served(tmp_path / "backup") == whole
    assert wrong(check_store(tmp_path / "backup", clock=new_clock())) == [("log-folder", "commitlog2")]
