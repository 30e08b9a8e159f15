"""`python -m chaski`: the command `chaski`, and beside it `doctor`, which trains."""

import sys

from chaski import _cli, _doctor

if __name__ == "__main__":
    if sys.argv[1:2] == ["doctor"]:
        _doctor.main(sys.argv[2:])
    else:
        _cli.main()
