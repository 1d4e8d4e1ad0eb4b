"""Build the source distribution and the wheel, twice, and check them: ``python -m tools.dist dist``.

`make dist` runs it. The second build is of a copy in another folder, in another time zone and with other
permissions; both must be the same to the last byte. Then `twine check --strict`, and what is in them.
Needs the extra ``release``, and no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import BytesParser
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Whatever else is in a distribution is an error: results of studies, data, caches, somebody's notes.
IN_SDIST = (
    *("PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"),
    *("Makefile", "pyproject.toml", ".gitignore", "src/rankad/*", "tests/*.py", "benchmarks/*.py"),
    *("tools/*.py", "docs/*.md", "docs/*.py", "docs/readme-*.png"),
)
IN_WHEEL = ("rankad/*", "rankad-*.dist-info/*")
# Parts that Python does not import, so that no test of the code would miss them.
NEEDED = (
    "rankad/py.typed",
    "rankad/report/page.html.j2",
    "rankad/report/page.js",
    "rankad/report/style.css",
    "rankad/service/page/files/index.html",
    "rankad/service/page/files/main.js",
)
MOST_BYTES = {"sdist": 3_000_000, "wheel": 1_500_000}
LARGEST_FILE = 400_000


def main(folder: str) -> None:
    """Build into the folder, print what was found, and exit with 1 if anything is wrong."""
    out = Path(folder).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        copy, again = Path(scratch, "a copy"), Path(scratch, "again")
        fresh = Path(scratch, "fresh")
        build(ROOT, fresh, {})
        version = metadata(next(fresh.glob("*.whl")))["Version"]
        copy_tree(copy)
        other = {"TZ": "Pacific/Apia", "LC_ALL": "C", "SETUPTOOLS_SCM_PRETEND_VERSION": version}
        build(copy, again, other, mask=0o077)
        wrong = [*differences(fresh, again), *contents(fresh)]
        out.mkdir(parents=True, exist_ok=True)
        for old in [*out.glob("rankad-*.whl"), *out.glob("rankad-*.tar.gz")]:
            old.unlink()
        for made in sorted(fresh.iterdir()):
            shutil.copy2(made, out / made.name)
            print(f"{digest(made)}  {out.name}/{made.name}  {made.stat().st_size:,} bytes")
    twine = [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(out.glob("rankad-*")))]
    if subprocess.run(twine, check=False).returncode:
        wrong.append("twine check --strict failed; see above.")
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"rankad {version}: built twice, the same to the last byte; all is in it that should be.")


def build(tree: Path, out: Path, environment: Mapping[str, str], mask: int = 0o022) -> None:
    """Build the source distribution, and from it the wheel."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)]
    known = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), **environment}
    done = subprocess.run(command, env=known, umask=mask, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The build of {tree} failed:\n{done.stdout}{done.stderr}")


def commit_time() -> str:
    """Return the time of the last commit in seconds, or a fixed one where there is no git."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "1577836800"


def copy_tree(target: Path) -> None:
    """Copy what git knows or would take, without its history; outside of git, everything."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        shutil.copytree(ROOT, target)
        return
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def differences(one: Path, other: Path) -> list[str]:
    """Return what differs between two builds."""
    names = [sorted(path.name for path in folder.iterdir()) for folder in (one, other)]
    if names[0] != names[1]:
        return [f"Two builds have other names: {names[0]} and {names[1]}."]
    return [
        f"{name} comes out differently when built again: {digest(one / name)}, then {digest(other / name)}."
        for name in names[0]
        if digest(one / name) != digest(other / name)
    ]


def contents(folder: Path) -> list[str]:
    """Return what should not be in the distributions, and what is missing."""
    sdist, wheel = next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))
    with tarfile.open(sdist) as archive:
        in_sdist = {one.name.partition("/")[2]: one.size for one in archive if one.isfile()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {one.filename: one.file_size for one in archive.infolist()}
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "rankad").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    wrong = [f"{sdist.name} should not hold {name}." for name in unlike(in_sdist, IN_SDIST)]
    wrong += [f"{wheel.name} should not hold {name}." for name in unlike(in_wheel, IN_WHEEL)]
    wrong += [f"{wheel.name} lacks {name}." for name in sorted({*package, *NEEDED} - set(in_wheel))]
    wrong += [f"{sdist.name} lacks src/{name}." for name in sorted(package) if f"src/{name}" not in in_sdist]
    for held in (in_sdist, in_wheel):
        wrong += [f"{name} has {size:,} bytes." for name, size in held.items() if size > LARGEST_FILE]
    for made, kind in ((sdist, "sdist"), (wheel, "wheel")):
        if made.stat().st_size > MOST_BYTES[kind]:
            wrong.append(f"{made.name} has {made.stat().st_size:,} bytes, more than {MOST_BYTES[kind]:,}.")
    print(f"{sdist.name}: {len(in_sdist)} files; {wheel.name}: {len(in_wheel)} files")
    return wrong


def unlike(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match none of the patterns; a star stands for slashes, too."""
    return sorted(name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns))


def metadata(wheel: Path) -> Mapping[str, str]:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder to build into: python -m tools.dist dist")
    main(sys.argv[1])
