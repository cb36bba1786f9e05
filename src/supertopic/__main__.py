"""`python -m supertopic` is the command."""

from supertopic.command.cli import main

main()
