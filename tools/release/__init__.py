"""What a release consists of, checked before anything is uploaded: ``make release-check``."""
