"""`python -m sojourn` is `sojourn`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C gives no traceback while commands are imported, either."""
    try:
        from sojourn.cli import main as run  # noqa: PLC0415 - takes 0.3 s
    except KeyboardInterrupt:
        print("sojourn: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
