"""Cases of Protobuf in the syntax proto3."""

from __future__ import annotations

from functools import partial

from tools.fuzz.proto_cases import case as case_of

case = partial(case_of, "proto3")
