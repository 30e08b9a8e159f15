"""`python -m chaski`: the command `chaski`, and beside it `doctor`, which trains."""

import sys

from chaski import _cli, _doctor

if __name__ == "__main__":
    if sys.argv[1:2] == ["doctor"]:
        try:
            _doctor.main(sys.argv[2:])
        except KeyboardInterrupt:
            print("chaski: interrupted", file=sys.stderr)
            sys.exit(130)
    else:
        _cli.main()
