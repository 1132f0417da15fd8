"""Answers that are of no use."""

FLYING = """\
Here is my plan:
```yaml
EVENT: achieve reach(X)
OPERATIONS:
- execute fly(X)
```
"""
