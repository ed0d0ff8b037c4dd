"""Makes the lock file of a broker's jars, with Maven: ``python -m tools.versions.lock 2.13 4.0.2`` (Scala, Kafka).

A third version is that of a ZooKeeper instead of Kafka's own. Kafka 2.1 has 3.4.13, whose client cannot connect with Java 14 or newer: it
cuts the name of its server out of a text that Java writes otherwise since then. 3.5.9, that of Kafka 2.8, can.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_{scala}</artifactId><version>{kafka}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>1.7.36</version>
    </dependency>
{zookeeper}  </dependencies>
</project>
"""
_ZOOKEEPER = """\
    <dependency>
      <groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>{}</version>
      <exclusions>
        <exclusion><groupId>org.slf4j</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>log4j</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
"""


def lock_file(scala: str, kafka: str, zookeeper: str = "") -> str:
    """SHA-256 and path of each jar of a broker, with a log binding.

    Args:
        scala: The version of Scala that its jars are for.
        kafka: The version of Kafka.
        zookeeper: The version of ZooKeeper; empty text = the one that this Kafka names, if any.
    """
    pom = _POM.format(
        scala=scala, kafka=kafka, zookeeper=_ZOOKEEPER.format(zookeeper) if zookeeper else ""
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pom.xml").write_text(pom, encoding="utf-8")
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        options = ["-Dmdep.useRepositoryLayout=true", "-DoutputDirectory=jars"]
        subprocess.run(["mvn", "-q", "-B", goal, *options], check=True, cwd=folder)
        jars = Path(folder, "jars")
        lines = sorted(
            (str(jar.relative_to(jars)), hashlib.sha256(jar.read_bytes()).hexdigest())
            for jar in jars.rglob("*.jar")
        )
    about = f"# Apache Kafka {kafka} (broker and tools) with a log binding: SHA-256 and path on Maven Central.\n"
    return about + "".join(f"{digest}  {path}\n" for path, digest in lines)


if __name__ == "__main__":
    text = lock_file(*sys.argv[1:])
    Path(__file__).with_name(f"kafka-{sys.argv[2]}.lock").write_text(text, encoding="utf-8")
