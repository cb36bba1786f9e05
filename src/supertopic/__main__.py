"""`python -m supertopic` is the command."""

import sys


def main() -> None:
    """Import the command and run it; Ctrl-C ends it quietly, also while it is imported."""
    try:
        from supertopic.command.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
