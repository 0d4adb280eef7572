"""`python -m sojourn` is `sojourn`."""

from sojourn.cli import main

if __name__ == "__main__":
    main()
