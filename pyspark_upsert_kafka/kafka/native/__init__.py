"""Messages by the thousand, with librdkafka's own functions: what goes behind confluent-kafka, for speed alone.

This is the only entry: no other module knows those in this folder, and nothing else calls a function of librdkafka. For each
class that is here confluent-kafka has one that does the same, message by message, and that is used where these cannot be, or
where the option ``kafka.client.native`` or the environment variable ``PYSPARK_UPSERT_KAFKA_NATIVE`` turns them off. Why it is safe
says ``docs/native-calls.md``.
"""

from pyspark_upsert_kafka.kafka.native.consumer import BatchConsumer, Event, can_take
from pyspark_upsert_kafka.kafka.native.library import (
    MAY_BE_CALLED,
    Login,
    LoginConsumer,
    LoginProducer,
    can_log_in,
    is_on,
    may_be_called,
    takes,
)
from pyspark_upsert_kafka.kafka.native.producer import (
    BatchProducer,
    MessageBatch,
    TransactionalBatchProducer,
)

__all__ = [
    "MAY_BE_CALLED",
    "BatchConsumer",
    "BatchProducer",
    "Event",
    "Login",
    "LoginConsumer",
    "LoginProducer",
    "MessageBatch",
    "TransactionalBatchProducer",
    "can_log_in",
    "can_take",
    "is_on",
    "may_be_called",
    "takes",
]
