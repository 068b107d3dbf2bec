"""``python -m forcopt`` is the command line."""

from forcopt.cli import main

if __name__ == "__main__":
    main()
