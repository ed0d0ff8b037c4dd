"""A schema registry that is away, busy, of another mind or no registry at all."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    OptionError,
    RetriableBrokerError,
    SchemaError,
)
from pyspark_upsert_kafka.registry import rest
from pyspark_upsert_kafka.registry.access import Access, addresses
from pyspark_upsert_kafka.registry.rest import Patience
from tests.chains import texts_of
from tests.http_server import SILENCE, Endless
from tests.unit.registry.fake_registry import FakeRegistry, serving

HERE = "/schemas/ids/7"
GOOD = (200, {"schema": '"long"'})
SECRET = "pa55word"

QUICK = Patience(silent_s=60, all_s=3600, backoff=Backoff(0.01, 4.0, random=lambda: 0.5))
IN_VAIN = replace(QUICK, all_s=0.1)
"""Of those who ask in vain."""

request = partial(rest.request, patience=QUICK)


def access(registry: FakeRegistry | str, **more: str) -> Access:
    """The way to it."""
    url = registry if isinstance(registry, str) else registry.url
    return Access("value.avro-confluent.", addresses(url).urls, **more)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens: its port is bound, so that no other program can take it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_registry_is_asked_again(registry, status):
    """What may be over in a moment is waited for."""
    registry.answers[HERE] = [(status, b"busy"), (status, b"busy"), GOOD]

    assert request(access(registry), HERE, {}) == GOOD[1]
    assert registry.paths() == [HERE] * 3


def test_pauses_differ_from_task_to_task(registry):
    """A random number decides on each: tasks that began together do not ask in step."""
    numbers = iter([0.0, 1.0])
    patience = replace(QUICK, backoff=Backoff(0.01, 4.0, random=lambda: next(numbers)))
    registry.answers[HERE] = [(503, b"busy"), (503, b"busy"), GOOD]

    assert request(access(registry), HERE, {}, patience=patience) == GOOD[1]
    assert list(numbers) == []


@pytest.mark.parametrize(
    ("answer", "timeout_s", "said"),
    [
        ((500, {"error_code": 50001, "message": "Error in the backend."}), 60.0, "HTTP 500, Error in the backend"),
        ((503, b"<html>"), 60.0, "HTTP 503, Service Unavailable"),
        (SILENCE, 0.1, "timed out"),
        ((200, Endless(b"{", pause_s=0.02)), 0.1, "timed out"),
        ((500, Endless(b"{", pause_s=0.02)), 0.1, "timed out"),
    ],
)  # fmt: skip
def test_retries_end(registry, answer, timeout_s, said):
    """A registry that stays busy or silent is an error of the query, soon, with what was seen."""
    registry.answers[HERE] = [answer]
    patience = replace(IN_VAIN, silent_s=timeout_s)

    with pytest.raises(BrokerError) as error:
        request(access(registry), HERE, {404: "not there"}, patience=patience)

    assert f"{registry.url}: {said}. Is it up" in str(error.value)
    assert "; asked " in str(error.value)


def test_nobody_is_there(nobody):
    """A refused connection is tried again, and told of with the address."""
    gone = rf"at {nobody} gives no answer.*refused. Is it up"
    with pytest.raises(RetriableBrokerError, match=gone):
        request(access(nobody), HERE, {}, patience=IN_VAIN)


def test_another_address_is_tried(registry, nobody):
    """Of several addresses it is enough that one answers."""
    registry.answers[HERE] = [GOOD]

    assert request(access(f"{nobody},{registry.url}"), HERE, {}) == GOOD[1]


@pytest.mark.parametrize("status", [404, 409, 422])
def test_a_refusal_that_is_the_fault_of_a_schema(registry, status):
    """What the registry refuses for its reasons is told with them, and asked once."""
    registry.answers[HERE] = [
        (status, {"error_code": status * 100 + 1, "message": "For a reason."})
    ]

    with pytest.raises(SchemaError) as error:
        request(access(registry), HERE, {status: "This is why"})

    assert str(error.value) == f"This is why ({registry.url}: HTTP {status}, For a reason)."
    assert len(registry.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (404, b"<html>not found</html>"),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, {"error_code": 0, "message": "Could not find resource for full path"}),
        (405, {"message": "no"}),
        (200, b"<html>Please log in</html>"),
        (200, {"status": "up"}),
        (200, ["id"]),
        (301, "https://elsewhere/"),
    ],
    ids=str,
)
def test_another_server_is_not_taken_for_a_registry(registry, answer):
    """A wrong address is no fault of a schema or of a message."""
    registry.answers[HERE] = [answer]

    with pytest.raises(
        BrokerError, match=r"Is 'value\.avro-confluent\.url' the address of a schema"
    ):
        request(access(registry), HERE, {404: "not there"})

    assert len(registry.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("credentials", "advice"),
    [
        ({}, "none is given"),
        ({"token": SECRET}, "these credentials are refused"),
        ({"user_info": f"me:{SECRET}"}, "these credentials are refused"),
    ],
)
def test_who_may_not_ask_is_told_at_once(registry, status, credentials, advice):
    """It names the options, asks once, and shows no secret."""
    registry.answers[HERE] = [(status, {"error_code": status, "message": "User cannot access"})]

    with pytest.raises(BrokerError) as error:
        request(access(registry, **credentials), HERE, {404: "not there"})

    assert f"HTTP {status}, User cannot access. See 'value.avro-conf" in str(error.value)
    assert str(error.value).endswith(f"{advice}.")
    encoded = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert SECRET not in str(error.value)
    assert encoded not in str(error.value)
    assert len(registry.asked) == 1


@pytest.mark.parametrize("status", [200, 404, 500])
def test_an_answer_without_an_end(registry, status):
    """It is not held in memory, and not asked for again."""
    registry.answers[HERE] = [(status, Endless(b"x" * 65_536))]

    with pytest.raises(BrokerError, match=r"refuses: the answer has more than 16 MB\. Is 'value"):
        request(access(registry), HERE, {404: "not there"})

    assert len(registry.asked) == 1


def test_an_answer_that_is_cut_off_is_asked_for_again(registry, monkeypatch):
    """The connection was lost on the way: half of a schema is none."""
    whole = json.dumps(GOOD[1]).encode()
    answers = iter([whole[:-4], whole])
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer_each, args=(server, answers, len(whole)))
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert request(access(url), HERE, {}) == GOOD[1]
        thread.join()


def _answer_each(server: socket.socket, answers: Iterator[bytes], length: int) -> None:
    for answer in answers:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, answer)
            )


def test_an_answer_that_is_nested_without_an_end(registry):
    """It is no schema, and no error of Python's."""
    registry.answers[HERE] = [(200, b"[" * 1_000_000)]

    with pytest.raises(BrokerError, match="without a schema or its id"):
        request(access(registry), HERE, {})


USER = f"me:{SECRET}"
ENCODED = base64.b64encode(USER.encode()).decode()


@pytest.mark.parametrize("status", [200, 401, 404, 422, 500])
@pytest.mark.parametrize(
    "credentials", [{"user_info": USER}, {"token": SECRET}], ids=lambda each: next(iter(each))
)
def test_what_a_registry_says_is_shown_without_secrets_and_controls(registry, status, credentials):
    """Whatever the error becomes: it may repeat the request, and a terminal may show it."""
    said = (
        f"\x1b[2J\u202e {USER} Basic {ENCODED} Bearer {SECRET}\r\nERROR all is lost " + "x" * 9_999
    )
    registry.answers[HERE] = [(status, {"error_code": status * 100 + 1, "message": said})]
    refusals = {404: "not there", 422: "not taken"}

    with pytest.raises((BrokerError, SchemaError)) as error:
        request(access(registry, **credentials), HERE, refusals, patience=IN_VAIN)

    text = str(error.value)
    assert SECRET not in texts_of(error.value)
    assert ENCODED not in texts_of(error.value)
    assert text.isprintable()
    assert len(text) < 2_000
    assert status == 200 or r"*** Basic *** Bearer ***\r\nERROR all" in text


def test_a_redirect_is_not_followed(registry):
    """Credentials go to the registry that was named, and to nobody else."""
    with serving() as other:
        registry.answers[HERE] = [(302, f"{other.url}{HERE}")]

        with pytest.raises(BrokerError, match="HTTP 302"):
            request(access(registry, token=SECRET), HERE, {})

        assert other.asked == []


def test_what_is_sent(registry):
    """A schema goes out as Confluent's API has it, with who asks."""
    registry.answers["/subjects/s"] = [(200, {"id": 3})]

    request(access(registry, user_info="me:é"), "/subjects/s", {}, {"schema": '"long"'})

    (asked,) = registry.asked
    assert (asked.method, asked.body) == ("POST", {"schema": '"long"'})
    assert asked.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
    assert asked.headers["Authorization"] == f"Basic {base64.b64encode('me:é'.encode()).decode()}"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority that no system knows."""
    return trustme.CA()


@pytest.fixture
def pem(authority: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """Its certificate, and a client's key with certificate, plain and with a password."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client = authority.issue_cert("client@example.org")
    key = tmp_path / "client.pem"
    key.write_bytes(client.private_key_and_cert_chain_pem.bytes())
    plain = load_pem_private_key(key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        plain.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode())
        )
        + b"".join(blob.bytes() for blob in client.cert_chain_pems)
    )
    return {"ca": str(tmp_path / "ca.pem"), "key": str(key), "locked": str(locked)}


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[FakeRegistry]:
    """A registry by ``https`` that wants to know its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(context) as registry:
        registry.answers[HERE] = [GOOD]
        yield registry


def test_https_with_a_clients_certificate(secure, pem):
    """PEM files say whom to trust and who asks, with a password or without."""
    assert request(access(secure, truststore=pem["ca"], keystore=pem["key"]), HERE, {}) == GOOD[1]
    locked = {"keystore": pem["locked"], "keystore_password": SECRET}
    assert request(access(secure, truststore=pem["ca"], **locked), HERE, {}) == GOOD[1]


def test_https_with_javas_stores(secure, authority, pem, tmp_path):
    """PKCS#12 stores have the same in them, each behind its password."""
    ca = load_pem_x509_certificate(authority.cert_pem.bytes())
    chain = load_pem_x509_certificates(Path(pem["key"]).read_bytes())
    key = load_pem_private_key(Path(pem["key"]).read_bytes(), None)
    locked = BestAvailableEncryption(SECRET.encode())
    trust, identity = tmp_path / "trust.p12", tmp_path / "key.jks"
    trust.write_bytes(serialize_java_truststore([PKCS12Certificate(ca, b"ca")], locked))
    identity.write_bytes(serialize_key_and_certificates(b"me", key, chain[0], chain[1:], locked))
    stores = {"truststore": str(trust), "keystore": str(identity)}
    passwords = {"truststore_password": SECRET, "keystore_password": SECRET}

    assert request(access(secure, **stores, **passwords), HERE, {}) == GOOD[1]

    for store in stores:
        wrong = passwords | {f"{store}_password": "wrong"}
        with pytest.raises(OptionError, match=rf"is '.*{store}\.password' the right one") as error:
            request(access(secure, **stores, **wrong), HERE, {})
        assert SECRET not in str(error.value)


def test_a_password_of_certificates(registry, pem):
    """A PEM file of certificates has none, so that one is a mistake."""
    with pytest.raises(OptionError, match=r"Leave out '.*truststore\.password'") as error:
        request(access(registry, truststore=pem["ca"], truststore_password=SECRET), HERE, {})

    assert SECRET not in str(error.value)


def test_a_certificate_that_is_not_trusted(secure):
    """No other attempt can help, and the error names the option."""
    with pytest.raises(
        BrokerError, match=r"is not trusted.*'value\.avro-confluent\.ssl\.truststore"
    ):
        request(access(secure), HERE, {})


@pytest.mark.parametrize("password", [None, "wrong" + SECRET])
def test_a_wrong_password_of_a_key(secure, pem, password):
    """It is told without being shown, and nobody is asked for it on the terminal."""
    with pytest.raises(OptionError, match=r"'value\.avro-confluent\.ssl\.keystore\.loc") as error:
        request(access(secure, keystore=pem["locked"], keystore_password=password), HERE, {})

    assert SECRET not in str(error.value)


@pytest.mark.parametrize("option", ["truststore", "keystore"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"\xfe\xed\xfe\xed", "a JKS store.*keytool"),
        (b"\x30\x82\x0a", "cannot be read as PKCS#12"),
        (b"?", "neither a PEM nor a PKCS#12 file"),
        (b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", "cannot be used"),
    ],
    ids=["missing", "JKS", "PKCS#12", "other", "broken"],
)
def test_files_that_cannot_be_used(registry, tmp_path, option, content, said):
    """A JKS store is refused with how to convert it, other files with what is wrong."""
    file = tmp_path / "store"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(OptionError, match=rf"ssl\.{option}\.location' names the file .*{said}"):
        request(access(registry, **{option: str(file)}), HERE, {})
