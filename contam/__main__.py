"""`python -m contam` is the `contam` command."""

from contam.cli.main import run

if __name__ == "__main__":
    run()
