"""Scripts of Flink's SQL, run by Spark.

A script is read and checked as a whole before any of it runs: what is not known to mean the same in Spark
is refused with its place, never guessed.
"""
