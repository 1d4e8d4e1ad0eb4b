"""Files that no program of ours reads: recipe, image, workflows. They must say what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def bounds(extra=None):
    """Return the packages and versions that the core or an extra needs, its own extras followed."""
    found = {}
    for line in PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]:
        one = Requirement(line)
        if one.name == "rankad":
            for other in one.extras:
                found |= bounds(other)
        else:
            found[one.name] = str(one.specifier)
    return found


USER_EXTRAS = [
    name
    for name in PROJECT["optional-dependencies"]
    if name not in ("bench", "dev", "docs", "release", "test")
]


@pytest.mark.parametrize("extra", [None, *USER_EXTRAS])
def test_every_dependency_of_a_user_has_a_lowest_version(extra):
    without = {name for name, versions in bounds(extra).items() if ">=" not in versions}
    assert without == set()


def test_the_conda_recipe_asks_for_what_the_core_and_the_command_ask_for():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    run = dict(line.split(" ", 1) for line in recipe["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"].replace(">=3.11", ">=${{ python_min }}")
    assert run == bounds() | bounds("cli")


def test_the_image_is_made_of_files_that_are_there():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M) for name in line.split()]
    assert copied
    assert [name for name in copied if not name.startswith("dist/") and not (ROOT / name).is_file()] == []
    assert re.search(r"^USER \d+:\d+$", text, re.M)
    assert re.search(r"^HEALTHCHECK ", text, re.M)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_ask_for_the_least(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@v\d+\.\d+\.\d+", action)] == []
    # Of the whole workflow nothing, or reading alone; what a job may write, it says.
    assert workflow["permissions"] in ({}, {"contents": "read"})
    targets = {line for line in re.findall(r"run: make ([\w-]+)", text)}
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert targets <= made


def test_workflows_test_every_python_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    promised = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == promised
