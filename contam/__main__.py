"""Run the `contam` command with `python -m contam`."""

from contam.cli.main import run

if __name__ == "__main__":
    run()
