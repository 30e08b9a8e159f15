"""`python -m chaski`: the command `chaski`."""

from chaski import _cli

if __name__ == "__main__":
    _cli.main()
