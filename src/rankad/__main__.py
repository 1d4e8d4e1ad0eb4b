"""``python -m rankad`` is the command ``rankad``."""

from rankad.cli import main

if __name__ == "__main__":
    main()
