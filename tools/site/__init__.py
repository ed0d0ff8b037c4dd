"""The site: docs/ and the Python API as HTML, each page as Markdown too. ``make site`` builds it into build/site."""
