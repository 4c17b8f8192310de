"""`python -m meanmap`: the command line."""

from meanmap.cli import main

if __name__ == "__main__":
    main()
