"""A Kerberos realm of one's own: Debian's KDC (packages krb5-kdc, krb5-admin-server, krb5-user), in a folder."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pyspark_upsert_kafka.kafka.local import ports

REALM = "EXAMPLE.ORG"

_KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""

_KDC_CONF = """\
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
  }}
"""


class Realm:
    """The realm ``EXAMPLE.ORG``, for as long as the block lasts.

    Args:
        folder: Where its files are put.

    Example::

        with Realm(tmp_path) as realm:
            keytab = realm.keytab("ana")
    """

    def __init__(self, folder: Path) -> None:
        self.folder, port = folder, ports.free_port()
        self.config = folder / "krb5.conf"
        self.config.write_text(_KRB5_CONF.format(realm=REALM, port=port))
        kdc = folder / "kdc.conf"
        kdc.write_text(_KDC_CONF.format(realm=REALM, port=port, folder=folder))
        self.environment: Mapping[str, str] = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(kdc),
        }
        self._kdc: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Realm:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_hex(8))
        self._kdc = subprocess.Popen(["krb5kdc", "-n"], env=self._environment({}))
        return self

    def __exit__(self, *_: object) -> None:
        if self._kdc is not None:
            self._kdc.terminate()
            self._kdc.wait(30)

    def keytab(self, principal: str) -> Path:
        """A new principal's key, in a file."""
        file = self.folder / f"{principal.replace('/', '-')}.keytab"
        for query in (f"addprinc -randkey {principal}", f"ktadd -k {file} {principal}"):
            self.run("kadmin.local", "-r", REALM, "-q", query)
        return file

    def run(self, *command: str, **environment: str) -> None:
        """Runs one of Kerberos' programs in this realm."""
        subprocess.run(
            command, check=True, env=self._environment(environment), capture_output=True, timeout=60
        )

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        path = f"{os.environ['PATH']}:/usr/sbin"
        return {**os.environ, "PATH": path, **self.environment, **more}
