"""The server: every response answers, batches change nothing, models are replaced under load, and nothing breaks it."""

import asyncio
import base64
import csv
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the server needs pip install 'supertopic[serve]'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from fitted import BESIDE, FITS, NAMES, TEXTS, N

from supertopic import load
from supertopic.command.cli import main
from supertopic.report.colours import colour_text
from supertopic.serve import examples
from supertopic.serve.asked import Asked, Document, Options, read_asked
from supertopic.serve.batches import Batches, Job, predict_batch
from supertopic.serve.examples import Example, Examples
from supertopic.serve.http import Service, make_app
from supertopic.serve.limits import Limits
from supertopic.serve.metrics import Histogram, Metrics
from supertopic.serve.model import ServedModel
from supertopic.serve.reload import ModelFile
from supertopic.serve.server import LOOPBACK_NAMES, Settings, host_names, is_loopback, read_token

pytestmark = [
    pytest.mark.usefixtures("short_fits"),
    pytest.mark.filterwarnings("ignore:Found no relation"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


USUAL = Limits()


@contextmanager
def client_of(path, token=None, limits=USUAL, hosts=None):
    metrics = Metrics()
    service = Service(ModelFile(path, told=metrics.loaded), limits, metrics, token, 1)
    with TestClient(make_app(service, hosts), base_url="http://localhost") as client:
        yield client
    service.close()


@pytest.fixture(scope="module")
def client(models):
    with client_of(models("class")) as found:
        yield found


def schema_check(client, name, value):
    jsonschema = pytest.importorskip("jsonschema")
    described = client.get("/openapi.json").json()
    schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)


@pytest.mark.parametrize("name", FITS)
def test_every_response_answers(models, name):
    """Predictions are those of `predict_table`, alone and beside others, with intervals where there are any."""
    beside, level = BESIDE.get(name, {}), {"interval": 0.8} if name != "lda" else {}
    with client_of(models(name)) as client:
        model, asked = load(models(name)), [{"text": text, **beside} for text in [*TEXTS[:3], "", "unknown words"]]
        rows = client.post("/predict", json={"documents": asked, **level}).json()["predictions"]
        assert len(rows) == 5
        for document, row in zip(asked, rows, strict=True):
            assert client.post("/predict", json={**document, **level}).json() == row
            schema_check(client, "Single", {**document, **level})
        schema_check(client, "Many", {"documents": asked, **level})
        schema_check(client, "Predictions", {"predictions": rows})
        assert client.get("/topics").json()["topics"][0]["words"]
        info = client.get("/model").json()
        assert info["response"] == (model.posterior_.response.kind or "none")
        if name == "lda":
            np.testing.assert_allclose([sorted(t["share"] for t in row["topics"]) for row in rows[:1]],
                                       [sorted(s for s in model.transform(TEXTS[:1])[0] if s > 0)])  # fmt: skip
            assert client.post("/explain", json={"text": "goal"}).status_code == 422
            return
        known = {"groups": ["1"] * 5, "exposure": [2.0] * 5, "features": [[0.1, -1.0, 2.0]] * 5,
                 "covariates": [[1.0, 2.0]] * 5}  # fmt: skip
        if name == "covariates":
            known["covariates"] = pd.DataFrame({"year": [2001] * 5, "who": ["x"] * 5})
        given = {key if key != "group" else "groups" for key in beside}
        table = model.predict_table([row["text"] for row in asked], **{key: known[key] for key in given})
        for column, values in table.items():
            for row, value in zip(rows, values.tolist(), strict=True):
                assert row[column] == (value if not isinstance(value, float) or np.isfinite(value) else None)
        assert all("interval" in row for row in rows)
        why = client.post("/explain", json=asked[0]).json()
        assert "".join(piece["text"] for piece in why["pieces"]) == TEXTS[0]
        total = np.sum([word["adds"] for word in why["words"]], axis=0)
        np.testing.assert_allclose(np.sum([piece["adds"] for piece in why["pieces"] if "adds" in piece], axis=0), total)
        np.testing.assert_allclose(total + np.sum(list(why["others"].values()), axis=0), why["omega"], atol=1e-9)


def test_sets_and_intervals_are_those_of_the_estimator(models, client):
    model = load(models("class"))
    rows = client.post("/predict", json={"texts": TEXTS[:8], "set": 0.9, "interval": 0.5, "topics": True}).json()
    inside, (lower, upper) = model.predict_set(TEXTS[:8], 0.9), model.predict_interval(TEXTS[:8], 0.5)
    for i, row in enumerate(rows["predictions"]):
        assert row["set"] == model.classes_[inside[i]].tolist()
        for j, name in enumerate(model.classes_):
            assert row["interval"][name] == [lower[i, j], upper[i, j]]
        assert sum(topic["share"] for topic in row["topics"]) == pytest.approx(1.0)


def test_words_are_coloured_in_their_places(models):
    model = load(models("class"))
    text = "The GOAL, not the team: goal! zzz"
    found = colour_text(text, model, model.explain(text))
    assert "".join(piece.text for piece in found) == text
    known = [piece for piece in found if piece.adds is not None]
    assert {piece.text.lower() for piece in known} <= {"the", "goal", "not", "team", "!"}
    assert {"GOAL", "goal", "team"} <= {piece.text for piece in known} and not any("zzz" in p.text for p in known)
    assert [piece.text for piece in colour_text("", model, model.explain(""))] == []
    wide = "İ goal"  # its lower case is longer: places would not be right
    assert "".join(piece.text for piece in colour_text(wide, model, model.explain(wide))) == wide


def test_batches_change_nothing(models):
    """Requests that come at once are predicted together, with the rows that each gets alone."""
    served, sizes = ServedModel.load(models("covariates")), []
    batches = Batches(Limits(), 1, lambda n, seconds: sizes.append(n))
    good = [Document(text, (2001, "x")) for text in TEXTS[:40]]
    wrong = Document("goal", (2001, "nobody"))

    async def all_at_once(asked):
        return await asyncio.gather(*(batches.predict(served, one) for one in asked), return_exceptions=True)

    asked = [Asked([document]) for document in good]
    alone = [served.predict([document], Options()) for document in good]
    assert asyncio.run(all_at_once(asked)) == alone and max(sizes) > 8
    asked += [Asked([wrong]), Asked(good * 5), Asked([good[0]], Options(interval=0.9))]
    *rows, error, large, other = asyncio.run(all_at_once(asked))
    batches.close()
    assert rows == alone and large == [row for own in alone for row in own] * 5
    assert isinstance(error, ValueError) and "nobody" in str(error)
    assert "interval" in other[0]


def test_a_large_request_is_cut_and_one_that_nobody_waits_for_is_dropped(models):
    served = ServedModel.load(models("class"))
    loop = asyncio.new_event_loop()
    job = Job(served, Asked([Document("x" * 150_000)] * 3), loop, time.monotonic() + 9)
    assert len(job.next_part(64)) == 1 and len(job.next_part(1)) == 1
    late = Job(served, Asked([Document("a")]), loop, time.monotonic() - 1)
    batches = Batches(Limits(), 1)
    batches.close()
    batches.waiting.extend([late, job])
    assert [own for own, _ in batches.gather()] == [job] and not batches.waiting
    loop.close()


def test_too_many_requests_and_too_much_time(models):
    class Slow(ServedModel):
        def predict(self, documents, options):
            time.sleep(0.3)
            return super().predict(documents, options)

    slow = Slow(load(models("class")))
    batches = Batches(Limits(waiting=2, seconds=0.15), 1)

    async def three():
        return await asyncio.gather(*(batches.predict(slow, Asked([Document("goal")])) for _ in range(3)),
                                    return_exceptions=True)  # fmt: skip

    *late, full = asyncio.run(three())
    assert full.status == 503 and full.retry == 1 and "waiting" in full.message
    assert all(error.status == 503 and "0.15 seconds" in error.message for error in late)
    batches.close()


WRONG = [
    (b"", 400, "not JSON"), (b"[", 400, "not JSON"), (b"[1]", 422, "an object such as"), (b'"text"', 422, "object"),
    (b'{"text": 3}', 422, "a text was expected"), (b"{}", 422, "exactly one of text, texts and documents"),
    (b'{"text": "a", "texts": []}', 422, "exactly one of"), (b'{"texts": ["a", null]}', 422, r"texts\[1\] is null"),
    (b'{"text": "a", "sett": 0.9}', 422, "sett"), (b'{"text": "a", "set": 1}', 422, "between 0 and 1"),
    (b'{"text": "a", "set": NaN}', 400, "no number of JSON"), (b'{"text": "a", "interval": true}', 422, "probability"),
    (b'{"text": "a", "set": 1e999}', 422, "between 0 and 1"), (b'{"text": "a", "topics": 1}', 422, "true or false"),
    (b'{"documents": {}}', 422, "a list was expected"), (b'{"documents": ["a"]}', 422, r"documents\[0\]"),
    (b'{"text": "a", "exposure": 2}', 422, "fitted without"), (b'{"text": "a", "group": "g"}', 422, "fitted without"),
    (b'{"text": ' + b"[" * 50_000 + b"}", 400, "nested 50,001 deep"), (b"\xff\xfe", 400, "not JSON"),
    (b'{"text": "a", "set": ' + b"9" * 5000 + b"}", 400, "not JSON"),
    (b'{"text": "a", "set": 0.999999}', 422, "held-out"),
    (b'{"text": "a", "interval": 0.9, "conformal": true}', 422, "ratings and counts"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "message"), WRONG)
def test_what_is_wrong_is_said(client, body, status, message):
    answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert answer.status_code == error["status"] == status and re.search(message, error["message"]), error
    schema_check(client, "Error", answer.json())


def test_what_documents_lack_is_said(models):
    for name, message in [
        ("covariates", "year"),
        ("exposed", "exposure"),
        ("features", "3 features"),
        ("groups", "group"),
    ]:
        with client_of(models(name)) as client:
            answer = client.post("/predict", json={"text": "goal"})
            assert answer.status_code == 422 and message in answer.json()["error"]["message"]
            for wrong in (
                {},
                [],
                [1],
                "x",
                {"year": []},
                {"year": 1, "who": "x", "more": 2},
                {"year": 10**400, "who": "x"},
            ):
                key = next(iter(BESIDE[name]))
                answer = client.post("/predict", content=json.dumps({"text": "goal", key: wrong}),
                                     headers={"content-type": "application/json"})  # fmt: skip
                assert answer.status_code == 422 or (key == "group" and answer.status_code == 200), (name, wrong)
    with client_of(models("rating")) as client:
        assert (
            "sets are of classes" in client.post("/predict", json={"text": "a", "set": 0.9}).json()["error"]["message"]
        )
        assert isinstance(client.post("/predict", json={"text": "a", "interval": 0.9}).json()["interval"][0], float)
        asked = {"text": TEXTS[0], "interval": 0.7, "conformal": True}
        ends = load(models("rating")).predict_interval(TEXTS[:1], 0.7, conformal=True)
        assert client.post("/predict", json=asked).json()["interval"] == [float(end[0]) for end in ends]
        answer = client.post("/predict", json={"text": "a", "conformal": True})
        assert answer.status_code == 422 and "conformal needs interval" in answer.json()["error"]["message"]


def test_limits(models):
    with client_of(models("class"), limits=Limits(body=2000, texts=3, letters=100)) as client:
        for body in ({"text": "a" * 3000}, {"text": "a" * 101}, {"texts": ["a"] * 4}):
            assert client.post("/predict", json=body).status_code == 413
        pieces = iter([b'{"text": "'] + [b"a" * 500] * 10)  # without a Content-Length
        answer = client.post("/predict", content=pieces, headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert client.post("/predict", json={"texts": ["a"] * 3}).status_code == 200
        assert client.post("/predict", json={"texts": []}).json() == {"predictions": []}


def test_who_may_ask(models):
    token = "a-token-of-some-length"
    with client_of(models("class"), token=token, hosts=LOOPBACK_NAMES) as client:
        for path in ("/topics", "/metrics", "/model", "/openapi.json"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"authorization": f"Bearer {token}x"}).status_code == 401
            assert client.get(path, headers={"authorization": f"Basic {token}"}).status_code == 401
            assert client.get(path, headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert client.post("/predict", json={"text": "a"}).status_code == 401
        assert client.get("/health").json() == {"status": "ok"} and client.get("/").status_code == 200
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/health", headers={"host": "localhost:8000"}).status_code == 200
        assert client.get("/health", headers={"host": "[::1]:8000"}).status_code == 200
        assert client.get("/openapi.json", headers={"authorization": f"Bearer {token}"}).json()["security"]


def test_other_pages_and_other_machines(monkeypatch, client):
    """A page elsewhere can neither read answers nor send JSON; an address that others reach needs a token."""
    answer = client.post("/predict", content=b'{"text": "a"}', headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    preflight = client.options(
        "/predict", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 405 and "access-control-allow-origin" not in preflight.headers
    monkeypatch.delenv("SUPERTOPIC_TOKEN", raising=False)
    assert read_token("127.0.0.1", False) is read_token("localhost", False) is read_token("0.0.0.0", True) is None
    for host in ("0.0.0.0", "192.168.1.2", "::", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(ValueError, match="set the environment variable SUPERTOPIC_TOKEN"):
            read_token(host, False)
    monkeypatch.setenv("SUPERTOPIC_TOKEN", "short")
    with pytest.raises(ValueError, match="16 ASCII letters"):
        read_token("0.0.0.0", False)
    monkeypatch.setenv("SUPERTOPIC_TOKEN", "long enough for a token")
    assert read_token("0.0.0.0", False) == "long enough for a token"
    with pytest.raises(ValueError, match="leave one of them out"):
        read_token("0.0.0.0", True)
    assert host_names(Settings("m")) == LOOPBACK_NAMES and host_names(Settings("m", host="0.0.0.0")) is None
    assert "name.example" in host_names(Settings("m", host="0.0.0.0", names=("name.example",)))


def test_the_page_runs_its_own_script_only(client):
    answer = client.get("/")
    policy, script = (
        answer.headers["content-security-policy"],
        re.search(r"<script>(.*?)</script>", answer.text, re.S)[1],
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and "unsafe" not in policy and "default-src 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and "frame-ancestors 'none'" in policy
    assert not re.search(r"(?:src|href)=.(?:https?:)?//", answer.text) and "innerHTML" not in answer.text
    assert " style=" not in answer.text  # the policy would drop it


def test_openapi_and_metrics(client):
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0" and set(described["paths"]) >= {"/predict", "/explain", "/topics", "/health"}
    for ref in re.findall(r'"\$ref": ?"#/components/schemas/(\w+)"', json.dumps(described)):
        assert ref in described["components"]["schemas"]
    ids = [op["operationId"] for path in described["paths"].values() for op in path.values()]
    assert len(set(ids)) == len(ids)
    for path, operations in described["paths"].items():
        for method, own in operations.items():
            answer = client.request(method, path, json={"text": "goal"} if method == "post" else None)
            assert (
                answer.status_code == 200
                and answer.headers["content-type"].split(";")[0] in own["responses"]["200"]["content"]
            )
    text = client.get("/metrics").text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? [-+.e\d]+", line), line
    assert 'supertopic_requests_total{path="/predict",status="200"}' in text
    client.get("/anything/<b>")
    assert 'path="other",status="404"' in client.get("/metrics").text and "<b>" not in client.get("/metrics").text


def test_numbers_of_a_table_may_be_texts(models):
    """The page sends cells as they are in a CSV file, other programs numbers; one request may have both."""
    with client_of(models("covariates")) as client:
        asked = [{"text": "goal", "covariates": {"year": year, "who": "x"}} for year in (2001, "2001", " 2001.0 ")]
        rows = client.post("/predict", json={"documents": asked}).json()["predictions"]
        assert rows[0] == rows[1] == rows[2]
        asked[1]["covariates"]["year"] = "soon"
        assert client.post("/predict", json={"documents": asked}).status_code == 422


@pytest.mark.parametrize("name", ["class", "separate", "labels", "rating"])
def test_documents_like_a_text(models, name):
    """The nearest ones have the same topics; texts without known words are never shown."""
    documents = [Example(f"n{i}", text) for i, text in enumerate([*TEXTS[:30], "", "qqq"])]
    served = ServedModel.load(models(name), documents=documents)
    for i in range(5):
        found = served.explain(Document(TEXTS[i]), 0.9)["documents"]
        assert len(found) == 3 and found[0]["similarity"] >= found[1]["similarity"] >= found[2]["similarity"] > 0
        shares = load(models(name)).transform([TEXTS[i], *(each.text for each in documents[:30])])
        alike = np.sqrt(shares[1:]) @ np.sqrt(shares[0])
        assert found[0]["similarity"] == pytest.approx(alike.max(), abs=1e-5) and alike.max() == pytest.approx(1)
        row = int(found[1]["row"][1:])
        assert found[1]["text"] == TEXTS[row] and alike[row] == pytest.approx(found[1]["similarity"], abs=1e-5)
    assert ServedModel.load(models(name)).explain(Document(TEXTS[0]), 0.9)["documents"] == []


def test_documents_are_spread_evenly_and_cut(models, monkeypatch):
    monkeypatch.setattr(examples, "MOST", 4)
    found = Examples(load(models("class")), [Example(str(i), "goal " * 1000) for i in range(10)])
    assert [each.name for each in found.documents] == ["0", "3", "6", "9"]
    assert len(found.nearest(np.ones(4) / 4, 1)[0]["text"]) == 500


def test_a_new_file_takes_over(models, tmp_path):
    path = tmp_path / "served.model"
    shutil.copy(models("class"), path)
    file = ModelFile(path, documents=[Example("first", TEXTS[0])])
    old = file.current
    assert not file.look()
    path.write_bytes(path.read_bytes()[:-100])  # damaged
    assert (
        not file.look() and file.current is old and "cut off" in file.failed["message"]
    ) or "damaged" in file.failed["message"]
    assert not file.look()  # it is not tried again and again
    path.unlink()
    assert not file.look() and file.current is old
    shutil.copy(models("rating"), tmp_path / "other")
    os.replace(tmp_path / "other", path)
    assert file.look() and file.failed is None and file.current.needs.response == "rating" and file.n_loaded == 2
    assert [each.name for each in file.current.examples.documents] == ["first"]
    assert old.predict([Document("goal")], Options())[0]["prediction"] in set(NAMES)  # whoever has it keeps it


def free_text(rng):
    return "".join(
        rng.choice(["goal ", "vote", "\0", "é", "\ud800", "\U0001d518", "!", "=1+1", " " * 9, "\n"])
        for _ in range(rng.randrange(30))
    )


def any_value(rng, depth=0):
    """JSON of any kind."""
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind > 5:
        return {
            rng.choice(["text", "set", "x", "covariates"]): any_value(rng, depth + 1) for _ in range(rng.randrange(3))
        }
    if kind == 5:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return rng.choice([None, True, 0, -1, 0.5, 1e308, 10**30, "", free_text(rng)])


@pytest.mark.parametrize("name", ["class", "covariates", "features", "groups", "exposed"])
def test_malformed_requests_are_refused(models, name):
    """Whatever comes, the answer is JSON, and no fault of the server's."""
    rng, counts = random.Random(name), {}
    with client_of(models(name)) as client:
        for _ in range(120):
            body = {"text": free_text(rng), **BESIDE.get(name, {})}
            for _ in range(rng.randrange(3)):
                body[rng.choice([*body, "set", "interval", "topics", "texts", "documents", "x"])] = any_value(rng)
            if rng.random() < 0.5:
                body.pop(rng.choice(list(body)))
            data = json.dumps(body).encode()
            if rng.random() < 0.3:
                place = rng.randrange(len(data))
                data = data[:place] + bytes([rng.randrange(256)]) + data[place + rng.randrange(3) :]
            path = rng.choice(["/predict", "/explain"])
            answer = client.post(path, content=data, headers={"content-type": "application/json"})
            counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
            assert answer.status_code in (200, 400, 413, 422), (data, answer.text)
            answer.json()
    assert counts[422] > 10 and counts.get(200)


@contextmanager
def running(path, *options, environment=None):
    """`supertopic serve` in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "supertopic", "serve", str(path), "--port", "0", *options]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "500"} | (environment or {})
    )
    try:
        line = process.stderr.readline()
        yield process, int(re.search(r"127\.0\.0\.1:(\d+)", line)[1])
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(port, body, path="/predict"):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_raw_bytes_and_a_graceful_end(models):
    """Bytes that are no HTTP break nothing; what has been asked before SIGTERM is answered."""
    rng = random.Random(0)
    with running(models("class")) as (process, port):
        assert ask(port, {"text": "goal"})[0] == 200
        for _ in range(150):
            data = rng.choice([
                bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))),
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n{}",
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
                b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 90_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            ])  # fmt: skip
            with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
                try:
                    answer = raw.recv(1000)
                except ConnectionError:
                    continue
            assert not answer or answer.split()[1] < b"500", answer
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw, suppress(ConnectionError):
            raw.sendall(b"GET /health HTTP/1.1\r\n")
            for i in range(1000):
                raw.sendall(f"X-{i}: {'a' * 1000}\r\n".encode())
            assert not raw.recv(1000)  # closed, long before the end
            raise AssertionError("a head of a megabyte was read")
        found = []
        asking = threading.Thread(target=lambda: found.append(ask(port, {"texts": TEXTS * 8})))
        asking.start()
        time.sleep(0.15)
        process.send_signal(signal.SIGTERM)
        asking.join(30)
        assert process.wait(30) == 0 and found[0][0] == 200 and len(found[0][1]["predictions"]) == 8 * N


def children(pid):
    """The processes that answer."""
    found = []
    for task in (f"/proc/{pid}/task/{pid}/children",):
        for child in open(task).read().split():  # noqa: SIM115
            if b"spawn_main" in open(f"/proc/{child}/cmdline", "rb").read():  # noqa: SIM115
                found.append(int(child))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_reload_and_workers_under_load(models, tmp_path):
    """Nothing that was asked is lost while the file is replaced and damaged; a process that is killed comes back."""
    path = tmp_path / "served.model"
    shutil.copy(models("class"), path)
    with running(path, "--workers", "2") as (process, port):
        counts, stop = {}, threading.Event()

        def keep_asking():
            while not stop.is_set():
                status, body = ask(port, {"text": "goal team"})
                counts[status] = counts.get(status, 0) + 1
                assert status != 200 or body["prediction"] in {"sport", True, False}

        threads = [threading.Thread(target=keep_asking) for _ in range(2)]
        for thread in threads:
            thread.start()
        while sum(counts.values()) < 20:
            time.sleep(0.05)
        path.write_bytes(path.read_bytes()[:5000])
        time.sleep(1.2)
        shutil.copy(models("two"), tmp_path / "new")
        os.replace(tmp_path / "new", path)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not all(
            isinstance(ask(port, {"text": "goal"})[1]["prediction"], bool) for _ in range(8)
        ):
            time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join()
        assert set(counts) == {200} and counts[200] >= 20
        for one in children(process.pid):
            os.kill(one, signal.SIGKILL)
            break
        time.sleep(0.3)
        assert isinstance(ask(port, {"text": "goal"})[1]["prediction"], bool)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_command_refuses(models, tmp_path, monkeypatch, capsys):
    (tmp_path / "damaged").write_bytes(models("class").read_bytes()[:3000])
    busy = socket.socket()
    busy.bind(("127.0.0.1", 0))
    wrong = [
        ([models("class"), "--host", "0.0.0.0"], "SUPERTOPIC_TOKEN"), ([tmp_path / "none"], "There is no model"),
        ([models("class"), "--port", str(busy.getsockname()[1])], "Cannot listen on"),
        ([tmp_path / "damaged"], "cut off"), ([models("class"), "--documents", "d.csv"], "--documents needs --text"),
        ([models("class"), "--text", "body"], "which is not given"),
    ]  # fmt: skip
    for options, message in wrong:
        monkeypatch.setattr(sys, "argv", ["supertopic", "serve", *map(str, options)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 1 and message in capsys.readouterr().err
    busy.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("there is no chromium with its driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1400"):
        options.add_argument(argument)
    downloads = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.downloads = downloads
    yield driver
    driver.quit()


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("what was waited for did not come")


def test_the_page_in_a_browser(models, browser, tmp_path):
    """A text is predicted and coloured, a token is asked for, and a table comes back without formulas that run."""
    token = "a-token-of-some-length"
    table = tmp_path / "like.csv"
    table.write_text("id,body\nfirst,goal team match\nsecond,vote law\nthird,<i>goal</i> vote\n", encoding="utf-8")
    like = "--documents", str(table), "--text", "body", "--id", "id"
    with running(models("class"), *like, environment={"SUPERTOPIC_TOKEN": token}) as (_, port):

        def find(selector):
            return browser.find_element("css selector", selector)

        browser.get(f"http://127.0.0.1:{port}/")
        wait_for(lambda: find("#token-form").is_displayed())
        find("#token").send_keys(token)
        find("#token-form button").click()
        wait_for(lambda: "one of 3 classes" in find("#about").text)
        find("#given").send_keys("goal team <b>bold</b> match vote zzz")
        find("#form .main").click()
        wait_for(lambda: find("#result").is_displayed())
        assert "sport" in find("#finding").text and len(browser.find_elements("css selector", "#answers tr")) == 3
        marks = browser.find_elements("css selector", "#text mark")
        assert {mark.get_attribute("class") for mark in marks} == {"towards", "away"}
        assert "<b>bold</b>" in find("#text").text and not browser.find_elements("css selector", "#text b")
        styles = {mark.get_attribute("class"): mark.value_of_css_property("text-decoration-style") for mark in marks}
        assert styles == {"towards": "solid", "away": "wavy"}  # a sign beside the colour
        assert len(browser.find_elements("css selector", "#topics tr")) > 0
        assert len(browser.find_elements("css selector", "#documents tr")) == 3
        assert "first" in find("#documents").text and "<i>goal</i> vote" in find("#documents").text
        path = tmp_path / "table.csv"
        path.write_text('id,text\n1,"goal, team"\n=1+1,"vote ""law"""\n-5,\n', encoding="utf-8")
        find("#file").send_keys(str(path))
        wait_for(lambda: find("#table-tools").is_displayed())
        find("#run").click()
        wait_for(lambda: "3 rows are predicted" in find("#table-note").text)
        made = wait_for(lambda: list(browser.downloads.glob("table-predictions.csv")))
        rows = list(csv.reader(made[0].read_text(encoding="utf-8-sig").splitlines()))
        assert [row[0] for row in rows] == ["id", "1", "'=1+1", "-5"] and rows[2][1] == 'vote "law"'
        wanted = load(models("class")).predict(["goal, team", 'vote "law"', ""]).tolist()
        assert [row[rows[0].index("prediction")] for row in rows[1:]] == wanted
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        strange = [line["message"] for line in browser.get_log("browser") if "401" not in line["message"]]
        assert strange == []


# every request gets its own answer


OWN = {  # documents of one request that differ in what is known of them, and the same as arguments of the estimator
    "covariates": ([{"covariates": (2000.0 + i, "xy"[i % 2])} for i in range(6)],
                   {"covariates": pd.DataFrame({"year": 2000.0 + np.arange(6), "who": list("xyxyxy")})}),
    "array": ([{"covariates": (float(i), -float(i))} for i in range(6)],
              {"covariates": np.column_stack([np.arange(6.0), -np.arange(6.0)])}),
    "features": ([{"features": (float(i), 1.0, -float(i))} for i in range(6)],
                 {"features": np.column_stack([np.arange(6.0), np.ones(6), -np.arange(6.0)])}),
    "groups": ([{"group": "10"[i % 2]} for i in range(6)], {"groups": list("101010")}),
    "exposed": ([{"exposure": 1.0 + i} for i in range(6)], {"exposure": 1.0 + np.arange(6)}),
    "count": ([{"exposure": None if i % 2 else 3.0} for i in range(6)], {"exposure": [3.0, 1.0] * 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_documents_of_one_request_keep_what_is_known_of_them(models, name):
    own, beside = OWN[name]
    served, model = ServedModel(load(models(name))), load(models(name))
    documents = [Document(text, **more) for text, more in zip(TEXTS[:6], own, strict=True)]
    rows = served.predict(documents, Options(interval=0.6))
    for column, values in model.predict_table(TEXTS[:6], **beside).items():
        assert [row[column] for row in rows] == values.tolist()
    lower, upper = model.predict_interval(TEXTS[:6], 0.6, **beside)
    if lower.ndim == 1:
        assert [row["interval"] for row in rows] == np.column_stack([lower, upper]).tolist()


def test_conformal_intervals_are_those_of_the_estimator(models):
    served, model = ServedModel(load(models("rating"))), load(models("rating"))
    documents = [Document(text) for text in TEXTS[:5]]
    for conformal in (True, False):
        found = served.predict(documents, Options(interval=0.5, conformal=conformal))
        ends = np.column_stack(model.predict_interval(TEXTS[:5], 0.5, conformal=conformal))
        np.testing.assert_array_equal([row["interval"] for row in found], ends)
    assert not np.allclose(*(model.predict_interval(TEXTS[:5], 0.5, conformal=c) for c in (True, False)))


def test_shares_of_topics_are_the_largest_first(models):
    served, model = ServedModel(load(models("class"))), load(models("class"))
    (row,) = served.predict([Document(TEXTS[0])], Options(topics=True))
    shares = model.transform(TEXTS[:1])[0]
    order = [k for k in np.argsort(-shares, kind="stable") if shares[k] > 0]
    assert row["topics"] == [{"topic": k, "share": shares[k]} for k in order]


@pytest.mark.parametrize("name", ["class", "rating"])
def test_an_explanation_is_that_of_the_estimator(models, name):
    served, model = ServedModel(load(models(name))), load(models(name))
    for level in (0.5, 0.9):
        found, own = served.explain(Document(TEXTS[1]), level), model.explain(TEXTS[1], level=level)
        assert [word["word"] for word in found["words"]] == own.words
        parts = {"times": own.times, "adds": own.total, "through_topics": own.through_topics, "lower": own.lower,
                 "upper": own.upper}  # fmt: skip
        for part, values in parts.items():
            np.testing.assert_array_equal([word[part] for word in found["words"]], values)
        ends = np.stack(own.mean_interval, axis=1)
        assert [[row["lower"], row["upper"]] for row in found["mean"]] == ends.tolist()
        assert [row["value"] for row in found["mean"]] == list(own.mean)
    words = model.top_words(n=10)
    for topic in found["topics"]:
        k = topic["topic"]
        assert topic["words"] == words[k] and topic["label"] == own.topic_labels[k]
        assert topic["share"] == own.topic_shares[k] and topic["adds"] == own.topics[k].tolist()
    shares = [topic["share"] for topic in found["topics"]]
    assert shares == sorted(shares, reverse=True) and shares[0] == own.topic_shares.max()


def test_the_nearest_documents_have_the_same_shares(models):
    """By the sum of the roots of products, which is 1 for the same document."""
    model = load(models("class"))
    found = Examples(model, [Example(f"n{i}", text) for i, text in enumerate(TEXTS[:30])])
    shares = model.transform(TEXTS[:30])
    wanted = np.array([0.4, 0.3, 0.2, 0.1])
    near, alike = found.nearest(wanted, 30), np.sqrt(shares) @ np.sqrt(wanted)
    assert [row["similarity"] for row in near] == pytest.approx(sorted(alike, reverse=True), abs=1e-6)
    np.testing.assert_allclose(
        [alike[int(row["row"][1:])] for row in near], [row["similarity"] for row in near], atol=1e-6
    )
    assert all(row["text"] == TEXTS[int(row["row"][1:])] for row in near)


def test_covariates_are_read_by_their_names(models):
    needs = ServedModel(load(models("covariates"))).needs
    for given in ({"who": "y", "year": 2001}, {"year": 2001, "who": "y"}, [2001, "y"]):
        (document,) = read_asked({"text": "a", "covariates": given}, needs, USUAL).documents
        assert document.covariates == (2001, "y")


def test_levels_of_sets_and_intervals_are_not_exchanged(models):
    needs = ServedModel(load(models("class"))).needs
    assert read_asked({"text": "a", "set": 0.7, "interval": 0.4}, needs, USUAL).options == Options(0.7, 0.4)


class Echo:
    """A model whose answer to a document is its text; it notes what is predicted together."""

    def __init__(self):
        self.asked = []

    def predict(self, documents, options):
        self.asked.append(options)
        return [{"text": document.text} for document in documents]


@pytest.fixture
def jobs():
    """A function that makes requests of some texts."""
    loop = asyncio.new_event_loop()

    def make(model, texts, options=USUAL_OPTIONS):
        return Job(model, Asked([Document(text) for text in texts], options), loop, time.monotonic() + 99)

    yield make
    loop.close()


USUAL_OPTIONS = Options()


def test_a_batch_is_of_one_model_and_of_one_kind_of_question(jobs):
    """The others wait in the order in which they came."""
    first, second, level = Echo(), Echo(), Options(interval=0.5)
    waiting = [jobs(first, "a"), jobs(second, "b"), jobs(first, "c", level), jobs(first, "d"), jobs(second, "e")]
    batches = Batches(Limits(), 1)
    batches.close()
    batches.waiting.extend(waiting)
    taken = []
    while batches.waiting:
        taken.append([job for job, _ in batches.gather()])
    assert taken == [[waiting[0], waiting[3]], [waiting[1], waiting[4]], [waiting[2]]]


def test_rows_of_a_batch_go_to_their_requests(jobs):
    model = Echo()
    several = [jobs(model, ["a", "b", "c"]), jobs(model, ["d"]), jobs(model, ["e", "f"])]
    for _ in range(2):  # two documents of a request at a time
        predict_batch([(job, job.next_part(2)) for job in several if not job.done], lambda n, seconds: None)
    assert [[row["text"] for row in job.rows] for job in several] == [["a", "b", "c"], ["d"], ["e", "f"]]


def test_a_part_of_a_request_has_at_most_so_many_letters(jobs):
    job = jobs(Echo(), ["x" * 120_000, "x" * 70_000, "x" * 50_000, "y"])
    assert [len(document.text) for document in job.next_part(64)] == [120_000, 70_000]
    job.rows += [{}] * 2
    assert [document.text[:1] for document in job.next_part(64)] == ["x", "y"]


def test_a_histogram_counts_what_is_up_to_its_bounds():
    found = Histogram((1.0, 2.0, 5.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.0, 4.0, 9.0):
        found.add(value)
    counts = [int(line.rsplit(" ", 1)[1]) for line in found.lines("x")[:4]]
    assert counts == [2, 5, 6, 7] and found.lines("x")[-2:] == ["x_sum 20.000000", "x_count 7"]


def test_a_version_that_cannot_be_used_is_tried_once(models, tmp_path):
    path, told = tmp_path / "m", []
    shutil.copy(models("lda"), path)
    file = ModelFile(path, told=told.append)
    path.write_bytes(b"no model")
    assert [file.look() for _ in range(3)] == [False] * 3 and told == [False] and file.failed
    shutil.copy(models("lda"), path)
    assert file.look() and not file.look() and told == [False, True] and file.failed is None


def test_sets_need_documents_that_were_held_out(models):
    model = load(models("class"))
    assert ServedModel(model).needs.has_sets
    model.posterior_ = replace(model.posterior_, held_out_predictions=None)
    assert not ServedModel(model).needs.has_sets and not ServedModel(model).needs.has_conformal
