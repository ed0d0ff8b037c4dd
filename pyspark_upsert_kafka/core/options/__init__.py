"""Options as the user gave them -> frozen values, once, when the query is planned.

Formats read their own options when a codec is compiled; every default is part of a declaration. Rules and wording follow Flink's
``UpsertKafkaDynamicTableFactory`` and ``KafkaConnectorOptionsUtil`` where Flink has them.
"""
