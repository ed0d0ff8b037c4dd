"""Amazon's own serializers for the schema registry of AWS Glue, for comparison."""
