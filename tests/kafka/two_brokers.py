"""A cluster of two brokers, so that a partition can change its leader."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.kafka.local.broker import _SETTINGS, Node
from pyspark_upsert_kafka.kafka.local.ports import HOST
from tests.kafka.conftest import eventually


@dataclass(frozen=True)
class TwoBrokers:
    """Broker 1 is the controller too, and stays; broker 2 leads the topics made here, and may stop.

    Args:
        nodes: Both brokers.
        settings: The settings of each.
        ports: Where each listens.
    """

    nodes: tuple[Node, Node]
    settings: tuple[Mapping[str, str], Mapping[str, str]]
    ports: tuple[int, int]

    @classmethod
    def started(cls) -> TwoBrokers:
        """A new cluster, both brokers up."""
        one, two, controller = ports.free_port(), ports.free_port(), ports.free_port()
        voters = {**_SETTINGS, "controller.quorum.voters": f"1@{HOST}:{controller}"}
        settings = (
            {**voters, "listeners": f"PLAINTEXT://{HOST}:{one},CONTROLLER://{HOST}:{controller}"},
            {
                **voters,
                "node.id": "2",
                "process.roles": "broker",
                "listeners": f"PLAINTEXT://{HOST}:{two}",
            },
        )
        first = Node.create()
        second = replace(Node.create(), cluster_id=first.cluster_id)
        cluster = cls((first, second), settings, (one, two))
        for node, given in zip(cluster.nodes, settings, strict=True):
            node.format(given)
        cluster.start(1)
        cluster.start(2)
        return cluster

    @property
    def servers(self) -> str:
        """The address of both."""
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    def new_admin(self) -> AdminClient:
        """A client that asks the broker that stays; an old one may wait for the other for a minute."""
        return AdminClient({"bootstrap.servers": f"{HOST}:{self.ports[0]}", "log_level": 0})

    def start(self, number: int) -> None:
        """Starts a broker and waits until it answers; one that runs is left alone."""
        node = self.nodes[number - 1]
        if not node.runs():
            assert node.launch(self.settings[number - 1], self.ports[number - 1]), "a port is taken"

    def stop(self, number: int) -> None:
        """Stops a broker in good order."""
        self.nodes[number - 1].guard.stop()

    def close(self) -> None:
        """Ends both and deletes what they hold."""
        for node in reversed(self.nodes):
            node.guard.close()

    def topic(self) -> str:
        """A topic of one partition on both brokers, led by broker 2."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        new = NewTopic(name, 1, replica_assignment=[[2, 1]])
        admin = self.new_admin()
        admin.create_topics([new])[name].result()
        assert eventually(lambda: self.leader_and_replicas(name) == (2, {1, 2})), "both hold it"
        return name

    def leader_and_replicas(self, topic: str) -> tuple[int, set[int]]:
        """Who leads the partition, and who holds all of it; nobody while the topic is not known yet."""
        admin = self.new_admin()
        (described,) = admin.describe_topics(TopicCollection([topic])).values()
        try:
            (partition,) = described.result().partitions
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return -1, set()
        return partition.leader.id if partition.leader else -1, {each.id for each in partition.isr}

    def lead_by_second_again(self, topic: str) -> None:
        """Makes broker 2 the leader once it holds everything again."""
        assert eventually(lambda: self.leader_and_replicas(topic)[1] == {1, 2}), "in sync again"
        admin = self.new_admin()
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result()
        assert eventually(lambda: self.leader_and_replicas(topic)[0] == 2), "leads again"
