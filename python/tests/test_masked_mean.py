"""masked_mean equals the plain mean over valid rows and pixels, with its gradients."""

from __future__ import annotations

import contextlib
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812

import chaski  # noqa: E402
from chaski.torch import masked_mean  # noqa: E402

N, C, Y, X = 5, 3, 4, 6


def batch(valid: list[bool] | None = None) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    return {
        "image": torch.randn(N, C, Y, X, generator=g),
        "mask": torch.randint(0, C, (N, 1, Y, X), generator=g, dtype=torch.uint8),
        "seen": torch.randint(0, 2, (N, 2, Y, X), generator=g, dtype=torch.uint8),
        "steps": torch.tensor([[1, 1], [1, 0], [0, 0], [1, 1], [1, 0]], dtype=torch.uint8),
        "valid": torch.tensor(valid or [True, True, False, True, False]),
    }


@pytest.mark.parametrize("ignore", [None, 1])
@pytest.mark.parametrize("validity", [None, "seen"])
def test_pixels(validity, ignore):
    """The judge is the sum of single losses, one pixel at a time."""
    b = batch()
    got_x, want_x = (b["image"].clone().requires_grad_() for _ in range(2))
    loss = F.cross_entropy(got_x, b["mask"][:, 0].long(), reduction="none")
    got = masked_mean(loss, b, validity=validity, ignore=ignore and {"mask": ignore})
    arrays = {k: v.numpy() for k, v in b.items()}  # a batch of chaski.load
    assert got == masked_mean(loss, arrays, validity=validity, ignore=ignore and {"mask": ignore})
    one_by_one = [
        F.cross_entropy(want_x[n : n + 1, :, y, x], b["mask"][n : n + 1, 0, y, x].long())
        for n in range(N)
        for y in range(Y)
        for x in range(X)
        if b["valid"][n]
        and (validity is None or b["seen"][n, :, y, x].all())
        and (ignore is None or b["mask"][n, 0, y, x] != ignore)
    ]
    assert len(one_by_one) < N * Y * X
    want = torch.stack(one_by_one).mean()
    torch.testing.assert_close(got, want)
    got.backward()
    want.backward()
    torch.testing.assert_close(got_x.grad, want_x.grad)
    assert not got_x.grad[~b["valid"]].any()


def test_samples_and_steps():
    b = batch()
    loss = torch.arange(1.0, N + 1)
    assert masked_mean(loss, b) == (1 + 2 + 4) / 3
    assert masked_mean(loss.reshape(N, 1), b) == (1 + 2 + 4) / 3
    two = torch.stack([loss, 10 * loss], dim=1)
    assert masked_mean(two, b, validity="steps") == (1 + 10 + 2 + 4 + 40) / 5
    # The same for all pixels of a step.
    wide = two[:, :, None, None].expand(N, 2, Y, X)
    assert masked_mean(wide, b, validity="steps") == (1 + 10 + 2 + 4 + 40) / 5


def test_nothing_counts():
    b = batch([False] * N)
    x = torch.full((N,), float("nan"), requires_grad=True)
    loss = masked_mean(x * 2, b)
    assert loss == 0
    loss.backward()
    assert x.grad.tolist() == [0] * N


def test_what_does_not_count_may_be_anything():
    x = torch.tensor([1.0, 3.0, float("inf"), 5.0, float("nan")], requires_grad=True)
    loss = masked_mean(x, batch())
    assert loss == 3
    loss.backward()
    torch.testing.assert_close(x.grad, torch.tensor([1, 1, 0, 1, 0]) / 3)


def test_half_precision_does_not_overflow():
    b = {"valid": torch.ones(4, dtype=torch.bool)}
    assert masked_mean(torch.full((4, 64, 64), 30.0, dtype=torch.float16), b) == 30


@pytest.mark.parametrize(
    ("loss", "options", "match"),
    [
        (torch.tensor(1.0), {}, r'loss has the shape \(\), the batch 5 rows: .*reduction="none"'),
        (torch.ones(3), {}, r"\(3,\), the batch 5 rows"),
        (torch.ones(N), {"validity": "seen"}, r"'seen' has the shape \(5, 2, 4, 6\), which does"),
        (torch.ones(N, Y, X + 1), {"ignore": {"mask": 1}}, "does not fit a loss"),
        (torch.ones(N, 2, 2), {"validity": "steps"}, "fits in two ways"),
    ],
)
def test_what_does_not_fit(loss, options, match):
    with pytest.raises(ValueError, match=match):
        masked_mean(loss, batch(), **options)


RANK = """
import signal, sys, torch, torch.distributed as d
from chaski.torch import masked_mean

rank, path = int(sys.argv[1]), sys.argv[2]
d.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
ddp = torch.nn.parallel.DistributedDataParallel(net)
x = torch.arange(18.0).reshape(6, 3)
valid = torch.tensor([True, True, True, False, True, False])  # 3 rows on rank 0, 1 on rank 1
mine = {"valid": valid[rank::2]}
masked_mean(ddp(x[rank::2]).square(), mine, across_ranks=True).backward()
alone = torch.nn.Linear(3, 1)
alone.load_state_dict(net.state_dict())
alone(x[valid]).square().mean().backward()
for a, b in zip(net.parameters(), alone.parameters()):
    torch.testing.assert_close(a.grad, b.grad)
open(f"{path}.{rank}", "x").close()
signal.pause()  # until the test ends this process
"""


def test_across_ranks(forks, tmp_path):
    """The gradient of two ranks with unequal rows is that of one process with all rows.

    Each rank leaves a file once its gradients are right, and is killed: Gloo sometimes aborts a
    process that leaves its group while the other rank still runs.
    """
    (tmp_path / "rank.py").write_text(RANK)
    env = {"GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
    logs = [tmp_path / f"log.{r}" for r in range(2)]
    command = [tmp_path / "rank.py"]
    ranks = [
        forks("torch").run([*command, r, tmp_path / "store"], logs[r], tmp_path, **env)
        for r in range(2)
    ]
    right = [tmp_path / f"store.{r}" for r in range(2)]
    try:
        end = time.monotonic() + 300
        while not all(f.exists() for f in right) and time.monotonic() < end:
            for p, log in zip(ranks, logs, strict=True):
                with contextlib.suppress(TimeoutError):
                    assert p.wait(0.05) is None, log.read_text()
        assert [f.exists() for f in right] == [True, True]
    finally:
        for p in ranks:
            p.kill()


@pytest.mark.parametrize(
    "given,said",
    [
        ({"ignore": 255}, r'ignore is 255: .* such as ignore={"mask": 255}'),
        ({"ignore": {"masks": 255}}, "the batch has no 'masks': there are "),
        ({"validity": "sen"}, "the batch has no 'sen': there are "),
    ],
)
def test_wrong_members(given, said):
    with pytest.raises(chaski.SpecError, match=said):
        masked_mean(torch.ones(N), batch(), **given)


def test_a_mask_in_place_of_the_batch():
    with pytest.raises(chaski.SpecError, match="batch is tensor.*: it must be the dict"):
        masked_mean(torch.ones(N), torch.ones(N), ignore={"mask": 255})  # type: ignore[arg-type]
