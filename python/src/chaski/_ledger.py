"""The ledger: which batches this rank was given (docs/ledger.md), read by `chaski ledger check`."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import secrets
import time
import zlib
from typing import Any

import numpy as np

from chaski._assemble import Batch
from chaski._files import absolute_path, sync, sync_names

_log = logging.getLogger("chaski")

LAUNCH = (
    *("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
    *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"),
)
"""Variables that have one value on all ranks of a start, and mostly another one at the next."""


class Ledger:
    """The file of one rank and start. For one thread."""

    def __init__(self, folder: str | os.PathLike[str], **head: Any) -> None:
        """Makes the folder. The file begins with the first batch; head says what it is of."""
        self._folder = absolute_path(os.fspath(folder))
        os.makedirs(self._folder, exist_ok=True)
        launch = (f"{name}={os.environ[name]}" for name in LAUNCH if name in os.environ)
        self._head = {"ledger": 1, **head, "launch": " ".join(launch)}
        self._file: io.FileIO | None = None
        self._checksum = 0  # of all lines
        self._whole = True  # nothing failed, and it is not closed
        self.restored = False  # a state was loaded since the last batch

    def add(self, batch: Batch) -> None:
        """Notes a batch that the trainer is about to get. What fails is said, and ends the file."""
        if not self._whole:
            return
        valid, more = batch["valid"], ""
        if batch.bad:
            became = {r.position: "filled" if valid[r.row] else "skipped" for r in batch.bad}
            became |= {r.position: "replaced" for r in batch.bad if r.instead is not None}
            bad = [{"position": p, "became": how} for p, how in became.items()]
            more = f',"bad":{json.dumps(bad)}'
        if batch._weights is not None:
            more += f',"weights":"{batch._weights.hash}"'
        if self.restored and self._file is not None:
            more += ',"restored":true'
        self.restored = False
        place = f'"epoch":{batch.epoch},"step":{batch.step},"time":{time.time():.3f}'
        rows = f'"first":{batch["position"][0]},"samples":{np.count_nonzero(valid)}'
        try:
            if self._file is None:
                self._file = self._begin()
                self._write(f"{json.dumps(self._head)[:-1]},{place}}}")
            self._write(f"{{{place},{rows}{more}}}")
        except OSError as e:
            self._fail(e)

    def _fail(self, e: OSError) -> None:
        self.close()
        _log.warning("the ledger ends here, and its check will miss what follows: %s", e)

    def _begin(self) -> io.FileIO:
        began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        rank, world = self._head["rank"], self._head["world_size"]
        name = f"{began}-{rank}-of-{world}-{secrets.token_hex(4)}.ledger"
        file = io.FileIO(os.path.join(self._folder, name), "x")
        sync_names(self._folder)
        return file

    def _write(self, line: str) -> None:
        assert self._file is not None
        text = line.encode()
        self._checksum = zlib.crc32(text, self._checksum)
        text = b"%08x %s\n" % (self._checksum, text)
        if self._file.write(text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._file.name)

    def sync(self) -> None:
        """Waits until all records are on the disk, before a state counts their steps."""
        try:
            if self._file is not None:
                sync(self._file.fileno())
        except OSError as e:
            self._fail(e)

    def close(self) -> None:
        """Closes the file."""
        self._whole = False
        if self._file is not None:
            self._file.close()
            self._file = None
