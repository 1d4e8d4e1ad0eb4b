"""The directive `commands`: every command and option of the program, as it declares them."""

from __future__ import annotations

import re
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles


class Commands(Directive):
    """Write a section for each command."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from rankad.cli.app import build

        lines = list(reference(typer.main.get_command(build())))
        parent = nodes.section()
        parent.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, "rankad.cli"), parent)
        return parent.children


def reference(program: Any):
    """Yield the whole reference as lines of reStructuredText."""
    yield ".. program:: rankad"
    yield ""
    yield from _options(program, "rankad")
    for name, command in program.commands.items():
        full = f"rankad {name}"
        yield from ["", full, "-" * len(full), "", f".. program:: {full}", ""]
        yield from _paragraphs(command.help or "")
        yield from ["", ".. code-block:: text", "", f"   {usage(command, full)}", ""]
        yield from _arguments(command)
        yield from _options(command, full)


def usage(command: Any, name: str) -> str:
    """Return the line that says how a command is called."""
    arguments = (p for p in command.params if p.param_type_name == "argument")
    shown = (_metavar(p) if p.required else f"[{_metavar(p)}]" for p in arguments)
    return " ".join([name, "[OPTIONS]", *shown])


def _arguments(command):
    for argument in command.params:
        if argument.param_type_name == "argument":
            yield from [f"``{_metavar(argument)}``", f"   {_text(argument)}", ""]


def _options(command, name):
    for option in command.params:
        if option.param_type_name == "option" and not option.hidden:
            metavar = "" if option.is_flag else f" {_metavar(option)}"
            names = ", ".join(f"{flag}{metavar}" for flag in [*option.opts, *option.secondary_opts])
            yield from [f".. option:: {names}", "", f"   {_text(option)}", ""]


def _metavar(parameter) -> str:
    given = parameter.metavar or parameter.name
    return given.strip("{}").upper() + ("..." if parameter.nargs == -1 else "")


def _text(parameter) -> str:
    """Return what a parameter's help says, with its limits, as reStructuredText."""
    text = " ".join((getattr(parameter, "help", None) or "").split())
    text = text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|")
    text = re.sub(r"(?<![\w-])(--?[a-z][a-z-]*)", r"``\1``", text)
    if getattr(parameter, "required", False) and parameter.param_type_name == "option":
        text += " *Required.*"
    if getattr(parameter, "multiple", False):
        text += " *May be given more than once.*"
    if "[default: " in text:
        before, default = text.split("[default: ", 1)
        return f"{before}*Default: {default.replace(']', '')}.*".replace("``", "")
    shown = getattr(parameter, "default", None)
    if isinstance(shown, str | int | float) and not isinstance(shown, bool) and shown != "":
        text += f" *Default: {shown}.*"
    return text


def _paragraphs(text: str):
    for paragraph in text.replace("\b", "").split("\n\n"):
        yield from [" ".join(paragraph.split()).replace("*", "\\*"), ""]


def setup(app):
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
