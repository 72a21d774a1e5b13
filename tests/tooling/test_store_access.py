"""Files of a store are reached through its StoreRoot, and by nothing else in the package.

Every module with calls that take a path to the operating system is listed here, with the reason why the path
is not one of a store.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "seglog"

SEAM = {
    "storage/files/files.py": "real files by any path: what StoreRoot makes the caller's own folder with",
    "storage/files/real_file.py": "works on a folder's descriptor and a name in it, for the seam",
    "storage/files/store_root.py": "the seam itself",
    "storage/files/root_folder.py": "the seam itself",
    "storage/files/beneath.py": "the seam itself",
    "storage/files/hardlinks.py": "works on a folder's descriptor and a name in it, for the seam",
    "storage/files/file_owner.py": "works on a folder's descriptor and a name in it, for the seam",
    "storage/files/store_lock.py": "works on a folder's descriptor and a name in it, for the seam",
}

OWN = {
    "cli/doctor/check.py": "the resume file, which lies outside of every store",
    "cli/admin/bench.py": "asks how much is free where the folder of the measures will be",
    "cli/admin/bench_measures.py": "the folder of the measures, which the command has made",
    "cli/demo/demo.py": "the folder of the demonstration",
    "cli/demo/demo_recovery.py": "the folder of the demonstration, and the package's own data",
    "cli/ui/failures.py": "/dev/null",
    "cli/doctor/import_.py": "the file to import, which the user names",
    "cli/read/info.py": "prints the path of the store that the user gave",
    "cli/doctor/doctor.py": "asks for the name of the store that the user gave",
    "cli/doctor/repair.py": "asks for the name of the store that the user gave",
    "cli/serving/port_holder.py": "/proc",
    "cli/spark/__main__.py": "the package's own folder",
    "cli/spark/compaction.py": "the path of the store that the user gave",
    "cli/spark/options.py": "the path of the store that the user gave",
    "cli/ui/json_kinds.py": "the package's own data",
    "cli/ui/standard_output.py": "/dev/null",
    "cli/ui/store_paths.py": "asks which folders that the user named are in a store; opens none of its files",
    "cli/ui/version.py": "the JDK's release file",
    "doctor/copies/backup.py": "compares the paths that the user gave",
    "storage/files/folder_use.py": "the folder of a client's offsets, outside of every store",
    "storage/directory/log_paths.py": "compares folders that a broker's configuration states; opens none",
    "storage/files/output_path.py": "asks whether a file that the user names is in the store",
    "doctor/check/check_progress_file.py": "the resume file, which lies outside of every store",
    "spark/archive/beforehand.py": "the path of the store that the user gave",
    "spark/archive/folder.py": "compares the paths that the user gave",
    "spark/archive/restore.py": "the path of the store that the user gave",
    "spark/columnar_jar.py": "the package's own jar",
    "spark/compact/compact.py": "the path of the store that the user gave",
    "spark/compact/swap.py": "asks whether the path that the user gave is a mount point",
    "spark/reconcile/since.py": "an earlier report, which the user names",
    "spark/save.py": "the folder for results, which the user names",
    "spark/session.py": "a temporary folder of the session, and the package's own",
    "spark/user_settings.py": "the settings of Spark, which the user wrote",
    "spark/source/write/append_job.py": "the staging folder beside the store, which the job made",
    "spark/source/write/staging.py": "the staging folder beside the store, which the job made",
    "storage/small_files/named_file.py": "a file that the user names",
}

OF_USERS = {
    "cli/admin/offsets_local.py": "offsets of clients that broadcast, outside of every store",
    "consumer/member_parts.py": "offsets of a client that broadcasts, outside of every store",
}
"""Who has files by any path, and whose they are."""

OF_OS = {
    *("access", "chmod", "chown", "link", "listdir", "lstat", "makedirs", "mkdir", "mkfifo", "mknod", "open"),
    *(
        "readlink",
        "remove",
        "removedirs",
        "rename",
        "renames",
        "replace",
        "rmdir",
        "scandir",
        "stat",
        "statvfs",
    ),
    *("symlink", "truncate", "unlink", "utime", "walk", "fwalk"),
}
OF_PATH = {
    *("chmod", "glob", "hardlink_to", "is_block_device", "is_char_device", "is_fifo", "is_file", "is_mount"),
    *(
        "is_socket",
        "is_symlink",
        "iterdir",
        "lchmod",
        "lstat",
        "mkdir",
        "read_bytes",
        "read_text",
        "readlink",
    ),
    *("resolve", "rglob", "rmdir", "samefile", "symlink_to", "touch", "unlink", "write_bytes", "write_text"),
}
WITHOUT_ARGUMENTS = {"exists", "is_dir", "stat"}
"""Calls of Path; those of Files of the same name take a path."""
MODES = {"r", "rb", "w", "wb", "a", "ab", "x", "xb", "r+", "r+b", "w+", "w+b"}


def is_raw(call):
    """Returns whether a call takes a path to the operating system."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    if not isinstance(call.func, ast.Attribute):
        return False
    name, owner = call.func.attr, call.func.value
    if isinstance(owner, ast.Name) and owner.id == "os":
        return name in OF_OS
    if isinstance(owner, ast.Name) and owner.id == "shutil":
        return name not in {"get_terminal_size", "which"}
    if name == "resolve" and call.args:  # of something else: Path's takes none
        return False
    if name in WITHOUT_ARGUMENTS:
        return not call.args
    if name == "open":
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value in MODES
    return name in OF_PATH


def raw_calls(source):
    return [
        f"{node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and is_raw(node)
    ]


def sources():
    """Yields each module of the package with its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path.read_text()


def test_a_store_is_reached_through_its_root_only():
    found = {module: calls for module, source in sources() if (calls := raw_calls(source))}
    excepted = SEAM.keys() | OWN.keys()
    beside = {module: calls for module, calls in found.items() if module not in excepted}
    assert beside == {}, "these take a path to the system: use the files of a StoreRoot"
    assert excepted - found.keys() == set(), "these need no exception any more"


def test_files_by_any_path_are_those_of_the_seam_or_of_no_store():
    users = {module for module, source in sources() if "RealFiles(" in source}
    assert users - SEAM.keys() == OF_USERS.keys()


@pytest.mark.parametrize(
    "line",
    [
        "os.open(path, 0)",
        "os.unlink(path)",
        "open(path)",
        "path.open('rb')",
        "(root / 'x').read_bytes()",
        "path.exists()",
        "path.stat()",
        "shutil.rmtree(path)",
        "sorted(folder.iterdir())",
    ],
)
def test_raw_calls_are_seen(line):
    assert raw_calls(line)


@pytest.mark.parametrize(
    "line",
    [
        "files.open(path, writable=True)",
        "files.exists(path)",
        "os.fsync(descriptor)",
        "os.path.join('a', 'b')",
        "shutil.which('java')",
        "codes.resolve(topic, queue_id)",
        "MessageStore.open(path)",
    ],
)
def test_other_calls_are_not(line):
    assert not raw_calls(line)
