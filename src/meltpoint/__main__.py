"""`python -m meltpoint` is the command `meltpoint`."""

from meltpoint.cli import main

if __name__ == "__main__":
    main()
