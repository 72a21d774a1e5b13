"""Builds the judge (``java/``) once, into a cache outside the tree; afterwards nothing needs the network.

The cache is ``$SEGLOG_INTEROP_CACHE``, or ``seglog/interop`` under ``$XDG_CACHE_HOME`` or ``~/.cache``:
``<version>/jars-<hash>`` holds RocketMQ as Maven resolved it, ``<version>/classes-<hash>.jar`` what javac
made of our sources. Both are named after what went into them and appear in one rename, so a changed source
never meets a running process. A file lock lets one process build while others wait.

Beside the classes of a judge is an archive of all that a broker, a client and a store load: half of what the
start of a JVM costs is reading and checking classes. Java holds it against the jars, and continues without
one that does not fit.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1] / "java"
GO_PROJECT: Final = Path(__file__).parents[1] / "go"
DEFAULT_VERSION: Final = "5.4.0"
NEWEST_VERSION: Final = "5.5.1"
COMPANIONS: Final = {"5.5.1": "5.5.0"}
"""Release of the modules that the store does not call, where repositories have no newer one of them yet."""
OLD_CLIENTS: Final = "4.9.8"
"""Release of the clients in ``old-clients.xml``: the last before 5."""
CLIENTS: Final = "src/main/java/seglog/clients"
MIN_JDK: Final = 17
MIN_GO: Final = "1.22"
BUILD_LIMIT_S: Final = 600

# RocketMQ unmaps its files through internals of the JDK; its own start scripts open the same doors.
JVM_DOORS: Final = (
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)
QUICK: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For JVMs of tests, which end before more than that pays."""
_SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


class BuildError(Exception):
    """Maven or javac failed; the message holds what they said."""


def cache_dir() -> Path:
    """Returns where builds are kept."""
    chosen = os.environ.get("SEGLOG_INTEROP_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seglog" / "interop"


def jdk_tool(name: str) -> str | None:
    """Returns the path of ``java`` or ``javac``, that of ``$JAVA_HOME`` first, or None."""
    java_home = os.environ.get("JAVA_HOME")
    in_home = shutil.which(name, path=f"{java_home}/bin") if java_home else None
    return in_home or shutil.which(name)


def missing_tool() -> str | None:
    """Says which tool is missing and what to install, or None when all are there."""
    tools = {"java": jdk_tool("java"), "javac": jdk_tool("javac"), "mvn": shutil.which("mvn")}
    for name, path in tools.items():
        if path is None:
            return f"no {name} on PATH; the real RocketMQ needs a JDK {MIN_JDK} or newer and Maven"
    said = subprocess.run(
        [str(tools["javac"]), "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    version = said.stdout.strip() or said.stderr.strip()
    release = re.search(r"javac (\d+)", version)
    if release is None or int(release[1]) < MIN_JDK:
        return f"{version or 'javac'} is too old; the real RocketMQ needs JDK {MIN_JDK} or newer"
    return None


def build(version: str = DEFAULT_VERSION) -> str:
    """Returns the class path of the judge over RocketMQ ``version``, built when it is not in the cache.

    Raises:
        BuildError: The jars could not be resolved (no network, no such version) or the sources not compiled.
    """
    companions = COMPANIONS.get(version, version)
    definitions = (f"-Drocketmq.version={version}", f"-Drocketmq.companions.version={companions}")
    class_path = build_project(PROJECT, version, *definitions)
    with _locked(cache_dir() / version / "lock"):
        _made_once(_archive_of(class_path), lambda into: _archive(class_path, into))
    return class_path


def build_project(project: Path, name: str, *definitions: str, shared: Path | None = None) -> str:
    """Returns the class path of a Maven project, built when it is not in the cache.

    Args:
        project: Its directory.
        name: Its directory in the cache.
        definitions: Properties for Maven.
        shared: A folder of further sources, which several projects have.

    Raises:
        BuildError: As :func:`build`.
    """
    folders = [project / "src", *([] if shared is None else [shared])]
    return _built(project / "pom.xml", folders, name, *definitions)


def build_old_clients() -> str:
    """Returns the class path of what applications do with clients, over clients of ``OLD_CLIENTS``.

    Raises:
        BuildError: As :func:`build`.
    """
    return _built(PROJECT / "old-clients.xml", [PROJECT / CLIENTS], f"clients-{OLD_CLIENTS}")


def build_old_store() -> str:
    """Returns the class path of a program that writes stores of ``OLD_CLIENTS``.

    Raises:
        BuildError: As :func:`build`.
    """
    return build_project(PROJECT / "old", f"store-{OLD_CLIENTS}")


def missing_go() -> str | None:
    """Says what keeps clients in Go from being built here, or None: fetches what they are made of."""
    if not Path(_go()).is_file():
        return f"no go on PATH; the client in Go is built with go {MIN_GO} or newer"
    said = _ask_go("env", "GOVERSION")
    release = re.match(r"go1\.(\d+)", said.stdout)
    if release is None or int(release[1]) < int(MIN_GO.partition(".")[2]):
        return f"{said.stdout.strip() or said.stderr.strip()} is not go {MIN_GO} or newer"
    fetched = _ask_go("mod", "download")
    return None if fetched.returncode == 0 else f"go mod download failed: {fetched.stderr[-500:]}"


def build_go_clients() -> Path:
    """Returns the program of what applications do with clients in Go, built when it is not in the cache.

    Raises:
        BuildError: The sources could not be compiled.
    """
    home = cache_dir() / "go"
    home.mkdir(parents=True, exist_ok=True)
    sources = sorted(GO_PROJECT.glob("*.*"))
    with _locked(home / "lock"):
        return _made_once(
            home / f"clients-{_digest(sources)}",
            lambda into: _run(_go(), "build", "-C", GO_PROJECT, "-o", into, "."),
        )


def missing_cargo() -> str | None:
    """Says why programs in Rust cannot be built here, or None."""
    return None if shutil.which("cargo") else "no cargo on PATH; peers in Rust are built with it"


def build_rust(project: Path, program: str) -> Path:
    """Returns a program of a Cargo project, built when it is not in the cache.

    Args:
        project: Its directory, with ``Cargo.toml`` and ``src``; a copy of it is built, as Cargo writes to it.
        program: Its name.

    Raises:
        BuildError: As :func:`build`.
    """
    path = _rust_path(project, program)
    home = path.parent
    home.mkdir(parents=True, exist_ok=True)

    def make(into: Path) -> None:
        shutil.rmtree(home / "project", ignore_errors=True)
        shutil.copytree(project, home / "project")
        target = home / "target"  # what it depends on is compiled once
        manifest = ("--manifest-path", home / "project" / "Cargo.toml", "--target-dir", target)
        _run("cargo", "build", "--quiet", "--release", *manifest)
        shutil.copy(target / "release" / program, into)

    with _locked(home / "lock"):
        return _made_once(path, make)


def built_rust(project: Path, program: str) -> Path | None:
    """Returns a program of a Cargo project if it has been built, and builds nothing."""
    path = _rust_path(project, program)
    return path if path.exists() else None


def _rust_path(project: Path, program: str) -> Path:
    sources = [project / "Cargo.toml", *sorted((project / "src").rglob("*.rs"))]
    return cache_dir() / "rust" / f"{program}-{_digest(sources)}"


def _go() -> str:
    return shutil.which("go") or "/usr/local/go/bin/go"  # where its own archive is unpacked


def _ask_go(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_go(), *arguments],
        cwd=GO_PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_LIMIT_S,
    )


def _built(pom: Path, folders: Sequence[Path], name: str, *definitions: str) -> str:
    home = cache_dir() / name
    home.mkdir(parents=True, exist_ok=True)
    sources = sorted(source for folder in folders for source in folder.rglob("*.*"))
    with _locked(home / "lock"):
        jars = _made_once(home / f"jars-{_digest([pom])}", lambda into: _resolve(pom, definitions, into))
        classes = _made_once(
            home / f"classes-{_digest([pom, *sources])}.jar", lambda into: _compile(sources, jars, into)
        )
    return f"{classes}:{jars}/*"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _made_once(path: Path, make: Callable[[Path], None]) -> Path:
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as scratch:
            new = Path(scratch) / path.name
            make(new)
            new.rename(path)
    return path


def _resolve(pom: Path, definitions: Sequence[str], into: Path) -> None:
    _run(
        *("mvn", "-q", "-B", "-f", pom),
        *definitions,
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"),
    )


def _compile(sources: list[Path], jars: Path, into: Path) -> None:
    java = [source for source in sources if source.suffix == ".java"]
    made = into.with_suffix("")
    _run(
        jdk_tool("javac") or "javac",
        "--release",
        str(MIN_JDK),
        "-nowarn",
        "-d",
        made,
        "-cp",
        f"{jars}/*",
        *java,
    )
    # An archive of classes takes none from a folder.
    with zipfile.ZipFile(into, "w") as jar:
        for source in sources:
            if source.suffix != ".java":
                jar.write(source, source.name)
        for file in sorted(made.rglob("*.class")):
            jar.write(file, file.relative_to(made))


def _archive_of(class_path: str) -> Path:
    return Path(class_path.partition(":")[0]).with_suffix(".jsa")


def _archive(class_path: str, into: Path) -> None:
    """Makes the archive, or an empty file that says that this Java cannot."""
    home = into.parent
    store = {"dir": str(home / "store"), "segmentBytes": 1 << 16, "queueBytes": 2_000}
    store["config"] = {"maxHashSlotNum": "500", "maxIndexNum": "2000", "timerWheelEnable": "false"}
    orders: list[dict[str, object]] = [
        {"op": "write", "messages": [{"topic": "T", "count": 2, "keys": "k", "tags": "t"}], **store},
        {"op": "dump", **store},
        {"op": "brokerStart", "nameServer": True, "broker": {"brokerName": "b"}, **store},
        {"op": "admin", "arguments": ["updateTopic", "-c", "DefaultCluster", "-t", "T"]},
        {"op": "admin", "arguments": ["sendMessage", "-t", "T", "-p", "m"]},
        {"op": "memberStart", "client": "c", "group": "g", "topic": "T"},
        {"op": "memberStop", "client": "c"},
        {"op": "brokerStop"},
    ]
    command = command_line(class_path, *QUICK, f"-XX:ArchiveClassesAtExit={into}", f"-Duser.home={home}")
    subprocess.run(
        [*command, "serve"],
        input="".join(json.dumps(order) + "\n" for order in orders),
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_LIMIT_S,
    )
    into.touch()


def _run(*command: str | Path) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_LIMIT_S,
    )
    if done.returncode != 0:
        raise BuildError(f"{command[0]} failed ({done.returncode}): {(done.stdout + done.stderr)[-2000:]}")


def command_line(class_path: str, *jvm_options: str, main_class: str = "seglog.judge.Judge") -> list[str]:
    """Returns the command that runs the judge, or another program on its class path; its arguments follow."""
    logging = "-Drmq.logback.configurationFile=judge-logback.xml"
    archive = _archive_of(class_path)
    is_there = archive.is_file() and archive.stat().st_size > 0
    archived = [f"-XX:SharedArchiveFile={archive}", *_SILENT] if is_there else []
    options = [*JVM_DOORS, logging, *archived, *jvm_options]
    return [jdk_tool("java") or "java", *options, "-cp", class_path, main_class]


if __name__ == "__main__":
    program, *arguments = [*command_line(build(), *QUICK), *sys.argv[1:]]
    os.execvp(program, [program, *arguments])  # noqa: S606 - the point: this process becomes the judge
