"""The page about the command, made from the command itself."""

import typer

from supertopic.command.cli import app

HEAD = """# The command

Made from the command itself; `supertopic COMMAND --help` shows the same. How to read what is
printed: [Ten minutes](ten-minutes.md). An error is one line on the standard error and exit code 1, wrong usage has exit
code 2, Ctrl-C 130.
"""


def make() -> str:
    """Every command with its arguments and options, as Markdown."""
    text = HEAD
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        text += f"\n## supertopic {name}\n\n{command.help.strip()}\n\n| | | default |\n| --- | --- | --- |\n"
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                names, default = f"`{parameter.name.upper()}`", "needed" if parameter.required else ""
            else:
                names = ", ".join(f"`{part}`" for part in [*parameter.opts, *parameter.secondary_opts])
                default = "needed" if parameter.required else shown(parameter)
            text += f"| {names} | {(parameter.help or '').replace('|', '/')} | {default} |\n"
    return text


def shown(parameter) -> str:
    """An option's default as a reader knows it."""
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if default is None or default is False:
        return ""
    if default is True:
        return "on"
    return f"`{getattr(default, 'value', default)}`".replace("|", "\\|")
