"""The edge to a schema registry: framing of messages, subjects, requests and credentials, for any format."""
