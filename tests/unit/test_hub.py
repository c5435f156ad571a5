"""Models of the Hugging Face hub that cannot be had: the real client against a small server that answers as the hub."""

import http.server
import threading
from collections.abc import Iterator

import pytest

from distseat.errors import ModelError
from distseat.models import ModelSpec, resolve

ANSWERS = {
    "/org/nobody/": "RepoNotFound",
    "/v9/": "RevisionNotFound",
    "/org/empty/": "EntryNotFound",
    "/gated/": "GatedRepo",
}


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers every request with the error code that its path asks for."""

    def do_HEAD(self) -> None:
        code = next((code for part, code in ANSWERS.items() if part in self.path), "RepoNotFound")
        self.send_response(403 if code == "GatedRepo" else 404)
        self.send_header("X-Error-Code", code)
        if code == "EntryNotFound":
            self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD  # noqa: N815 - the name that the server looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Iterator[None]:
    from huggingface_hub import constants

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("source", "revision", "message"),
    [
        ("org/nobody", None, "the hub has no model org/nobody; check its id"),
        ("org/some", "v9", "the hub has no org/some at revision v9; check the commit, tag or branch"),
        ("org/empty", None, "org/empty at revision main has no config.json; give a transformers model"),
        ("org/gated", None, "access to org/gated is restricted; set HF_TOKEN"),
        ("two words//", None, "is neither a Hugging Face id nor a directory"),
    ],
)
def test_a_model_that_the_hub_has_not_is_told_with_what_to_do(hub, source, revision, message):
    with pytest.raises(ModelError, match=message):
        resolve(ModelSpec(name="asked", source=source, revision=revision))
