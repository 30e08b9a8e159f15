"""The files of deploy/: servers under systemd and in Kubernetes.

Where helm is in PATH, the chart is rendered and held against the schemas of Kubernetes, if the
package kubernetes-validate is there.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import nonempty

import chaski

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
CHIPS = DEPLOY.parent / "testdata" / "demo"
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
        [*ROOTS, *SECRETS, "--set", "autoscaling.enabled=true", "--set-json", "spread=[]"],
        [*ROOTS, *SECRETS, "--set", "resources.limits.cpu=8"],
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
    # An autoscaler and a number of replicas would undo each other's work.
    assert ("HorizontalPodAutoscaler" in kinds) == ("replicas" not in servers)
    spread = pod.get("topologySpreadConstraints", [])
    selected = [s["labelSelector"]["matchLabels"] for s in spread]
    assert all(labels == servers["selector"]["matchLabels"] for labels in selected)
    assert len(spread) == (0 if "spread=[]" in values else 2)
    # A limit is what Go's runtime sees by itself.
    names = [e["name"] for e in pod["containers"][0].get("env") or []]
    assert ("GOMAXPROCS" in names) == ("resources.limits.cpu=8" not in values)
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


OCI = "application/vnd.oci.image."


@contextlib.contextmanager
def serving(
    binary: str, listen: str, *flags: str
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """Runs a server, and yields it with what its log says of its addresses."""
    line = [binary, "serve", f"--listen={listen}", f"--root={CHIPS}", "--insecure", *flags]
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        assert p.stderr is not None
        said, text = {}, ""
        while "msg=listening" not in text:
            text = p.stderr.readline().decode()
            assert text, "the server ended"
            if found := re.search(r"msg=(\w+) address=(\S+)", text):
                said[found[1]] = found[2]
        threading.Thread(target=p.stderr.read, daemon=True).start()
        try:
            yield p, said
        finally:
            p.kill()


def test_a_server_drains(binary: str) -> None:
    """SIGTERM: not ready at once, batches until --drain-delay is over, then the end.

    A stream that waits for its trainer does not hold it up until --grace is over.
    """
    flags = "--drain-delay=2s", "--grace=60s", "--health=127.0.0.1:0"
    with serving(binary, "127.0.0.1:0", *flags) as (p, said):
        ready = f"http://{said['health']}/readyz"
        assert urllib.request.urlopen(ready).status == 200
        engine = chaski.Engine(transport="grpc", patience=0)
        window = chaski.RandomWindow(16, per_asset=100_000)
        target = said["listening"]
        with chaski.connect(target, CHIPS, batch_size=2, window=window, engine=engine) as loader:
            batches = iter(loader)
            next(batches)
            p.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            while time.monotonic() < begun + 1:
                next(batches)
            with pytest.raises(urllib.error.HTTPError, match="503"):
                urllib.request.urlopen(ready)
            p.wait(30)
            assert time.monotonic() - begun >= 2
            with pytest.raises(chaski.UnavailableError):
                for _ in batches:
                    pass
        with pytest.raises(chaski.UnavailableError):
            chaski.connect(target, CHIPS, batch_size=2, engine=engine)


def test_servers_are_updated_one_by_one(binary: str, tmp_path: Path) -> None:
    """A trainer sees nothing of it, and its ledger says that every sample came once."""
    targets = [f"unix:{tmp_path}/{name}" for name in "ab"]
    window = chaski.RandomWindow(16, per_asset=100)
    engine = chaski.Engine(ledger=tmp_path / "ledger")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(binary, t))[0] for t in targets]
        options: dict[str, Any] = {"batch_size": 2, "window": window, "engine": engine}
        with chaski.connect(targets, CHIPS, **options) as loader:
            seen = []
            for batch in loader:
                seen.append(batch.step)
                if batch.step in (len(loader) // 4, len(loader) // 2):
                    k = 2 * batch.step // len(loader)
                    servers[k].send_signal(signal.SIGTERM)
                    servers[k].wait(30)
                    servers[k] = stack.enter_context(serving(binary, targets[k]))[0]
            assert seen == list(range(len(loader)))
    check = [binary, "ledger", "check", "--epochs=1", str(tmp_path / "ledger")]
    subprocess.run(check, check=True, capture_output=True)


@pytest.fixture
def base() -> Iterator[str]:
    """Serves an image without files for two platforms, in place of the base of .ko.yaml."""
    blobs: dict[str, tuple[bytes, str]] = {}

    def put(content: bytes | dict[str, Any], kind: str) -> dict[str, Any]:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        blobs[digest] = data, OCI + kind
        return {"mediaType": OCI + kind, "size": len(data), "digest": digest}

    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    layer = put(gzip.compress(empty.getvalue()), "layer.v1.tar+gzip")
    files = {
        "type": "layers",
        "diff_ids": [f"sha256:{hashlib.sha256(empty.getvalue()).hexdigest()}"],
    }
    index: dict[str, Any] = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json"}
    index["manifests"] = []
    for name in ("amd64", "arm64"):
        platform = {"os": "linux", "architecture": name}
        manifest: dict[str, Any] = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json"}
        manifest["config"] = put({**platform, "config": {}, "rootfs": files}, "config.v1+json")
        manifest["layers"] = [layer]
        index["manifests"].append({**put(manifest, "manifest.v1+json"), "platform": platform})
    latest = put(index, "index.v1+json")["digest"]

    class Registry(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2] or latest
            data, kind = blobs[latest if name == "latest" else name]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"localhost:{server.server_address[1]}/base:latest"
        server.shutdown()


@pytest.mark.timeout(1800)
def test_image(base: str, tmp_path: Path) -> None:
    """The image has one file, for two platforms, and runs as the chart says."""
    ko = os.environ.get("CHASKI_KO") or shutil.which("ko")
    if ko is None:
        pytest.skip("ko is not in PATH")
    line = [ko, "build", "./cmd/chaski", "--bare", "--push=false", f"--oci-layout-path={tmp_path}"]
    makefile = (DEPLOY.parent / "Makefile").read_text()
    assert (user := re.search(r"--image-user=\d+", makefile)) is not None
    named = {"KO_DEFAULTBASEIMAGE": base, "KO_DOCKER_REPO": "chaski", "VERSION": "v1.2.3"}
    subprocess.run([*line, user[0]], cwd=DEPLOY.parent, env={**os.environ, **named}, check=True)

    def blob(digest: str) -> bytes:
        return (tmp_path / "blobs" / digest.replace(":", "/")).read_bytes()

    (index,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    images = json.loads(blob(index["digest"]))["manifests"]
    assert [i["platform"]["architecture"] for i in images] == ["amd64", "arm64"]
    for image in nonempty(images):
        manifest = json.loads(blob(image["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))["config"]
        assert config["User"] == "65532" and config["Entrypoint"] == ["/ko-app/chaski"]
        files = [
            (member.name, tar.extractfile(member))
            for layer in manifest["layers"]
            for tar in [tarfile.open(fileobj=io.BytesIO(blob(layer["digest"])))]  # noqa: SIM115
            for member in tar
            if member.isfile()
        ]
        ((name, file),) = files
        assert name == "/ko-app/chaski" and file is not None
        head = file.read(20)
        assert head[:4] == b"\x7fELF"
        assert head[18] == {"amd64": 62, "arm64": 183}[image["platform"]["architecture"]]
    pod = (CHART / "templates" / "statefulset.yaml").read_text()
    assert "runAsUser: 65532" in pod and "command:" not in pod
