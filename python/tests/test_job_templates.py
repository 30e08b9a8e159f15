"""The templates of deploy/jobs: what each runs, for each index, does a shard.

The schemas of Kubernetes, Argo and AWS are in packages of 160 MB: kubernetes-validate, hera and
botocore. Without one, its test is skipped. What passed there is noted in CHECKED by its hash, so
that a template that was changed since fails here without them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import nonempty

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "deploy" / "jobs"
CHECKED = Path(__file__).parent / "job_templates.json"
CHIPS = ROOT / "testdata" / "coast" / "coast_dir" / "DATA" / "*" / "s2" / "img.tif"
SHARDS = 3


def load(name: str) -> Any:
    text = (JOBS / name).read_text()
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def kubernetes(index: int) -> tuple[list[str], dict[str, str]]:
    """The command of a pod: Kubernetes replaces $(NAME) by a variable of it."""
    spec = load("kubernetes.yaml")["spec"]
    command = spec["template"]["spec"]["containers"][0]["command"]
    return [a.replace("$(JOB_COMPLETION_INDEX)", str(index)) for a in command], {}


def slurm(index: int) -> tuple[list[str], dict[str, str]]:
    return ["sh", "slurm.sh"], {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_CPUS_PER_TASK": "1"}


def aws(index: int) -> tuple[list[str], dict[str, str]]:
    command = load("aws-batch.json")["containerOverrides"]["command"]
    return command, {"AWS_BATCH_JOB_ARRAY_INDEX": str(index)}


def argo(step: str, values: dict[str, str]) -> list[str]:
    """The command of a step, with the values of its parameters."""
    templates = {t["name"]: t for t in load("argo.yaml")["spec"]["templates"]}
    (found,) = (s for group in templates["job"]["steps"] for s in group if s["name"] == step)
    values = values | {
        "inputs.parameters." + p["name"]: fill(p["value"], values)
        for p in found["arguments"]["parameters"]
    }
    container = templates[found["template"]]["container"]
    return [fill(a, values) for a in container["command"] + container["args"]]


def fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"{{(.*?)}}", lambda m: values[m[1]], text)


def mine(text: str, shared: Path) -> str:
    """What a template says, with the folder, the dataset and the number of shards of a test."""
    text = text.replace("/shared/", f"{shared}/").replace("s3://bucket/train.parquet", str(CHIPS))
    return re.sub(r"/200\b", f"/{SHARDS}", text)


def run(binary: str, shared: Path, command: list[str], env: dict[str, str]) -> bytes:
    """Runs a command as a worker does that has the folder at /shared and chaski on its PATH."""
    folder = shared / "bin"
    if not folder.is_dir():
        folder.mkdir()
        (folder / "chaski").symlink_to(os.path.abspath(binary))
        (shared / "slurm.sh").write_text(mine((JOBS / "slurm.sh").read_text(), shared))
    command = [mine(a, shared) for a in command]
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, env=os.environ | env | {"PATH": path}, cwd=shared, check=True, capture_output=True
    ).stdout


def merged(binary: str, shared: Path, merge: list[str]) -> None:
    """Merges the parts: the output is that of one process."""
    assert len(list(shared.glob("stats.json.part-*"))) == SHARDS
    run(binary, shared, merge, {})
    assert not list(shared.glob("stats.json.part-*"))
    want = run(binary, shared, ["chaski", "stats", str(CHIPS)], {})
    assert (shared / "stats.json").read_bytes() == want


@pytest.mark.parametrize("of", [kubernetes, slurm, aws])
def test_each_index_is_a_shard(binary: str, tmp_path: Path, of: Any) -> None:
    for index in reversed(range(SHARDS)):
        run(binary, tmp_path, *of(index))
    merge = ["chaski", "stats", "--merge", str(SHARDS), "-o", "/shared/stats.json", str(CHIPS)]
    merged(binary, tmp_path, merge)


def test_workflow(binary: str, tmp_path: Path) -> None:
    values = {
        "workflow.parameters.shards": str(SHARDS),
        "workflow.parameters.dataset": shlex.quote(str(CHIPS)),
    }
    for index in range(SHARDS):
        run(binary, tmp_path, argo("shard", values | {"item": str(index)}), {})
    merged(binary, tmp_path, argo("merge", values))


def test_numbers_of_shards() -> None:
    """Each template says 200 where it says how many shards there are."""
    for name in nonempty(["aws-batch.json", "kubernetes.yaml", "slurm.sh"]):
        assert re.search(r"--shard\W+\S+?/200\b", (JOBS / name).read_text())
    assert load("kubernetes.yaml")["spec"]["completions"] == 200
    assert load("kubernetes.yaml")["spec"]["completionMode"] == "Indexed"
    assert load("aws-batch.json")["arrayProperties"]["size"] == 200
    assert re.search(r"^#SBATCH --array=0-199\b", (JOBS / "slurm.sh").read_text(), re.M)
    (shards,) = (
        p["value"]
        for p in load("argo.yaml")["spec"]["arguments"]["parameters"]
        if p["name"] == "shards"
    )
    assert shards == "200"


def passed(name: str, schema: str) -> None:
    """Notes that a template fits its schema, if CHASKI_CHECKED=write."""
    now = {"schema": schema, "sha256": hashlib.sha256((JOBS / name).read_bytes()).hexdigest()}
    all = json.loads(CHECKED.read_text()) if CHECKED.exists() else {}
    if os.environ.get("CHASKI_CHECKED") == "write":
        CHECKED.write_text(json.dumps(all | {name: now}, indent=2, sort_keys=True) + "\n")
    else:
        assert all[name]["sha256"] == now["sha256"], f"CHASKI_CHECKED=write notes {name}"


def test_kubernetes_schema() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    job = load("kubernetes.yaml")
    validate.validate(job, "1.33", strict=True)
    with pytest.raises(validate.ValidationError):
        validate.validate(job | {"spec": job["spec"] | {"paralelism": 50}}, "1.33", strict=True)
    passed("kubernetes.yaml", "Kubernetes 1.33")


def test_aws_schema() -> None:
    """The shape of the request of AWS Batch, from AWS's own client."""
    session = pytest.importorskip("botocore.session")
    validate = pytest.importorskip("botocore.validate")
    batch = session.get_session().get_service_model("batch")
    job = load("aws-batch.json")
    shape = batch.operation_model("SubmitJob").input_shape
    report = validate.ParamValidator().validate(job, shape)
    assert not report.has_errors(), report.generate_report()
    assert validate.ParamValidator().validate(job | {"size": 200}, shape).has_errors()
    passed("aws-batch.json", f"botocore {version('botocore')}")


def test_argo_schema() -> None:
    """The types of Argo's API, which Hera makes from its specification.

    They leave out what they do not know, so that a wrong name is missing in what they write.
    """
    models = pytest.importorskip("hera.workflows.models")
    workflow = load("argo.yaml")

    def written(value: Any) -> Any:
        model = models.Workflow.model_validate(value)
        return json.loads(model.model_dump_json(by_alias=True, exclude_unset=True))

    assert written(workflow) == workflow
    wrong = workflow | {"spec": workflow["spec"] | {"parallel": 50}}
    assert written(wrong) != wrong
    with pytest.raises(ValueError, match="parallelism"):
        written(workflow | {"spec": workflow["spec"] | {"parallelism": "many"}})
    passed("argo.yaml", f"hera {version('hera')}")


def test_schemas_were_checked() -> None:
    """Each template but Slurm's, which has no schema, is as it was when it was checked."""
    all = json.loads(CHECKED.read_text())
    assert sorted([*all, "slurm.sh"]) == sorted(p.name for p in JOBS.iterdir())
    for name, noted in nonempty(all.items()):
        now = hashlib.sha256((JOBS / name).read_bytes()).hexdigest()
        how = "install its package, set CHASKI_CHECKED=write, run this file"
        assert now == noted["sha256"], f"{name} changed since {noted['schema']} checked it: {how}"
