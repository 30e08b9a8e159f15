"""The files of deploy/: servers under systemd and in Kubernetes.

Where helm is in PATH, the chart is rendered and held against the schemas of Kubernetes, if the
package kubernetes-validate is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import nonempty

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
KUBERNETES = "1.33"
SECRETS = ["--set", "tls.secret=a", "--set", "tokens.secret=b"]
ROOTS = ["--set", "roots={s3://bucket/chips}"]


@pytest.mark.parametrize("name", ["systemd/chaski.service", "chart/templates/statefulset.yaml"])
def test_flags_are_those_of_serve(binary: str, name: str) -> None:
    out = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True, check=True)
    known = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", out.stdout, re.MULTILINE))
    text = re.sub(r"^ *#.*", "", (DEPLOY / name).read_text(), flags=re.MULTILINE)
    for flag in nonempty(re.findall(r"[ \"](--[a-z][\w-]+)", text)):
        assert flag in known, f"{name} has {flag}"


def rendered(*values: str, release: str = "train") -> subprocess.CompletedProcess[str]:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not in PATH")
    line = [helm, "template", "--kube-version", f"{KUBERNETES}.0", release, str(CHART), *values]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "values",
    [
        [*ROOTS, *SECRETS],
        [*ROOTS, "--set", "insecure=true", "--set", "cache.enabled=false", "--set", "replicas=1"],
        [*ROOTS, *SECRETS, "--set", "tls.clients=true", "--set", "metrics.serviceMonitor=true"],
        [
            *ROOTS,
            *SECRETS,
            "--set",
            "cache.storageClass=fast",
            "--set",
            "data.nfs.path=/chips,data.nfs.server=a",
        ],
        [*ROOTS, *SECRETS, "--set", "flags={--log-level=debug}", "--set", "env[0].name=AWS_REGION"],
    ],
)
def test_chart_is_what_kubernetes_takes(values: list[str]) -> None:
    out = rendered(*values)
    assert out.returncode == 0, out.stderr
    objects: list[dict[str, Any]] = [o for o in yaml.safe_load_all(out.stdout) if o]
    kinds = [o["kind"] for o in objects]
    assert "StatefulSet" in kinds and "NetworkPolicy" in kinds
    servers = next(o for o in objects if o["kind"] == "StatefulSet")["spec"]
    pod = servers["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    mounted = {m["name"] for m in pod["containers"][0]["volumeMounts"]}
    claimed = {c["metadata"]["name"] for c in servers.get("volumeClaimTemplates", [])}
    assert mounted == {v["name"] for v in pod["volumes"]} | claimed
    validate = pytest.importorskip("kubernetes_validate")
    for o in nonempty(objects):
        if o["kind"] != "ServiceMonitor":
            validate.validate(o, KUBERNETES, strict=True)


def test_names_leave_room_for_the_hash_of_a_revision() -> None:
    longest = "r" * 53  # as helm has it
    out = rendered(*ROOTS, *SECRETS, release=longest)
    assert out.returncode == 0, out.stderr
    objects = [o for o in yaml.safe_load_all(out.stdout) if o]
    name = next(o for o in objects if o["kind"] == "StatefulSet")["metadata"]["name"]
    assert len(f"{name}-{'h' * 10}") <= 63  # the label controller-revision-hash


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (SECRETS, "roots"),
        (ROOTS, "values don't meet"),
        ([*ROOTS, "--set", "tls.secret=a"], "values don't meet"),
        ([*ROOTS, *SECRETS, "--set", "replicas=0"], "replicas"),
        ([*ROOTS, *SECRETS, "--set", "cache.bytes=lots"], "cache"),
        ([*ROOTS, *SECRETS, "--set", "rots={a}"], "rots"),
    ],
)
def test_wrong_values_are_refused(values: list[str], said: str) -> None:
    out = rendered(*values)
    assert out.returncode != 0
    assert said in out.stderr
