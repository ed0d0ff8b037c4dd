"""Protocol buffers, by a descriptor file, as Flink's ``protobuf`` format reads and writes them."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.protobuf.codecs import message_decoder, message_encoder
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_descriptor
from pyspark_upsert_kafka.formats.protobuf.settings import OPTIONS, settings_of


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: A column does not fit the message.
        OptionError: The message cannot be found.
    """
    return message_decoder(message_descriptor(settings_of(spec)), spec)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: A column does not fit the message, or a required field has no column.
        OptionError: The message cannot be found.
    """
    return message_encoder(message_descriptor(settings_of(spec)), spec)


FORMAT = Format("protobuf", OPTIONS, decoder, encoder)
