"""CDC formats: an envelope is decoded as a row of columns, and what it says becomes rows of the table.

In envelopes of Debezium, what a field of a Connect schema means makes Debezium's types and Connect's logical types columns of a
table. A Connect schema gives a field a type (``int64``) and may give it a name (``io.debezium.time.MicroTimestamp``), the
semantic type. Debezium sends such a schema with each message (``debezium-json.schema-include``), or it stands in the
Avro schema (``connect.name``). A field is read in two steps:

1. The plain decoder, of JSON or Avro, reads the field as its *physical type*: a BIGINT, for example.
2. A conversion makes of that column the column that the table wants: a TIMESTAMP_NTZ. It works on whole Arrow columns;
   only a column with a bad value in it is read value by value, so that each bad message has its own error.

For messages of JSON that carry their schema, a `connect_json.SchemaDecoder` does all of it. It needs a function that
compiles the plain decoder for some physical columns, and it is a `Decoder` of ``formats/codec.py`` itself::

    SchemaDecoder(columns, lambda physical: json_decoder(replace(spec, schema=physical)), lenient=False)

``columns`` may be those of a whole envelope (``before``, ``after``, ``op``, ...); ``schema_column`` adds the schema itself.
Messages in one topic may have different schemas: those of one schema are decoded together. A `connect_json.AdvisedDecoder`
says what to set where messages come without their schemas. ``debezium_avro.decoder`` reads messages of Avro, with the decoder
of ``avro-confluent``.

What a conversion does with values follows the plain formats: a value that is finer than microseconds is rounded down,
a decimal with more digits behind the point is rounded half up, and a value that has no room in the column is an error.
"""
