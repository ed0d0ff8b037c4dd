"""What is made of the folders below: a Spark data source, functions over DataFrames, a listener, tables without Spark."""
