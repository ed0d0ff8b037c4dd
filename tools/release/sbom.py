"""The software bill of materials of a release, in the format CycloneDX: the package and all that a user installs with it.

Usage: ``python tools/release/sbom.py ENVIRONMENT VERSION FILE``, with the Python that has cyclonedx-bom. ENVIRONMENT is a
virtual environment with the package and nothing else but pip.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

_NAME = "pyspark-upsert-kafka"


def bill_of(environment: Path, version: str) -> dict[str, Any]:
    """The bill, of which the package is the subject.

    Raises:
        ValueError: The environment has another version of the package.
    """
    python = environment / "bin" / "python"
    command = [
        "environment",
        "--output-reproducible",
        "--spec-version",
        "1.6",
        "--output-format",
        "JSON",
    ]
    program = Path(sys.executable).with_name("cyclonedx-py")
    printed = subprocess.check_output([program, *command, python], text=True)
    bill: dict[str, Any] = json.loads(printed)
    components = {each["name"]: each for each in bill["components"]}
    subject = components.pop(_NAME)
    if subject["version"] != version:
        raise ValueError(f"{environment} has version {subject['version']}, and not {version}")
    pip = components.pop("pip")
    # The wheel was installed from a folder of this machine: what users install has its name in the package index.
    subject["purl"] = f"pkg:pypi/{_NAME}@{quote(version)}"
    references = subject.pop("externalReferences", [])
    subject["externalReferences"] = [
        each for each in references if not each["url"].startswith("file:")
    ]
    bill["metadata"]["component"] = subject
    bill["components"] = list(components.values())
    bill["dependencies"] = [each for each in bill["dependencies"] if each["ref"] != pip["bom-ref"]]
    return bill


if __name__ == "__main__":
    text = json.dumps(bill_of(Path(sys.argv[1]), sys.argv[2]), indent=2) + "\n"
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        sys.exit(f"The bill of materials is not valid: {error}")
    Path(sys.argv[3]).write_text(text, encoding="utf-8")
    print(f"{sys.argv[3]}: {text.count('bom-ref')} packages")
