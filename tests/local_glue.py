"""The schema registry of AWS Glue on this machine: moto's, which speaks Glue's API and checks neither rights nor compatibility."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

REGION = "eu-central-1"

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY",
    "AWS_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What botocore needs in the environment of a process that asks it."""


@contextmanager
def local_glue() -> Iterator[str]:
    """Runs it in a thread; gives its address. All that it has is gone at the end."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.glue.models import glue_backends
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        glue_backends[DEFAULT_ACCOUNT_ID][REGION].reset()
